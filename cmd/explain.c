/* `ddpbench explain` says what a number means. Its examples call the functions that compute the
 * number. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "explain_compressed.h"
#include "plain.h"

struct explain_values {
    bool help;
};

static const struct ddp_opt rows[] = {{"help", 'h', DDP_OPT_FLAG,
                                       offsetof(struct explain_values, help), NULL, NULL, "Output",
                                       "this text", 0, 0, NULL, NULL, NULL},
                                      DDP_OPT_END};

/* The all-reduce in the worked examples of busbw and algbw. */
enum { EXAMPLE_RANKS = 4 };
static const double example_bytes = 64 * 0x1p20, example_s = 0.0125;

static void print_factors(FILE *out)
{
    static const int ranks[] = {2, 4, 8};
    fprintf(out, "%-16s", "factor");
    for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++)
        fprintf(out, " %5s%d", "n = ", ranks[i]);
    fputc('\n', out);
    for (int c = 0; c < DDP_COLL_COUNT; c++) {
        fprintf(out, "%-16s", ddp_coll_name((enum ddp_coll)c));
        for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
            double factor = ddp_coll_busbw_factor((enum ddp_coll)c, ranks[i]);
            if (isnan(factor))
                fprintf(out, " %6s", "-");
            else
                fprintf(out, " %6.3f", factor);
        }
        fputc('\n', out);
    }
}

static void explain_busbw(FILE *out)
{
    double algbw = example_bytes / example_s / 1e9;
    double factor = ddp_coll_busbw_factor(DDP_ALLREDUCE, EXAMPLE_RANKS);
    fputs("Bus bandwidth (busbw) says how fast each rank's link must have been, in GB/s\n"
          "(1e9 bytes a second), if the collective moved no more than it has to. It can be\n"
          "compared with what the link is sold for, whatever the number of ranks.\n"
          "\n"
          "    algbw = S / t              S: bytes of the full buffer, t: time of one operation\n"
          "    busbw = algbw * factor(n)  n: ranks\n"
          "\n"
          "S is the buffer each rank holds (allreduce, broadcast, reduce, send-recv), or n\n"
          "times the part of one rank (reduce-scatter, all-gather, all-to-all, gather,\n"
          "scatter).\n"
          "\n"
          "Why 2(n-1)/n for allreduce: to sum one element, the values of n-1 ranks must be\n"
          "sent somewhere; to give the sum to everybody, n-1 ranks must be sent it. That is\n"
          "2(n-1) transfers an element, 2(n-1) S bytes in all; n links share them.\n"
          "Why (n-1)/n: of the n parts of S that a rank ends or begins with, one is its own\n"
          "and need not travel. Why 1: the whole buffer crosses the busiest link once.\n"
          "\n",
          out);
    fprintf(out,
            "Example: an allreduce of 64 MiB (%.0f bytes) on %d ranks takes %.1f ms:\n"
            "    algbw  = %.0f / %.4f s = %.2f GB/s\n"
            "    factor = 2 * (%d - 1) / %d = %.2f\n"
            "    busbw  = %.2f * %.2f = %.2f GB/s\n"
            "\n",
            example_bytes, EXAMPLE_RANKS, example_s * 1e3, example_bytes, example_s, algbw,
            EXAMPLE_RANKS, EXAMPLE_RANKS, factor, algbw, factor, algbw * factor);
    print_factors(out);
    fputs("\n"
          "With one rank nothing is exchanged, and with 0 bytes nothing is moved: neither\n"
          "algbw nor busbw exists then, - in tables, null in JSON. Over shared memory nothing\n"
          "crosses a link: busbw is then a common scale for algorithms, not a speed of\n"
          "anything.\n"
          "Definition: nccl-tests, doc/PERFORMANCE.md.\n",
          out);
}

static void explain_algbw(FILE *out)
{
    fprintf(out,
            "Algorithm bandwidth (algbw) = S / t in GB/s (1e9 bytes a second): the full buffer\n"
            "over the time of one operation. It answers how long a gradient of S bytes takes:\n"
            "\n"
            "    64 MiB in %.1f ms: %.0f / %.4f s = %.2f GB/s\n"
            "\n"
            "It falls with the number of ranks even where every link is as fast as before, so\n"
            "compare different rank counts by busbw: `ddpbench explain busbw`.\n",
            example_s * 1e3, example_bytes, example_s, example_bytes / example_s / 1e9);
}

static void explain_time(FILE *out)
{
    fputs("The time of one iteration is that of a single operation: two readings of one\n"
          "monotonic clock on every rank, after a barrier; of all ranks the largest counts.\n"
          "With --start window ranks wait for an announced moment instead, and the time is from\n"
          "the earliest start to the latest exit on a clock they have synchronised; iterations\n"
          "that a rank began more than 1 us late are invalid and measured again.\n"
          "Rewriting the input and verifying the result lie outside, and from 64 KiB on they\n"
          "begin when all ranks have ended: they slow down nobody whose clock still runs.\n"
          "\n"
          "The table shows the median over the iterations. Its 95 % interval assumes nothing\n"
          "of how the times are distributed: with n iterations it is bounded by two of the\n"
          "sorted times, chosen by the binomial distribution (n = 20: the 6th and the 15th).\n"
          "Below 6 iterations no such pair exists, and the interval is -. Outliers stay.\n"
          "Without -n there are as many as it takes until half the interval is within\n"
          "--precision of the median, looked at after 20, 30, 45, ..., or --max-time is over.\n"
          "\n"
          "Notes of a row. drifting: the times went up or down as they were measured.\n"
          "autocorrelated: slow ones came in runs, so the interval is too narrow. (Either is\n"
          "said of at most 1 in 25 independent series.) invalid:N: of --start window.\n"
          "block:K: K calls in a row as one. injected:P%: made slower on purpose.\n"
          "\n"
          "Points are measured in random order (--order, --seed), so that no drift of the\n"
          "machine looks like an effect of the size. `control` is how fast all ranks at once\n"
          "copy memory of their own, once a launch: where it moves, the machine did.\n"
          "Source: Hoefler & Belli, Scientific Benchmarking of Parallel Computing Systems,\n"
          "SC15.\n",
          out);
}

static void explain_pingpong(FILE *out)
{
    fputs("The ping-pong is the round trip of one cache line between ranks 0 and 1, measured\n"
          "for about 1 ms before and after each point. It tells where the two ranks really\n"
          "sit: on two threads of one core, on two cores of one chip, on two chips. On shared\n"
          "and virtual machines that changes by itself, and it decides what is fast. Compare\n"
          "two points only when their ping-pongs agree.\n",
          out);
}

static void explain_bound(FILE *out)
{
    fputs("The bound answers whether a figure is normal for this machine: the least time that\n"
          "what the algorithm does can take here, measured in the same run, with the same\n"
          "buffers and pages. `bound` in the table is that time in percent of the median.\n"
          "\n"
          "memory          64 KiB and more over shared memory: the bytes the algorithm must\n"
          "                read and write, all ranks together, at the speed all ranks together\n"
          "                copy (b = a) or, where it combines values, copy or add (a += b)\n"
          "                two buffers of that size, in place of half of it, so that the caches\n"
          "                hold as much, with plain or non-temporal stores: whichever is fastest\n"
          "latency         less than 64 KiB over shared memory: the steps the algorithm must\n"
          "                take, one after the other, at half a ping-pong each\n"
          "point-to-point  over messages: 64 KiB and more, the bytes a rank must send at the\n"
          "                speed all ranks at once send such a message to their neighbours;\n"
          "                less, its steps at the time of one such message. What a library's\n"
          "                own collective does is not known: ceil(log2 n) steps, and the bytes\n"
          "                of busbw\n"
          "\n"
          "Percents far below those of neighbouring sizes deserve a look. More than 100 means\n"
          "that the algorithm found in a cache what plain copies of whole buffers did not.\n",
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
    {"bound", explain_bound},
    {"effective", ddp_explain_effective},
    {"break-even", ddp_explain_break_even},
    {"exit-codes", ddp_exit_print},
};

const char *ddp_explain_topic(const void *ctx, int i)
{
    return i < (int)DDP_COUNT_OF(topics) ? topics[i].name : NULL;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    if (parsed->operand_count == 0)
        return ddp_refuse_word("topic", NULL, ddp_explain_topic, NULL, err);
    if (parsed->operand_count > 1)
        return ddp_fail(err, DDP_EUSAGE, "explain takes one topic: '%.64s' is too much",
                        parsed->operands[1]);
    for (size_t i = 0; i < DDP_COUNT_OF(topics); i++) {
        if (strcmp(topics[i].name, parsed->operands[0]) == 0) {
            topics[i].explain(app->out);
            return 0;
        }
    }
    return ddp_refuse_word("explanation of", parsed->operands[0], ddp_explain_topic, NULL, err);
}

const struct ddp_cmd ddp_cmd_explain = {
    .name = "explain",
    .summary = "what a number means and how it is computed",
    .operands = "TOPIC",
    .details = "Topics: busbw, algbw, time, pingpong, bound, effective, break-even, exit-codes.\n",
    .rows = rows,
    .values_bytes = sizeof(struct explain_values),
    .help_offset = offsetof(struct explain_values, help),
    .run = run,
};
