/* `ddpbench explain` says what a number means. If lib/ has a function that computes the
 * number, the example calls it, so that text and code agree. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "plain.h"
#include "record/quality.h"
#include "report/legend.h"
#include "run/catalog.h"

#define EXPLAIN_COLUMNS 80 /* length of the lines */

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
          "(1e9 bytes per second), if the collective moved no more data than necessary. It\n"
          "can be compared with the nominal speed of the link, for any number of ranks.\n"
          "\n"
          "    algbw = S / t              S: bytes of the full buffer\n"
          "    busbw = algbw * factor(n)  t: time of one operation, n: ranks\n"
          "\n"
          "S is the buffer each rank holds (allreduce, broadcast, reduce, send-recv), or n\n"
          "times the chunk of one rank (reduce-scatter, all-gather, all-to-all, gather,\n"
          "scatter), or the mean size of what a rank sends (all-to-all-v), or the size of\n"
          "all parts together (all-gather-v, reduce-scatter-v).\n"
          "\n"
          "Why 2(n-1)/n for allreduce: to sum one element, the values of n-1 ranks must be\n"
          "sent somewhere, and the sum must then be sent to n-1 ranks. That is 2(n-1)\n"
          "transfers per element and 2(n-1) S bytes in all, which n links share.\n"
          "Why (n-1)/n: S consists of n chunks, and a rank that sends or receives all of\n"
          "them needs no transfer for its own chunk. Why 1: all of S crosses the busiest\n"
          "link once.\n"
          "\n"
          "In all-to-all-v, all-gather-v and reduce-scatter-v parts may have different\n"
          "sizes (--split). B is the number of bytes of the busiest rank. In an\n"
          "all-to-all-v it is the largest number of bytes that any rank sends to other\n"
          "ranks, or receives from them. In an all-gather-v it is the largest number that\n"
          "any rank must receive: all parts but its own. In a reduce-scatter-v it is the\n"
          "largest number that any rank must send: its inputs of all parts but its own.\n"
          "busbw is B / t, so it counts the bytes that were moved. The imbalance is B\n"
          "divided by the mean number of bytes that a rank receives from other ranks, or in\n"
          "a reduce-scatter-v must send to them. If all parts are equal, the imbalance is\n"
          "1, and busbw is algbw * (n-1)/n. With --split zipf:S a rank of an all-to-all-v\n"
          "has a random order of the receivers, which depends on --seed. The k-th receiver\n"
          "gets a share proportional to 1/k^S. In the other two collectives, the k-th rank\n"
          "in a random order has such a share.\n"
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
          "With one rank nothing is exchanged, and with 0 bytes nothing is moved. Then\n"
          "algbw and busbw do not exist: tables show -, and JSON has null. Over shared\n"
          "memory no data crosses a link: busbw then serves to compare algorithms and is\n"
          "not the speed of a link.\n"
          "Definition: nccl-tests, doc/PERFORMANCE.md.\n",
          out);
}

static void explain_algbw(FILE *out)
{
    fprintf(out,
            "Algorithm bandwidth (algbw) = S / t in GB/s (1e9 bytes per second): the full\n"
            "buffer divided by the time of one operation. It tells how long S bytes of\n"
            "gradients take:\n"
            "\n"
            "    64 MiB in %.1f ms: %.0f / %.4f s = %.2f GB/s\n"
            "\n"
            "For most collectives algbw falls with the number of ranks even if every link\n"
            "keeps its speed, so compare different rank counts by busbw: `ddpbench explain\n"
            "busbw`.\n",
            example_s * 1e3, example_bytes, example_s, example_bytes / example_s / 1e9);
}

static void explain_time(FILE *out)
{
    fputs("The time of one iteration is that of a single operation. After a barrier, every\n"
          "rank reads a monotonic clock before and after the operation, and the largest of\n"
          "the ranks' times counts. With --start window the ranks wait for an agreed time\n"
          "instead, and the time runs from the earliest start to the latest exit, on clocks\n"
          "that the ranks have synchronised. An iteration that a rank began more than 1 us\n"
          "late is invalid and is measured again. Rewriting the input and verifying the\n"
          "result are not timed. With messages of 64 KiB or more they begin only when all\n"
          "ranks have finished the operation, so that they do not slow down a rank that is\n"
          "still timed.\n"
          "\n"
          "The table shows the median over the iterations. Its 95 % interval assumes\n"
          "nothing about the distribution of the times: with n iterations it is bounded by\n"
          "two of the sorted times, chosen by the binomial distribution (n = 20: the 6th\n"
          "and the 15th). Below 6 iterations no such pair exists, and the interval is -.\n"
          "Outliers are kept. Without -n a point is measured until half the width of the\n"
          "interval is at most --precision times the median (checked after 20, 30, 45, ...\n"
          "iterations), --max-time is over, or there are 10000 iterations.\n"
          "\n"
          "Documents also say whether slow iterations followed each other (autocorrelated);\n"
          "the interval is then too narrow. They also say how many iterations of --start\n"
          "window were invalid. The tests for drift and for autocorrelation give a false\n"
          "alarm for at most 1 in 25 series whose iterations are independent.\n"
          "\n"
          "Points are measured in random order (--order, --seed), so that drift of the\n"
          "machine does not look like an effect of the size. `control` in a result is the\n"
          "speed at which all ranks together copy private memory. It is measured for each\n"
          "rank count and each launch. If it changes, the machine has changed.\n"
          "Source: Hoefler & Belli, Scientific Benchmarking of Parallel Computing Systems,\n"
          "SC15.\n",
          out);
}

static void explain_pingpong(FILE *out)
{
    fputs("The ping-pong is the round trip of one cache line between ranks 0 and 1, or of\n"
          "one 8-byte message if the ranks do not share memory. It is measured for at most\n"
          "about 1 ms before and after each point. It shows where the two ranks really run:\n"
          "on two threads of one core, on two cores of one chip, on two chips, or on two\n"
          "hosts. On shared and virtual machines this placement changes without notice, and\n"
          "it decides which algorithm is fast. Compare two points only if their ping-pong\n"
          "times agree.\n",
          out);
}

static void explain_bound(FILE *out)
{
    fputs("The bound is the least time that this machine needs for the collective, in\n"
          "percent of the measured median time, so 100 is as good as this machine allows.\n"
          "It is (1) in shared memory, from 64 KiB on, the time in which all ranks read\n"
          "their inputs once and write their results once, with plain loops that do not\n"
          "wait for other ranks, (2) in shared memory, below 64 KiB, the latency of the\n"
          "algorithm's steps, and (3) with messages, the time that neighbours need for the\n"
          "algorithm's bytes, or below 64 KiB for its steps. It is measured before and\n"
          "after each point, in the buffers of the point, and the shorter time counts, so a\n"
          "figure above 103 means that other programs disturbed both measurements.\n",
          out);
}

static void explain_gate(FILE *out)
{
    fputs("`ddpbench gate` runs the commands base and new in pairs, one after the other,\n"
          "and compares their times. A cell is one size, algorithm and so on. Its ratio is\n"
          "the time of new divided by that of base: 1.10 means that new takes 10 % longer.\n"
          "The bounds (lower, upper) say how sure that is. Each is wrong in at most 5 % of\n"
          "all gates.\n"
          "\n"
          "slower      The lower bound is above 1 + --min-effect, and the difference is\n"
          "            significant after the correction for the number of cells (Holm).\n"
          "not slower  The upper bound is below 1 + --min-effect. The ratio may be far\n"
          "            below 1.\n"
          "faster      The upper bound is below 1 / (1 + --min-effect).\n"
          "uncertain   The upper bound is above 1 + --min-effect: the pairs do not exclude\n"
          "            a slow-down that counts. Or the gate was interrupted.\n"
          "\n"
          "FAIL (exit code 10): a cell is slower. PASS (0): every cell is either faster or\n"
          "not slower. INCONCLUSIVE (12): anything else. More pairs narrow the bounds\n"
          "(--max-pairs, or --pairs for a fixed number). So does a machine on which nothing\n"
          "else runs: `ddpbench doctor` shows its load. `ddpbench gate --selftest` measures\n"
          "the noise floor, which is the smallest --min-effect that this machine can judge.\n"
          "After Ctrl-C a gate shows the ratios of its finished pairs, without a verdict.\n",
          out);
}

/* Prints a text in lines of at most 80 columns, indented by `indent`. */
static void print_wrapped(const char *text, int indent, FILE *out)
{
    struct ddp_strbuf lines = DDP_STRBUF_INIT;
    ddp_strbuf_pad(&lines, (size_t)indent);
    ddp_strbuf_wrap_line(&lines, text, indent, 80, indent);
    fputs(lines.failed ? text : lines.text, out);
    ddp_strbuf_release(&lines);
}

static void print_quality(enum ddp_quality code, FILE *out)
{
    fprintf(out, "%s\n", ddp_quality_names[code]);
    print_wrapped(ddp_quality_meaning(code), 4, out);
    print_wrapped(ddp_quality_advice(code), 4, out);
}

static void explain_quality(FILE *out)
{
    fputs("The quality of a point is a list of codes. Each code names something that makes\n"
          "the times of the point doubtful. The list is empty if nothing was found. Every\n"
          "output format shows the codes: table, csv and markdown have a column `quality`,\n"
          "json and jsonl have a key `quality`, and the others have a label or a comment.\n"
          "Follow the advice before you compare or publish a doubtful point. Wrong results\n"
          "have no code, because they end the run with an error.\n",
          out);
    for (int c = 0; c < DDP_QUALITY_COUNT; c++) {
        fputc('\n', out);
        print_quality((enum ddp_quality)c, out);
    }
    fputs("\nA point is compared only with points that were measured before it in the same\n"
          "run, so its codes do not change later.\n",
          out);
}

/* The worked example: topk:0.01 of 64 MiB on 4 ranks takes 40 ms. */
static const double sparse_example_ns = 40e6;
static const uint64_t sparse_example_bytes = 64u << 20;

static void example_point(struct ddp_point *p)
{
    ddp_point_init(p);
    p->spec.coll = DDP_ALLREDUCE;
    p->spec.ranks = EXAMPLE_RANKS;
    p->spec.size_bytes = sparse_example_bytes;
    p->spec.count = sparse_example_bytes / sizeof(float);
    snprintf(p->spec.compress, sizeof p->spec.compress, "topk:0.01");
}

static void explain_effective(FILE *out)
{
    struct ddp_point p;
    example_point(&p);
    fputs("A compressed or partial all-reduce moves fewer bytes than the buffer has, so its\n"
          "bus bandwidth would mean nothing. Its effective bandwidth (eff, effective_GBps)\n"
          "is the bus bandwidth that a dense all-reduce would need to finish in the same\n"
          "time:\n"
          "\n"
          "    effective = S / t * 2(n-1)/n    S: bytes of the dense f32 buffer, n: ranks,\n"
          "                                    t: encode + exchange + decode\n"
          "\n",
          out);
    fprintf(out,
            "Example: topk:0.01 of 64 MiB on %d ranks takes %.0f ms:\n"
            "    %llu / %.3f s * %.2f = %.2f GB/s\n"
            "\n",
            EXAMPLE_RANKS, sparse_example_ns / 1e6, (unsigned long long)sparse_example_bytes,
            sparse_example_ns / 1e9, ddp_coll_busbw_factor(DDP_ALLREDUCE, EXAMPLE_RANKS),
            ddp_point_effective_GBps(&p, sparse_example_ns));
    fputs("Compare it with the busbw (`ddpbench explain busbw`) of a dense all-reduce of\n"
          "the same size and ranks: the larger one is faster. The columns `x f32` and\n"
          "`x f16` are the ratios to dense exchanges that were measured just before or\n"
          "after the point.\n"
          "\n"
          "phase_us: the times of encode (select or convert, with error feedback), exchange\n"
          "and decode. Each is the median of the slowest rank's times, so they need not add\n"
          "up to the total. sent, wire_bytes_per_rank: the bytes of the rank that sent\n"
          "most. They are counted if an algorithm of ddpbench sends messages. Where ranks\n"
          "read each other's memory, they are the bytes that other ranks read. On GPUs, and\n"
          "where a library does the exchange, they are a model of what a ring would send.\n"
          "density: the values that a rank sent in one exchange, as a fraction of the whole\n"
          "buffer. With --partial K, an exchange covers one of K chunks. overflows: finite\n"
          "values that became infinite in 16 bits.\n",
          out);
}

static void print_densities(FILE *out)
{
    static const int ranks[] = {2, 4, 8, 16};
    double f32, f16;
    struct ddp_point p;
    example_point(&p);
    fprintf(out, "%-12s", "by bytes");
    for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++)
        fprintf(out, " %8s%2d", "n = ", ranks[i]);
    fputc('\n', out);
    for (int i = 0; ddp_catalog_break_even(i, &p.spec, &f32, &f16); i++) {
        fprintf(out, "%-12s", ddp_catalog_break_even(i, &p.spec, &f32, &f16));
        for (size_t r = 0; r < DDP_COUNT_OF(ranks); r++) {
            p.spec.ranks = ranks[r];
            (void)ddp_catalog_break_even(i, &p.spec, &f32, &f16);
            fprintf(out, "  %.2f/%.2f", f32, f16);
        }
        fputc('\n', out);
    }
}

static void explain_break_even(FILE *out)
{
    fputs("The break-even density of a sparse exchange (topk, threshold, oktopk) is the\n"
          "share of values below which the exchange takes less time than a dense one. 0\n"
          "means that it is never faster, 1 that it is always faster. There is one density\n"
          "against dense f32 and one against fp16. The one against fp16 is the fairer\n"
          "comparison, because fp16 halves the bytes at almost no cost.\n"
          "\n"
          "predicted   from bytes alone. A dense ring sends 2 (n-1)/n S bytes per rank. If\n"
          "            every rank sends k of N values with their indices to all others, it\n"
          "            sends 8 k (n-1) bytes, so k/N = 1/n against f32 and 1/(2n)\n"
          "            against fp16. Above a density of 1/32 a bitmap is smaller than\n"
          "            indices, and k/N against f32 is about 2/n - 1/32.\n"
          "estimated   from the times of this point. The assumption is that encode takes\n"
          "            the same time at every density, and that the times of exchange and\n"
          "            decode are proportional to the density.\n"
          "measured    with --break-even. The exchange is timed at densities from 1e-4 to\n"
          "            1. Bisection finds the density at which it takes as long as a dense\n"
          "            one.\n"
          "\n",
          out);
    print_densities(out);
    fputs("(against f32/against fp16)\n"
          "\n"
          "If compression does not pay off, the table names the link speed below which it\n"
          "would. This speed is the number of bytes that compression saves against a dense\n"
          "ring, divided by the extra time of its arithmetic. The extra time is that of\n"
          "encode and decode. Over shared memory no data crosses a link, so the extra time\n"
          "is the difference between the compressed and the dense time. Shared memory is so\n"
          "fast that compression seldom pays off there.\n"
          "Sources: Li & Hoefler, Ok-Topk, PPoPP 2022; Agarwal et al., On the Utility of\n"
          "Gradient Compression, MLSys 2022 (compression won in 6 of 200 set-ups).\n",
          out);
}

static void explain_columns(FILE *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    fputs("On a terminal, the first line has the values that are the same in all rows. The\n"
          "table then has the columns that vary, as far as they fit. The table has all\n"
          "columns with --wide, and if the output is a pipe or a file. A value that does\n"
          "not exist is -.\n",
          out);
    for (int table = 0; table < DDP_LEGEND_COUNT; table++) {
        ddp_strbuf_addf(&text, "\n%s:\n", ddp_legend_title((enum ddp_legend)table));
        ddp_legend_add((enum ddp_legend)table, NULL, 0, "  ", EXPLAIN_COLUMNS, &text);
    }
    if (text.text && !text.failed)
        fputs(text.text, out);
    ddp_strbuf_release(&text);
}

static void explain_cell(FILE *out)
{
    print_wrapped(
        "A cell is what `gate` and `compare` judge: a time that exists in both results. It is the "
        "median time of a point, the step time of a training run, the wall time of a command (gate "
        "--metric wall), or a value that another benchmark reports (--read). The cells of the two "
        "sides are matched by their ids. The id of a point names the collective, backend, "
        "algorithm, type, operation, root, placement, memory, number of ranks, size, compression "
        "and the --partial count, for example "
        "allreduce/shm/auto/f32/sum/r0/in/registered/n2/65536/none/0. --vary leaves keys out of "
        "the ids, so that cells which differ in these keys match. The verdict holds for all cells "
        "together: the p values are corrected by Holm for their number.",
        0, out);
}

static void explain_baseline(FILE *out)
{
    print_wrapped("A baseline is what a figure is compared with. There are four.", 0, out);
    print_wrapped("dense exchange: `--compress` and `--partial` also time dense all-reduces of f32 "
                  "and fp16, with the algorithm of `auto` or with another one that was faster in a "
                  "short trial. `x f32` and `x f16` refer to these times.",
                  0, out);
    print_wrapped("base: `gate` and `compare` judge NEW against BASE, and `train --compare` judges "
                  "each strategy against 'dense', or against the first one if there is no dense.",
                  0, out);
    print_wrapped(
        "one rank: if `train` has more than one run and more than one rank, rank 0 first trains "
        "60 steps alone. The speed-up is images/s of all ranks divided by images/s of this "
        "baseline.",
        0, out);
    print_wrapped(
        "memory baseline: the speed at which all ranks together copy and read memory of their own. "
        "If it changed between two results, the machine has changed. JSON calls it `control`.",
        0, out);
}

static void explain_exposed(FILE *out)
{
    print_wrapped(
        "The exposed time of a training step is the part of the exchange in which the computation "
        "waits. Without --overlap the whole exchange is exposed. With --overlap on, full buckets "
        "of gradients are exchanged while the backward pass computes the next ones, and only the "
        "rest is exposed: the wait at the end of the backward pass. A step takes its computation "
        "plus its exposed time, so compression can save no more than the exposed time. The figures "
        "of an epoch (exposed_seconds) and of a step (exposed_seconds_per_step) are means over the "
        "ranks.",
        0, out);
}

static void explain_auto(FILE *out)
{
    print_wrapped(
        "--algorithm auto takes the first row of a fixed table that fits the collective, the "
        "number of ranks, the memory of the buffers, the hosts and the size. It depends on no "
        "measurement of the run. --explain-auto prints the rows for a collective with the reason "
        "of each, and the column `algorithm` shows which one ran. For sparse lists (topk, "
        "threshold, oktopk) auto compares the computed costs of the algorithms. --algorithm all "
        "measures every algorithm, so you can check the choice. --backend auto takes nccl if (1) "
        "an "
        "option was given that works only with nccl, or (2) the command can use GPUs, the ranks "
        "are "
        "processes, and there is a GPU for each of them (at least two GPUs if ddpbench starts the "
        "ranks). Otherwise it takes mpi if mpiexec or srun started the ranks, ucx if their "
        "launcher "
        "provides no PMI (such as torchrun), and shm if ddpbench starts them on this host.",
        0, out);
}

static void explain_sync(FILE *out)
{
    print_wrapped(
        "`train --sync` chooses how the ranks keep their models alike; `ddpbench list sync` shows "
        "every strategy. dense averages all gradients over the global batch in each step, so the "
        "ranks train like one rank with the whole batch, except for rounding. zero1 also shards "
        "the optimiser state. fp16 and bf16 send half the bytes, q8, fp8-e4m3 and fp8-e5m2 a "
        "quarter, q4 an eighth, sign a bit per gradient. +sr rounds stochastically. powersgd:R "
        "sends two "
        "factors of each weight. topk, threshold and oktopk send only large gradients and keep the "
        "rest for later (--feedback). With partial:K, local:H and diloco:H each rank takes "
        "its own steps, and parameters are averaged: one of K chunks after each step, or all of "
        "them every H steps. diloco then adds momentum. none exchanges nothing. All except "
        "dense and zero1 change what is learned, so compare accuracies: train --compare "
        "dense,topk:0.01 --seeds 1,2.",
        0, out);
}

static void explain_topk(FILE *out)
{
    print_wrapped(
        "topk:D sends the fraction D of the values: of n values of a bucket, the D*n values of "
        "largest magnitude (rounded up). Among equal magnitudes the lower index is sent. The "
        "values that are not sent are added to the next gradient (error feedback, on unless "
        "--feedback off). A list has an index and a value per entry, 8 bytes, or a bitmap if that "
        "is shorter. Each rank receives the lists of all P ranks and sums them, so a rank sends up "
        "to 8*D*n*(P-1) bytes. This is less than a dense ring sends if D is below about 1/P. With "
        "a "
        "bitmap, the limit is about 2/P - 1/32. oktopk:D also "
        "selects among the sums and sends fewer bytes with many ranks. threshold:T sends every "
        "value of magnitude T or more, so the number of values varies. `ddpbench explain "
        "break-even` says when a sparse exchange pays.",
        0, out);
}

static void explain_health(FILE *out)
{
    print_wrapped(
        "`ddpbench health` measures every pair of hosts (of ranks, if there is one host) in 3 to 9 "
        "passes, and lets each rank time a fixed computation of about 0.1 s and a memory copy. The "
        "figures are compared on a logarithmic scale. Healthy values share a level, and a fault "
        "makes all values of its place slower: of a host, of its sending or receiving, of a link, "
        "of one direction, or of a rank. The search explains the measured values by as few faults "
        "as possible, and names each of several faults. A fault becomes a finding if the lower end "
        "of "
        "its interval is above the smallest slow-down that counts (--min-effect 10 %, "
        "--min-latency 20 us, 0.1 % of TCP segments sent again).",
        0, out);
    fputs("\n", out);
    print_wrapped(
        "No limit is chosen by hand. The interval follows from the scatter over the passes and "
        "between the peers, with Bonferroni's correction for all places and figures, so that at "
        "most 1 % of healthy runs are DEGRADED if the scatter is normal. For each figure the "
        "output says which slow-down would have been found with a probability of 90 %. HEALTHY "
        "needs a bandwidth and a "
        "computation for which this is at most --must-find (100 %: a factor of 2). Otherwise the "
        "verdict is CANNOT TELL.",
        0, out);
    fputs("\n", out);
    print_wrapped(
        "There are two kinds of comparison: with the peers in the job, and with the document of an "
        "earlier healthy run (--reference). The speed of the network interfaces is reported but "
        "does not decide. Two hosts have no third one as a peer. They show only a difference "
        "between their two directions. The finding then names the direction. It names a host only "
        "if one of the two interfaces is slower. With --reference, a finding between two hosts "
        "names the direction or the link. The speed between ranks of one host depends on their "
        "cores, so on one host only computation and memory copy have peers. HEALTHY then needs no "
        "bandwidth, unless there is a --reference. A reference of one host is not compared with "
        "pairs of hosts. Latency is judged only "
        "between ranks that had at least 90 % of a core for their computation.",
        0, out);
}

static void explain_isolate(FILE *out)
{
    print_wrapped(
        "`ddpbench isolate` finds faults that show only under the load of a collective, by group "
        "testing. The ends are the hosts, or the ranks of one host. In a round, disjoint groups of "
        "equal size run the same collective at the same time. The time of a group is that of its "
        "slowest rank, as the median of 5 to 49 repetitions. A slow end slows down every group "
        "that it is in. A slow link slows down the groups with both of its ends.",
        0, out);
    fputs("\n", out);
    print_wrapped(
        "The first rounds bring every pair of ends into a group together. From 25 ends on, they "
        "are the parallel classes of an affine plane, so that 1,024 ends need 8 rounds with 7 "
        "groups. The level of the healthy groups is the median, so most groups must be healthy. A "
        "group is slow if it exceeds the level by --min-effect and by four times the scatter. "
        "Further rounds halve the sets that must contain a fault. Before a host or link is named, "
        "it takes turns with a healthy one in the same groups of partners: its groups must always "
        "be slow, those of the healthy one never. Then the pairs that the fault may have hidden "
        "are tested. 40 rounds almost always suffice for two faults among 1,024 ends. If they do "
        "not, the verdict has what is known.",
        0, out);
    fputs("\n", out);
    print_wrapped(
        "A slow link carries only a part of the traffic of its group, so it makes a large group "
        "little slower; `ddpbench health` measures links directly. An allreduce may not use all "
        "links of a group, but an all_to_all does. Two or three ends give CANNOT TELL: a slow link "
        "between two hosts cannot be told from a slow host, and among three hosts one slow host "
        "cannot be told from one fast pair. If ranks share cores, only slow-downs of 4 times and "
        "more count, because any other program can slow down one of them.",
        0, out);
}

static void explain_straggler(FILE *out)
{
    print_wrapped(
        "A straggler is a rank for which the other ranks wait. A point, and in `train` an epoch "
        "and a run, name at most one rank, with its host, the cause, the fraction of the "
        "iterations in which it was the last one (share), the 95 % interval of the time by which "
        "it was later than the second-last rank (late_us), and the fraction of the time that this "
        "cost (cost). JSON has all of them under `straggler`, which is null if no rank is named.",
        0, out);
    fputs("\n"
          "    compute   The rank entered the operation late. In `train`, its computation\n"
          "              was longer.\n"
          "    core      The processor core was taken from the rank, by another program or\n"
          "              by a quota of its control group.\n"
          "    link      The ranks entered together, and the rank left late.\n"
          "\n",
          out);
    print_wrapped(
        "The entry and the exit of every rank are times on one clock. A rank is named only if "
        "it is last more often and by more than chance explains, at a level of 2 % for all ranks "
        "and causes together, and if it costs at least 3 % of the time. A delay must also "
        "exceed twice the ping-pong and the error of the clocks. The core time is read at most "
        "once per millisecond. It is the time that has passed minus the processor time of the "
        "rank. A rank that waits for other ranks gives up its core, and this time does not count. "
        "On a busy machine, cores are taken from all ranks. Then the cause is core only if the "
        "rank lost a larger fraction of its time than the others.",
        0, out);
    fputs("\n", out);
    print_wrapped(
        "Exits are compared only in collectives without a root and among at least 3 ranks. In a "
        "broadcast the root leaves first, and a link between 2 ranks belongs to both. The rank "
        "must leave later than the others by more than twice the spread of the others. A late "
        "exit names the rank that received late, and the slow link may be that of its "
        "neighbour: `ddpbench health` compares the links. If ranks share cores, it is normal that "
        "a core is taken from a rank, so this alone names no rank.",
        0, out);
    fputs("\n", out);
    print_wrapped(
        "In `train`, at most 1024 steps of an epoch are kept. A delay before the exchange of "
        "a bucket makes the other ranks wait there, so all ranks have equal step times, and "
        "only the entries differ. `bucket` is the bucket at which the rank was latest. Strategies "
        "without buckets, and exchanges that a GPU orders by itself, have no straggler.",
        0, out);
    fputs("\n", out);
    print_wrapped(
        "--arrival makes ranks late on purpose. The note, the id and `arrival` of a point say how. "
        "after_last_us is the median time from the last rank's start to the last rank's end. The "
        "algorithm for which this time is least suffers least from such arrivals.",
        0, out);
}

static const struct ddp_topic topics[] = {
    {"busbw", explain_busbw},         {"algbw", explain_algbw},
    {"time", explain_time},           {"quality", explain_quality},
    {"pingpong", explain_pingpong},   {"bound", explain_bound},
    {"effective", explain_effective}, {"break-even", explain_break_even},
    {"columns", explain_columns},     {"cell", explain_cell},
    {"baseline", explain_baseline},   {"exposed", explain_exposed},
    {"auto", explain_auto},           {"sync", explain_sync},
    {"topk", explain_topk},           {"gate", explain_gate},
    {"health", explain_health},       {"isolate", explain_isolate},
    {"straggler", explain_straggler}, {"exit-codes", ddp_exit_print},
};

const char *ddp_explain_topic(const void *ctx, int i)
{
    return i < (int)DDP_COUNT_OF(topics) ? topics[i].name : NULL;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    if (parsed->operand_count == 0)
        return ddp_refuse_operand("topic", NULL, ddp_explain_topic, NULL, err);
    DDP_TRY(ddp_check_operands(app, parsed, 1, "one topic", err));
    if (ddp_topic_print(topics, DDP_COUNT_OF(topics), parsed->operands[0], app->out))
        return 0;
    for (int c = 0; c < DDP_QUALITY_COUNT; c++)
        if (strcmp(parsed->operands[0], ddp_quality_names[c]) == 0) {
            print_quality((enum ddp_quality)c, app->out);
            return 0;
        }
    return ddp_refuse_operand("topic", parsed->operands[0], ddp_explain_topic, NULL, err);
}

const struct ddp_cmd ddp_cmd_explain = {
    .name = "explain",
    .summary = "what a number means and how it is computed",
    .operands = "TOPIC",
    .details = "Topics: busbw, algbw, time, quality, pingpong, bound, effective, break-even,\n"
               "columns, cell, baseline, exposed, auto, sync, topk, gate, health, isolate,\n"
               "straggler, exit-codes.\n"
               "The name of a quality code, such as busy, is a topic, too.\n",
    .examples = "  ddpbench explain busbw\n",
    .rows = ddp_plain_rows,
    .values_bytes = sizeof(struct ddp_plain_values),
    .help_offset = offsetof(struct ddp_plain_values, help),
    .run = run,
};
