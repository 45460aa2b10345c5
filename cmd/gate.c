/* `ddpbench gate`: is the new one slower than the base? For CI: exits 0, 10 or 12. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench/gate.h"
#include "stats/signflip.h"
#include "verdict_run.h"

struct gate_values {
    struct ddp_verdict_outputs outputs;
    const char *command[2];
    struct ddp_string_list env[2];
    int64_t pairs, seed;
    double min_effect, launch_timeout_s;
    bool quiet, help;
};

#define AT(member) offsetof(struct gate_values, member)

static const struct ddp_opt rows[] = {
    {.name = "base",
     .kind = DDP_OPT_STRING,
     .offset = AT(command[DDP_BASE]),
     .value = "'CMD'",
     .group = "Commands",
     .help = "the one that is known: split into words, no shell; --json FILE is appended, or FILE "
             "put in place of {json}"},
    {.name = "new",
     .kind = DDP_OPT_STRING,
     .offset = AT(command[DDP_NEXT]),
     .value = "'CMD'",
     .group = "Commands",
     .help = "the one in question (default: the same command, for --new-env)"},
    {.name = "base-env",
     .kind = DDP_OPT_STRING_LIST,
     .offset = AT(env[DDP_BASE]),
     .value = "K=V[,...]",
     .group = "Commands",
     .help = "environment of base, beside ours"},
    {.name = "new-env",
     .kind = DDP_OPT_STRING_LIST,
     .offset = AT(env[DDP_NEXT]),
     .value = "K=V[,...]",
     .group = "Commands",
     .help = "environment of new, beside ours"},
    {.name = "launch-timeout",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(launch_timeout_s),
     .value = "S",
     .initial = "3600",
     .group = "Commands",
     .help = "seconds that a launch may take",
     .min = 1,
     .max = 604800},
    {.name = "pairs",
     .kind = DDP_OPT_INT,
     .offset = AT(pairs),
     .value = "N",
     .initial = "12",
     .group = "Statistics",
     .help = "launches of each, in randomised ABBA order; at least log2(cells/0.05)",
     .min = 1,
     .max = DDP_SIGNFLIP_MAX},
    {.name = "min-effect",
     .kind = DDP_OPT_DOUBLE,
     .offset = AT(min_effect),
     .value = "PCT",
     .initial = "5",
     .group = "Statistics",
     .help = "percent of slow-down that matter",
     .min = 0.1,
     .max = 1000},
    {.name = "seed",
     .kind = DDP_OPT_INT,
     .offset = AT(seed),
     .value = "N",
     .initial = "1",
     .group = "Statistics",
     .help = "of the order of launches",
     .max = 9007199254740991.0},
    DDP_VERDICT_ROWS(struct gate_values),
    {.name = "quiet",
     .short_name = 'q',
     .kind = DDP_OPT_FLAG,
     .offset = AT(quiet),
     .group = "Output",
     .help = "no progress on stderr"},
    {.name = "help",
     .short_name = 'h',
     .kind = DDP_OPT_FLAG,
     .offset = AT(help),
     .group = "Output",
     .help = "this text; runs nothing"},
    DDP_OPT_END,
};

struct progress {
    struct ddp_app *app;
    bool shown, terminal;
};

static void on_launch(void *arg, int pair, int pairs, int side)
{
    struct progress *p = arg;
    if (!p->terminal)
        return;
    fprintf(stderr, "\r\033[Kgate: pair %d of %d, %s", pair + 1, pairs,
            side == DDP_BASE ? "base" : "new");
    fflush(stderr);
    p->shown = true;
}

static int make_side(const struct gate_values *v, int which, const char **env,
                     struct ddp_gate_side *side, struct ddp_err *err)
{
    const struct ddp_string_list *list = &v->env[which];
    for (int i = 0; i < list->n; i++) {
        if (list->v[i][0] == '=' || !strchr(list->v[i], '='))
            return ddp_fail(err, DDP_EUSAGE, "'%s' is no K=V", list->v[i]);
        env[i] = list->v[i];
    }
    side->text = v->command[which] ? v->command[which] : v->command[DDP_BASE];
    side->env = env;
    return ddp_words_split(side->text, &side->words, err);
}

/* A verdict that could never be FAIL is refused before hours are spent: known once the first base
 * launch has said how many cells there are. */
static int enough_pairs(const struct ddp_gate_data *data, struct ddp_err *err)
{
    size_t least = ddp_signflip_least_pairs(data->count, DDP_VERDICT_LEVEL);
    if ((size_t)data->pairs >= least)
        return 0;
    ddp_fail(err, DDP_EUSAGE, "%d pairs can never show a slow-down of one of %zu cells",
             data->pairs, data->count);
    return ddp_hint(err, "--pairs %zu or more: 2^-pairs x cells must not exceed %.2f", least,
                    DDP_VERDICT_LEVEL);
}

static int measure(struct ddp_app *app, const struct gate_values *v, struct ddp_gate_setup *setup,
                   struct ddp_verdict_record *verdict, struct ddp_err *err)
{
    struct progress progress = {.app = app, .terminal = !v->quiet && isatty(STDERR_FILENO)};
    struct ddp_gate_data data = {.count = 0};
    setup->on_launch = on_launch;
    setup->arg = &progress;
    setup->check = enough_pairs;
    int rc = ddp_gate_measure(setup, &data, err);
    if (progress.shown)
        fputs("\r\033[K", stderr);
    DDP_TRY(rc);
    rc = ddp_gate_judge(setup, &data, verdict, err);
    ddp_gate_release(&data);
    return rc;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct gate_values *v = values;
    const char *env[2][DDP_OPT_LIST_MAX + 1] = {{NULL}};
    char folder[] = "/tmp/ddpbench-gate-XXXXXX";
    struct ddp_verdict_record verdict = {.count = 0};
    struct ddp_record record;
    struct ddp_report_set *reports;
    int rc;
    if (parsed->operand_count > 0)
        return ddp_fail(err, DDP_EUSAGE, "gate takes no operand: '%s'", parsed->operands[0]);
    if (!v->command[DDP_BASE])
        return ddp_fail(err, DDP_EUSAGE, "gate needs --base 'CMD'");
    struct ddp_gate_setup setup = {.pairs = (int)v->pairs,
                                   .seed = (uint64_t)v->seed,
                                   .min_effect = v->min_effect / 100,
                                   .launch_timeout_ns = (int64_t)(v->launch_timeout_s * 1e9)};
    DDP_TRY_GOTO(make_side(v, DDP_BASE, env[DDP_BASE], &setup.side[DDP_BASE], err), out_words);
    DDP_TRY_GOTO(make_side(v, DDP_NEXT, env[DDP_NEXT], &setup.side[DDP_NEXT], err), out_words);
    DDP_TRY_GOTO(ddp_verdict_begin(app, &v->outputs, v->seed, &record, &reports, err), out_words);
    setup.folder = mkdtemp(folder);
    if (setup.folder)
        rc = measure(app, v, &setup, &verdict, err);
    else
        rc = ddp_fail(err, DDP_ECREATE, "cannot make a folder for the launches in /tmp");
    rc = ddp_verdict_finish(&record, reports, rc == 0 ? &verdict : NULL, rc, err);
    if (setup.folder)
        rmdir(setup.folder);
out_words:
    free(verdict.cells);
    ddp_words_release(&setup.side[DDP_BASE].words);
    ddp_words_release(&setup.side[DDP_NEXT].words);
    return rc;
}

extern const struct ddp_cmd ddp_cmd_gate;
const struct ddp_cmd ddp_cmd_gate = {
    .name = "gate",
    .summary = "is the new one slower than the base? For CI: exits 0, 10 or 12",
    .operands = "",
    .details = "Runs both commands as randomised ABBA pairs of launches. Each launch gives one\n"
               "median a cell (point). Per cell: an exact one-sided sign-flip test on the log\n"
               "ratios, corrected by Holm for all cells; a Hodges-Lehmann ratio with one-sided\n"
               "95 % bounds.\n"
               "  FAIL (10)          a cell is significant, its lower bound above --min-effect\n"
               "  PASS (0)           every upper bound lies below --min-effect\n"
               "  INCONCLUSIVE (12)  anything else: more pairs, or a quieter machine\n"
               "A pair whose ping-pong class changed is run again, at most twice, before its\n"
               "times are looked at.\n"
               "\n"
               "Examples:\n"
               "  ddpbench gate --base './old allreduce -b 64K' --new './new allreduce -b 64K'\n"
               "  ddpbench gate --base 'ddpbench allreduce' --new-env DDPBENCH_SIMD=avx2 \\\n"
               "      --format table,junit=gate.xml",
    .rows = rows,
    .values_bytes = sizeof(struct gate_values),
    .help_offset = offsetof(struct gate_values, help),
    .run = run,
};
