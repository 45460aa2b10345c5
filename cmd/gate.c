/* `ddpbench gate` tests whether a new command is slower than a base command, for CI. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench/gate.h"
#include "bench/selftest.h"
#include "gate_folder.h"
#include "gate_selftest.h"
#include "noise_floor.h"
#include "stats/signflip.h"

#define AT(member) offsetof(struct ddp_gate_values, member)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Commands"),
    DDP_OPT(STRING, "base", 0, AT(command[DDP_BASE]), "'CMD'", NULL,
            "the base command, split into arguments without a shell; a file name replaces {json}; "
            "without {json}, --json FILE is appended"),
    DDP_OPT(STRING, "new", 0, AT(command[DDP_NEXT]), "'CMD'", NULL,
            "the command under test; without it, --base's command runs with --new-env"),
    DDP_OPT(STRING_LIST, "base-env", 0, AT(env[DDP_BASE]), "K=V[,...]", NULL,
            "environment variables to add for base"),
    DDP_OPT(STRING_LIST, "new-env", 0, AT(env[DDP_NEXT]), "K=V[,...]", NULL,
            "environment variables to add for new"),
    DDP_OPT(DOUBLE, "launch-timeout", 0, AT(launch_timeout_s), "S", "3600",
            "seconds that one run of a command may take", .min = 1, .max = 604800),
    DDP_OPT_HEADING("Statistics"),
    DDP_OPT(INT, "pairs", 0, AT(pairs), "N", "12",
            "pairs of runs, one of each command, in random ABBA order; at least log2(cells/0.05)",
            .min = 1, .max = DDP_SIGNFLIP_MAX),
    DDP_OPT(DOUBLE, "min-effect", 0, AT(min_effect), "PCT", NULL,
            "smallest slow-down in percent that counts (default: the larger of 5 and this "
            "machine's noise floor)",
            .min = 0.1, .max = 1000),
    DDP_OPT_INCLUDE(ddp_noise_floor_rows, offsetof(struct ddp_gate_values, noise_file)),
    DDP_OPT(INT, "seed", 0, AT(seed), "N", "1", "seed of the order of runs",
            .max = 9007199254740991.0),
    DDP_OPT_HEADING("Self-test"),
    DDP_OPT(FLAG, "selftest", 0, AT(selftest), NULL, NULL,
            "run one command (--base, else a short all-reduce of this program) against itself and "
            "store this machine's noise floor"),
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
    DDP_OPT(FLAG, "help", 'h', AT(help), NULL, NULL, "print this text and exit"),
    DDP_OPT_END,
};

struct progress {
    struct ddp_app *app;
    bool shown, terminal;
};

static void on_child(void *arg, int pair, int pairs, int side)
{
    struct progress *p = arg;
    if (!p->terminal)
        return;
    fprintf(stderr, "\r\033[Kgate: pair %d of %d, %s", pair + 1, pairs,
            side == DDP_BASE ? "base" : "new");
    fflush(stderr);
    p->shown = true;
}

static int make_env(const struct ddp_string_list *list, const char **env, struct ddp_err *err)
{
    for (int i = 0; i < list->n; i++) {
        if (list->v[i][0] == '=' || !strchr(list->v[i], '=')) {
            ddp_fail(err, DDP_EUSAGE, "'%s' is not of the form K=V", list->v[i]);
            return ddp_hint(err,
                            "put a value with a comma into the command: --new 'env K=a,b CMD'");
        }
        env[i] = list->v[i];
    }
    return 0;
}

static int make_side(const struct ddp_gate_values *v, int which, const char **env,
                     struct ddp_gate_side *side, struct ddp_err *err)
{
    DDP_TRY(make_env(&v->env[which], env, err));
    side->text = v->command[which] ? v->command[which] : v->command[DDP_BASE];
    side->env = env;
    return ddp_argv_split(side->text, &side->words, err);
}

/* Fails if the pairs are too few for any cell to be significant. Called after the first run of
 * base, when the number of cells is known. */
static int enough_pairs(const struct ddp_gate_data *data, struct ddp_err *err)
{
    size_t least = ddp_signflip_least_pairs(data->count, DDP_VERDICT_LEVEL);
    if ((size_t)data->pairs >= least)
        return 0;
    ddp_fail(err, DDP_EUSAGE, "%d pairs can never show a slow-down of one of %zu cells",
             data->pairs, data->count);
    return ddp_hint(err, "use --pairs %zu or more: 2^-pairs x cells must not exceed %.2f", least,
                    DDP_VERDICT_LEVEL);
}

static int measure(struct ddp_app *app, const struct ddp_gate_values *v,
                   struct ddp_gate_setup *setup, struct ddp_verdict_record *verdict,
                   struct ddp_err *err)
{
    struct progress progress = {.app = app, .terminal = !v->quiet && isatty(STDERR_FILENO)};
    struct ddp_gate_data data = {.count = 0};
    setup->on_child = on_child;
    setup->arg = &progress;
    int rc = ddp_gate_measure(setup, &data, err);
    setup->on_child = NULL;
    setup->arg = NULL;
    if (progress.shown)
        fputs("\r\033[K", stderr);
    DDP_TRY(rc);
    rc = ddp_gate_judge(setup, &data, verdict, err);
    ddp_gate_release(&data);
    return rc;
}

/* Refuses contradictory options before any file is opened. */
static int check(const struct ddp_app *app, const struct ddp_gate_values *v,
                 const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    static const char *const only_selftest[] = {"gates", "inject", "restart", NULL};
    if (parsed->operand_count > 0)
        return ddp_fail(err, DDP_EUSAGE, "gate takes no operands; unexpected argument '%s'",
                        parsed->operands[0]);
    for (int i = 0; only_selftest[i] && !v->selftest; i++)
        if (ddp_opt_given(app->cmd->rows, parsed, only_selftest[i]))
            return ddp_fail(err, DDP_EUSAGE, "--%s means nothing without --selftest",
                            only_selftest[i]);
    if (!v->command[DDP_BASE] && !v->selftest)
        return ddp_fail(err, DDP_EUSAGE, "gate needs --base 'CMD'");
    if (!v->command[DDP_NEXT] && v->env[DDP_NEXT].n == 0 && !v->selftest) {
        ddp_fail(err, DDP_EUSAGE, "gate needs --new 'CMD' or --new-env K=V");
        return ddp_hint(err, "--selftest compares a command with itself");
    }
    if (v->selftest && v->gates.v[0] < 1)
        return ddp_fail(err, DDP_EUSAGE, "--gates: a self-test needs at least one A/A gate");
    return 0;
}

/* The data of one run. The record points into this struct. */
struct work {
    const char *env[2][DDP_OPT_LIST_MAX + 1];
    struct ddp_gate_setup setup;
    struct ddp_min_effect min_effect;
    struct ddp_verdict_record verdict;
    struct ddp_noise noise;
    struct ddp_app shown;  /* a copy of app with the command line that results show */
    char **argv, *made[4]; /* that command line, and the strings allocated for it */
};

static int prepare(const struct ddp_gate_values *v, struct work *w, struct ddp_err *err)
{
    const double asked = v->min_effect > 0 ? v->min_effect / 100 : NAN;
    w->setup.pairs = (int)v->pairs;
    w->setup.seed = (uint64_t)v->seed;
    w->setup.child_timeout_ns = (int64_t)(v->launch_timeout_s * 1e9);
    w->setup.check = enough_pairs;
    if (v->selftest) { /* a stored noise floor does not apply, because a self-test measures it */
        w->setup.min_effect = isnan(asked) ? DDP_GATE_EFFECT : asked;
        return make_env(&v->env[DDP_BASE], w->env[DDP_BASE], err);
    }
    DDP_TRY(ddp_min_effect_choose(asked, DDP_GATE_EFFECT, v->noise_file, &w->min_effect, err));
    w->setup.min_effect = w->min_effect.effect;
    for (int side = 0; side < 2; side++)
        DDP_TRY(make_side(v, side, w->env[side], &w->setup.side[side], err));
    return 0;
}

static int work_in_folder(struct ddp_app *app, const struct ddp_gate_values *v, struct work *w,
                          struct ddp_err *err)
{
    struct ddp_gate_folder folder;
    int rc;
    DDP_TRY(ddp_gate_folder_make(&folder, err));
    w->setup.folder = folder.path;
    if (v->selftest)
        rc = ddp_gate_selftest(app, v, w->env[DDP_BASE], &w->setup, &w->noise, &w->verdict, err);
    else
        rc = measure(app, v, &w->setup, &w->verdict, err);
    ddp_gate_folder_remove(&folder);
    if (rc == 0 && !v->selftest) {
        w->verdict.noise_floor = w->min_effect.noise_floor;
        memcpy(w->verdict.effect_from, w->min_effect.from, sizeof w->verdict.effect_from);
    }
    return rc;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct ddp_gate_values *v = values;
    const char *const protected_paths[] = {v->noise_file, NULL};
    struct ddp_record record;
    struct ddp_report_set *reports;
    int rc;
    DDP_TRY(check(app, v, parsed, err));
    struct work *w = ddp_calloc(1, sizeof *w);
    if (!w)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a gate");
    DDP_TRY_GOTO(prepare(v, w, err), out);
    w->shown = *app;
    w->shown.argv = w->argv = ddp_calloc((size_t)app->argc + 1, sizeof *w->argv);
    if (!w->argv) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for a gate");
        goto out;
    }
    DDP_TRY_GOTO(ddp_gate_shown_argv(app, v, w->argv, w->made, err), out);
    DDP_TRY_GOTO(
        ddp_verdict_begin(&w->shown, &v->outputs, v->seed, protected_paths, &record, &reports, err),
        out);
    rc = work_in_folder(app, v, w, err);
    rc = ddp_verdict_finish(&record, reports, rc == 0 ? &w->verdict : NULL, rc, err);
out:
    free(w->verdict.unjudged.items);
    free(w->verdict.cells);
    free(w->argv);
    for (size_t i = 0; i < DDP_COUNT_OF(w->made); i++)
        free(w->made[i]);
    ddp_argv_release(&w->setup.side[DDP_BASE].words);
    ddp_argv_release(&w->setup.side[DDP_NEXT].words);
    free(w);
    return rc;
}

extern const struct ddp_cmd ddp_cmd_gate;
const struct ddp_cmd ddp_cmd_gate = {
    .name = "gate",
    .summary = "test whether NEW is slower than BASE; for CI, exits with 0, 10 or 12",
    .operands = "",
    .details =
        "Runs both commands in randomised ABBA pairs. Each run gives one median per cell\n"
        "(point). Each cell gets an exact one-sided sign-flip test on the log ratios,\n"
        "corrected by Holm for all cells, and a Hodges-Lehmann ratio with one-sided\n"
        "95 % bounds.\n"
        "  FAIL (10)          a cell is significant, and its lower bound is above --min-effect\n"
        "  PASS (0)           every upper bound is below --min-effect\n"
        "  INCONCLUSIVE (12)  anything else: use more pairs, or a quieter machine\n"
        "If the ping-pong or memory speed differs between the sides, a FAIL is INCONCLUSIVE.\n"
        "There is no PASS if a cell or a training run of base was not judged. Training runs\n"
        "are never judged. Cells that only new has are listed and change nothing.\n"
        "A pair is repeated, at most twice, if the ping-pongs of its two runs differ by more\n"
        "than a factor of 1.5. The times of the cells do not matter for this. A result that is\n"
        "incomplete, has wrong data or a point without valid iterations is an error.\n"
        "\n"
        "--selftest runs gates of one command against itself: A/A gates, and gates with a\n"
        "delay injected into one cell. It reports false alarms, delays found, the noise floor\n"
        "(the smallest --min-effect with which 90 % of A/A gates pass) and the smallest\n"
        "slow-down that 90 % of gates find. With 29 A/A gates or more it stores the noise\n"
        "floor for later gates and comparisons on this machine. An interrupted self-test,\n"
        "or one with more --gates, continues with the next gate. It exits with 12 if there\n"
        "were fewer A/A gates, more than one false alarm in 60, less than 90 % found, or an\n"
        "alarm in the wrong cell.\n"
        "\n"
        "Examples:\n"
        "  ddpbench gate --base './old allreduce -b 64K' --new './new allreduce -b 64K'\n"
        "  ddpbench gate --base 'ddpbench allreduce' --new-env DDPBENCH_SIMD=avx2 \\\n"
        "      --format table,junit=gate.xml\n"
        "  ddpbench gate --selftest --json selftest.json",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_gate_values),
    .help_offset = offsetof(struct ddp_gate_values, help),
    .run = run,
};
