/* `ddpbench gate` tests whether a new command is slower than a base command, for CI. */
#include "cmd.h"
#include "run/gate_run.h"
#include "run/noise_floor.h"
#include "run/selftest.h"

static const char *const metrics[] = {"result", "wall", NULL};

#define AT(member) offsetof(struct ddp_gate_values, member)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Commands"),
    DDP_OPT(STRING, "base", 0, AT(command[DDP_BASE]), "'CMD'", NULL,
            "the base command, split into arguments without a shell; a file name replaces {json}; "
            "without {json}, --json FILE is appended, unless --metric or --read is given",
            .brief = "the base command"),
    DDP_OPT(STRING, "new", 0, AT(command[DDP_NEXT]), "'CMD'", NULL,
            "the command under test; without it, --base's command runs with --new-env",
            .brief = "the command under test"),
    DDP_OPT(STRING_LIST, "base-env", 0, AT(env[DDP_BASE]), "K=V[,...]", NULL,
            "environment variables to add for base"),
    DDP_OPT(STRING_LIST, "new-env", 0, AT(env[DDP_NEXT]), "K=V[,...]", NULL,
            "environment variables to add for new", .brief = ""),
    DDP_OPT(ENUM, "metric", 0, AT(metric), "METRIC", "result",
            "judge the result that a command writes, or its wall time as hyperfine measures it",
            .choices = metrics, .brief = "judge result or wall time"),
    DDP_OPT(ENUM, "read", 0, AT(read), "FORMAT", "json",
            "format of the result: json is ddpbench's; the others are read from stdout, or from "
            "the file {json} if the command contains {json}",
            .choices = ddp_foreign_names, .brief = "json, gbench, hyperfine, ..."),
    DDP_OPT(DOUBLE, "launch-timeout", 0, AT(launch_timeout_s), "S", "3600",
            "seconds that one run of a command may take", .min = 1, .max = 604800),
    DDP_OPT_INCLUDE(ddp_vary_rows, AT(vary)),
    DDP_OPT_HEADING("Statistics"),
    DDP_OPT(INT, "max-pairs", 0, AT(max_pairs), "N", "32",
            "largest number of pairs, each of one or more runs of both commands in random ABBA "
            "order; the gate stops earlier when it is sure",
            .min = 1, .max = DDP_GATE_PAIRS_MAX, .brief = "largest number of pairs of runs"),
    DDP_OPT(INT, "pairs", 0, AT(pairs), "N", NULL,
            "run exactly N pairs and decide once; at least log2(cells/0.05)", .min = 1,
            .max = DDP_GATE_PAIRS_MAX, .brief = "run exactly N pairs"),
    DDP_OPT(INT, "runs", 0, AT(runs), "N", NULL,
            "runs of each command in a pair, of which the median counts (default: an odd number "
            "that takes about half a second, by the times of the first run of each)",
            .min = 1, .max = DDP_GATE_RUNS_MAX),
    DDP_OPT(DOUBLE, "min-effect", 0, AT(min_effect), "PCT", NULL,
            "smallest slow-down in percent that counts (default: the larger of 5 and this "
            "machine's noise floor)",
            .min = 0.1, .max = 1000, .brief = "smallest slow-down in percent that counts"),
    DDP_OPT(DOUBLE, "accuracy-margin", 0, AT(accuracy_margin), "X", "0.01",
            "largest loss of training accuracy that is accepted, as a fraction of 1", .min = 0.0001,
            .max = 1),
    DDP_OPT_INCLUDE(ddp_noise_floor_rows, offsetof(struct ddp_gate_values, noise_file)),
    DDP_OPT(INT, "seed", 0, AT(seed), "N", "1", "seed of the order of runs",
            .max = 9007199254740991.0),
    DDP_OPT_HEADING("Self-test"),
    DDP_OPT(FLAG, "selftest", 0, AT(selftest), NULL, NULL,
            "run one command (--base, else a short all-reduce of this program) against itself and "
            "store this machine's noise floor",
            .brief = "measure this machine's noise floor"),
    DDP_OPT(INT_LIST, "gates", 0, AT(gates), "A,B", "60,30",
            "numbers of gates: A of base against itself (a noise floor needs 29), B with a delay",
            .max = DDP_SELFTEST_GATES_MAX),
    DDP_OPT(DOUBLE, "inject", 0, AT(inject), "PCT", "10", "delay of the B gates in percent",
            .min = 0.1, .max = 1000),
    DDP_OPT(FLAG, "restart", 0, AT(restart), NULL, NULL,
            "discard the finished gates of an interrupted self-test"),
    DDP_OPT_INCLUDE(ddp_verdict_rows, offsetof(struct ddp_gate_values, outputs)),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "quiet", 'q', AT(quiet), NULL, NULL, "print no progress on stderr"),
    DDP_OPT_INCLUDE(ddp_help_rows, AT(help)),
    DDP_OPT_END,
};

/* Refuses contradictory options before any file is opened. */
static int check(const struct ddp_app *app, const struct ddp_gate_values *v,
                 const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    static const char *const only_selftest[] = {"gates", "inject", "restart", NULL};
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no operands", err));
    for (int i = 0; only_selftest[i] && !v->selftest; i++)
        if (ddp_opt_given(app->cmd->rows, parsed, only_selftest[i]))
            return ddp_fail(err, DDP_EUSAGE, "--%s needs --selftest", only_selftest[i]);
    if (v->metric == 1 && ddp_opt_given(app->cmd->rows, parsed, "read"))
        return ddp_fail(err, DDP_EUSAGE,
                        "--read cannot be combined with --metric wall, which reads no result");
    if (v->read != DDP_FOREIGN_NONE && !v->command[DDP_BASE])
        return ddp_fail(err, DDP_EUSAGE, "--read %s needs --base 'CMD'",
                        ddp_foreign_names[v->read]);
    if (v->selftest && v->vary.n > 0)
        return ddp_fail(err, DDP_EUSAGE, "--vary cannot be combined with --selftest");
    if (!v->command[DDP_BASE] && !v->selftest)
        return ddp_fail(err, DDP_EUSAGE, "gate needs --base 'CMD'");
    if (!v->command[DDP_NEXT] && v->env[DDP_NEXT].n == 0 && !v->selftest) {
        ddp_fail(err, DDP_EUSAGE, "gate needs --new 'CMD' or --new-env K=V");
        return ddp_hint(err, "--selftest compares a command with itself");
    }
    if (v->pairs > 0 && ddp_opt_given(app->cmd->rows, parsed, "max-pairs"))
        return ddp_fail(err, DDP_EUSAGE,
                        "--pairs %lld cannot be combined with --max-pairs, because --pairs sets "
                        "the exact number of pairs",
                        (long long)v->pairs);
    if (v->selftest && v->gates.v[0] < 1)
        return ddp_fail(err, DDP_EUSAGE, "--gates: a self-test needs at least one A/A gate");
    return 0;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct ddp_gate_values *v = values;
    DDP_TRY(check(app, v, parsed, err));
    return ddp_gate_run(app, v, err);
}

const struct ddp_cmd ddp_cmd_gate = {
    .name = "gate",
    .group = DDP_CMD_JUDGE,
    .summary = "test whether NEW is slower than BASE; for CI, exits with 0, 10 or 12",
    .operands = "",
    .details = "Runs both commands in randomised ABBA pairs. A pair has an odd number of runs of\n"
               "each command, which take about half a second (--runs). A run gives one median\n"
               "per cell (point), and the median over the runs of a pair counts. Each cell gets\n"
               "an exact one-sided sign-flip test on the log ratios of the pairs, corrected by\n"
               "Holm for all cells, and a Hodges-Lehmann ratio with one-sided bounds. The gate\n"
               "decides after 8 pairs, then after every 4, until it is sure or has run\n"
               "--max-pairs. Alpha spending (Lan & DeMets) keeps all decisions together at 5 %.\n"
               "  FAIL (10)          a cell is significant, and its lower bound is above\n"
               "                     --min-effect\n"
               "  PASS (0)           every upper bound is below --min-effect\n"
               "  INCONCLUSIVE (12)  anything else: use a larger --max-pairs (or --pairs), or a\n"
               "                     quieter machine\n"
               "A FAIL becomes INCONCLUSIVE if the ping-pong or the memory copy was slower for\n"
               "new, too. A PASS becomes INCONCLUSIVE if one of them was faster for new. There\n"
               "is no PASS if a cell or a training run of base was not judged. Cells that only\n"
               "new has are listed and change nothing.\n"
               "The step time of a training run is a cell. Its accuracy is the mean of at most\n"
               "its last 3 epochs. Runs that differ only in the seed are judged together:\n"
               "one-sided 95 % bounds of the mean difference new - base over the seeds\n"
               "(Student's t). The accuracy passes if the lower bound is above -margin\n"
               "(--accuracy-margin), and it is worse (10) if the upper bound is below -margin. A\n"
               "run of new that diverges is worse. Otherwise the gate needs more seeds (train\n"
               "--seeds), not more pairs. The short baseline run from which train computes the\n"
               "speed-up is not judged.\n"
               "A pair is repeated, at most twice, if the ping-pongs of its sides differ by more\n"
               "than a factor of 1.5. The times of the cells do not matter for this. A result\n"
               "that is incomplete, has wrong data or a point without valid iterations is an\n"
               "error. Cells are matched by their ids. With --vary, the ids leave out the keys\n"
               "that differ between the commands. Both commands must run on the same hosts, with\n"
               "the same ranks and backend unless --vary names them.\n"
               "\n"
               "--metric wall judges any command by its wall time, as one cell named wall.\n"
               "Nothing is appended to the command, its stdout is discarded, and no shell is\n"
               "started. Each side first runs up to 3 times untimed. --read judges the values\n"
               "that another benchmark prints, one cell per name. Times are converted to us.\n"
               "Other values are shown in the columns for us, unchanged or, if bigger is better,\n"
               "as 1/value. Give hyperfine's commands the same names on both sides (-n).\n"
               "\n"
               "--selftest runs gates of one command against itself: A/A gates, and gates with a\n"
               "delay injected into one cell. It reports false alarms, delays found, the noise\n"
               "floor (the smallest --min-effect with which 90 % of A/A gates pass) and the\n"
               "smallest slow-down that is found in 90 % of the cells. With 29 A/A gates or more\n"
               "it stores the noise floor for later gates and comparisons on this machine. With\n"
               "--metric wall the gate simulates the delay: it stops the clock later. With\n"
               "--read it multiplies the value. --metric wall and each format of --read have\n"
               "noise floors of their own. An interrupted self-test, or one with more --gates,\n"
               "continues with the next gate. It exits with 12 if there were fewer than 29 A/A\n"
               "gates, or if too many gates went wrong: more than one false alarm or 4\n"
               "inconclusive in 60 A/A gates, more than one delay not found in 30, or an alarm\n"
               "in the wrong cell.\n",
    .examples = "  ddpbench gate --base './old allreduce -b 64K' --new './new allreduce -b 64K'\n"
                "  ddpbench gate --base 'ddpbench allreduce' --new-env DDPBENCH_SIMD=avx2 \\\n"
                "      --format table,junit=gate.xml\n"
                "  ddpbench gate --metric wall --base './old/app input' --new './new/app input'\n"
                "  ddpbench gate --read gbench --base './old/bench --benchmark_format=json' \\\n"
                "      --new './new/bench --benchmark_format=json'\n"
                "  ddpbench gate --base 'ddpbench allreduce' --vary algorithm \\\n"
                "      --new 'ddpbench allreduce --algorithm ring'\n"
                "  ddpbench gate --base 'ddpbench train --seeds 1,2,3,4,5 --sync dense' \\\n"
                "      --vary sync --new 'ddpbench train --seeds 1,2,3,4,5 --sync bf16'\n"
                "  ddpbench gate --selftest --json selftest.json\n",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_gate_values),
    .help_offset = offsetof(struct ddp_gate_values, help),
    .run = run,
};
