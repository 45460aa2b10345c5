/* explain: what a number means, with the formula that computes it here. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cmd.h"

struct explain_values {
    bool help;
};

static const struct ddp_opt rows[] = {{"help", 'h', DDP_OPT_FLAG,
                                       offsetof(struct explain_values, help), NULL, NULL, "Output",
                                       "this text", 0, 0, NULL, NULL, NULL},
                                      DDP_OPT_END};

static void explain_busbw(FILE *out)
{
    const double bytes = 64 * 0x1p20, seconds = 0.0125;
    const int n = 4;
    double algbw = bytes / seconds / 1e9;
    double factor = ddp_coll_busbw_factor(DDP_ALLREDUCE, n);
    fputs("Bus bandwidth (busbw): what every rank's link carried, in GB/s (1e9 bytes), if the "
          "collective moved\n"
          "no more than it must. It can be compared with the speed of the link, whatever the "
          "number of ranks.\n\n"
          "    algbw = S / t              S: the full buffer in bytes, t: time of one operation\n"
          "    busbw = algbw * factor(n)  n: ranks\n\n"
          "Why the factor, for an all-reduce: each of the n parts of the buffer must leave n-1 "
          "ranks to be summed\n"
          "and reach n-1 ranks afterwards: 2(n-1) S/n bytes through each rank's link.\n"
          "For the (n-1)/n family S is n times the per-rank part: one part is there already.\n"
          "On shared memory nothing crosses a link: busbw is then a common scale for comparing "
          "algorithms.\n\n",
          out);
    fprintf(out,
            "Example: an all-reduce of 64 MiB (67108864 bytes) on %d ranks in %.1f ms:\n"
            "    algbw = 67108864 / %.4f s = %.2f GB/s; factor = 2(%d-1)/%d = %.2f; busbw = %.2f "
            "GB/s\n\n",
            n, seconds * 1e3, seconds, algbw, n, n, factor, algbw * factor);
    fprintf(out, "%-16s %8s %8s %8s\n", "factor", "n = 2", "n = 4", "n = 8");
    for (int c = 0; c < DDP_BARRIER; c++)
        fprintf(out, "%-16s %8.3f %8.3f %8.3f\n", ddp_coll_name((enum ddp_coll)c),
                ddp_coll_busbw_factor((enum ddp_coll)c, 2),
                ddp_coll_busbw_factor((enum ddp_coll)c, 4),
                ddp_coll_busbw_factor((enum ddp_coll)c, 8));
    fputs("\nWith one rank nothing is exchanged and busbw does not exist (null in JSON, - in "
          "tables).\n"
          "Definition and factors: nccl-tests, doc/PERFORMANCE.md.\n",
          out);
}

static void explain_algbw(FILE *out)
{
    fputs("Algorithm bandwidth (algbw) = S / t in GB/s (1e9 bytes): the full buffer over the time "
          "of one\n"
          "operation. It says how long a gradient of S bytes takes; it falls with the number of "
          "ranks even when\n"
          "every link is as fast as before. For that comparison see `ddpbench explain busbw`.\n",
          out);
}

static void explain_time(FILE *out)
{
    fputs("Time of one iteration: the operation alone, between two readings of one monotonic "
          "clock, started after\n"
          "a barrier; of all ranks the largest. Verification and rewriting of buffers happen "
          "outside.\n"
          "The table shows the median over iterations; the 95 % interval is exact and needs no "
          "distribution\n"
          "(binomial order statistics; from 6 iterations on). Outliers stay in.\n",
          out);
}

static void explain_pingpong(FILE *out)
{
    fputs("Ping-pong: the round trip of one cache line between ranks 0 and 1, taken for about 1 ms "
          "before and after\n"
          "each point. It tells where the two ranks really sit (two threads of a core, a shared "
          "cache, two chips),\n"
          "which on shared or virtual machines changes by itself and decides what is fast. Compare "
          "two points only\n"
          "when their ping-pongs agree.\n",
          out);
}

static const struct {
    const char *name;
    void (*explain)(FILE *out);
} topics[] = {
    {"busbw", explain_busbw},
    {"algbw", explain_algbw},
    {"time", explain_time},
    {"pingpong", explain_pingpong},
};

static const char *topic_word(const void *ctx, int i)
{
    (void)ctx;
    return i < (int)DDP_COUNT_OF(topics) ? topics[i].name : NULL;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    (void)values;
    if (parsed->operand_count != 1) {
        ddp_fail(err, DDP_EUSAGE, "explain takes one topic");
        return ddp_hint(err, "topics: busbw, algbw, time, pingpong");
    }
    for (size_t i = 0; i < DDP_COUNT_OF(topics); i++) {
        if (strcmp(topics[i].name, parsed->operands[0]) == 0) {
            topics[i].explain(app->out);
            return 0;
        }
    }
    const char *near = ddp_nearest(parsed->operands[0], topic_word, NULL);
    ddp_fail(err, DDP_EUSAGE, "no explanation of '%s'", parsed->operands[0]);
    return ddp_hint(err, "%s%s%stopics: busbw, algbw, time, pingpong", near ? "did you mean '" : "",
                    near ? near : "", near ? "'? " : "");
}

const struct ddp_cmd ddp_cmd_explain = {
    .name = "explain",
    .summary = "what a number means and how it is computed: busbw, algbw, time, pingpong",
    .operands = "TOPIC",
    .rows = rows,
    .values_bytes = sizeof(struct explain_values),
    .help_offset = offsetof(struct explain_values, help),
    .run = run,
};
