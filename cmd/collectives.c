/* The commands of the collectives. The option tables, the check of the options and the dry run are
 * shared, and each command has a descriptor. run/points.h measures the points. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "cmd.h"
#include "run/catalog.h"
#include "run/outputs.h"
#include "run/points.h"

#define AT(member) offsetof(struct ddp_collective_values, member)

/* Converts the number of checked iterations, as in -c of nccl-tests, to a value of --check. Returns
 * -1 if the text is not a number. */
static int check_number(const char *text)
{
    char *end;
    errno = 0;
    long n = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    if (n < 0 || *end != '\0' || errno != 0)
        return -1;
    return n == 0 ? DDP_CHECK_OFF : n == 1 ? DDP_CHECK_ONCE : DDP_CHECK_ALL;
}

static const char *const order_names[] = {
    [DDP_ORDER_RANDOM] = "random", [DDP_ORDER_GIVEN] = "given", [DDP_ORDER_COUNT] = NULL};

bool ddp_offer_algorithm(const char *command, int i, char *out, size_t out_bytes)
{
    const int coll = ddp_coll_parse(command);
    const char *name;
    if (coll < 0) /* train takes one algorithm, not all of them */
        name = i == 0 ? "auto" : ddp_catalog_algorithm(DDP_ALLREDUCE, i - 1);
    else
        name = i == 0 ? "auto" : i == 1 ? "all" : ddp_catalog_algorithm((enum ddp_coll)coll, i - 2);
    snprintf(out, out_bytes, "%s", name ? name : "");
    return name != NULL;
}

static const struct ddp_opt algorithm_rows[] = {
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(STRING_LIST, "algorithm", 0, AT(bench.algorithms), "NAME[,NAME...]", "auto",
            "auto, all, or names: see `ddpbench list`", .offer = ddp_offer_algorithm,
            .brief = "names, or all; see `ddpbench list`"),
    DDP_OPT(FLAG, "graph", 0, AT(bench.graph), NULL, NULL,
            "backend nccl: run the operation as a captured CUDA graph"),
    DDP_OPT(STRING, "groups", 0, AT(groups), "G", "1",
            "run the operation in G groups of consecutive ranks at the same time, or in groups of "
            "listed ranks (0,1:2,3,4); the slowest rank of all groups counts"),
    DDP_OPT_END,
};

static const struct ddp_opt time_rows[] = {
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(INT, "iters", 'n', AT(bench.iters), "N", NULL,
            "exactly N timed iterations per point; with --precision or --max-time at most N "
            "(default: adaptive, see --precision and --max-time)",
            .min = 1, .max = DDP_PLAN_ITERS_MAX,
            .brief = "exactly N timed iterations (default: adaptive)"),
    DDP_OPT(INT, "warmup", 'w', AT(bench.warmup), "N", "5",
            "untimed iterations before the timed ones", .max = DDP_PLAN_ITERS_MAX),
    DDP_OPT(DOUBLE, "precision", 0, AT(precision_percent), "PCT", "2",
            "measure until half the 95 % interval is at most PCT percent of the median, checked "
            "after 20, 30, 45, ... iterations; no default with -n",
            .min = 0.01, .max = 100),
    DDP_OPT(DOUBLE, "max-time", 0, AT(bench.max_time_s), "S", "5",
            "end a point after S seconds (at least 6 iterations); no default with -n", .min = 0.001,
            .max = 86400),
    DDP_OPT(ENUM, "start", 0, AT(bench.start), "HOW", "barrier",
            "how an iteration starts: after a barrier, timed on each rank; or at an agreed time, "
            "timed from the earliest start to the latest exit on synchronised clocks",
            .choices = ddp_start_names),
    DDP_OPT(INT, "block", 0, AT(bench.block), "K", "1",
            "time K calls in a row as one iteration, as nccl-tests does; a GPU gets all K before "
            "the host waits; the record gets a note and has no interval",
            .min = 1, .max = 1000000),
    DDP_OPT(ENUM, "order", 0, AT(bench.order), "HOW", "random",
            "measure points in random order (see --seed) or as given; terminals and documents show "
            "them as given",
            .choices = order_names),
    DDP_OPT(STRING, "inject-delay", 0, AT(inject), "PCT@ID", NULL,
            "slow down the point with this id by PCT percent of its time, to test a gate; the "
            "record gets a note"),
    DDP_OPT(STRING, "arrival", 0, AT(arrival), "HOW", NULL,
            "let ranks enter each operation at different times: late:R,MS (rank R, MS "
            "milliseconds), ramp[:MS] (evenly, in the order of ranks) or random[:MS] (1 ms without "
            "MS); the record gets a note and the time after the last arrival"),
    DDP_OPT(
        FLAG, "overlap-compute", 0, AT(bench.overlap), NULL, NULL,
        "run the operation in a progress thread (on a GPU: on a stream) beside a compute loop of "
        "the same length; report how much of the operation is hidden"),
    DDP_OPT_END,
};

static const struct ddp_opt output_rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "samples", 0, AT(bench.samples), NULL, NULL,
            "put every iteration's time into the record"),
    DDP_OPT(FLAG, "dry-run", 0, AT(bench.dry_run), NULL, NULL,
            "print the plan of every rank count, the memory it needs and an estimate of its time; "
            "measure nothing",
            .brief = "print the plan; measure nothing"),
    DDP_OPT(FLAG, "explain-auto", 0, AT(explain_auto), NULL, NULL,
            "print which algorithm `auto` chooses for which sizes, and why; measure nothing"),
    DDP_OPT_END,
};

static const struct ddp_opt op_rows[] = {
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(ENUM_LIST, "op", 'o', AT(bench.ops), "OP[,OP...]", "sum",
            "operations that combine values, or all; NaN stays NaN, also in min and max",
            .choices = ddp_op_names, .spelling = ddp_op_parse,
            .brief = "sum, avg, min, max, prod, ..."),
    DDP_OPT_END,
};

static const struct ddp_opt root_rows[] = {
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(INT, "root", 'r', AT(bench.root), "N", "0",
            "the rank that holds or receives the full array (in each group)", .max = 1 << 20,
            .brief = "the rank that holds or receives the full array"),
    DDP_OPT_END,
};

/* The options of every collective that moves data. */
static const struct ddp_opt data_rows[] = {
    DDP_OPT_HEADING("Sizes"),
    DDP_OPT(SIZE_LIST, "size", 0, AT(bench.sizes), "S[,S...]", NULL,
            "message sizes, instead of a range; 64M and 64MiB are 64*2^20 bytes, 64MB is 64e6",
            .brief = "message sizes, such as 64K,64M",
            .advice = "sizes look like 64, 1e6, 64K (powers of 1024) or 64MB (powers of 1000); a "
                      "range looks like -b 1K -e 1M"),
    DDP_OPT(SIZE, "min-bytes", 'b', AT(bench.min_bytes), "S", "8", "first size of a range",
            .brief = ""),
    DDP_OPT(SIZE, "max-bytes", 'e', AT(bench.max_bytes), "S", "64M",
            "last size of a range; measured even if the steps miss it",
            .brief = "last size of a range"),
    DDP_OPT(INT, "step-factor", 'f', AT(bench.step_factor), "N", "4",
            "each size of the range is N times the previous one", .min = 2, .max = 1 << 20,
            .brief = "each size is N times the previous"),
    DDP_OPT(SIZE, "step-bytes", 'i', AT(bench.step_bytes), "S", NULL,
            "each size of the range is S larger than the previous one; instead of a factor",
            .min = 1, .max = 9007199254740992.0),
    DDP_OPT_INCLUDE(algorithm_rows, 0),
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(ENUM_LIST, "dtype", 'd', AT(bench.dtypes), "TYPE[,TYPE...]", "f32",
            "element types, or all", .choices = ddp_dtype_names, .spelling = ddp_dtype_parse,
            .brief = ""),
    DDP_OPT(ENUM, "placement", 0, AT(bench.placement), "WHERE", "both",
            "store the result in place of the input, or in a separate buffer",
            .choices = ddp_placement_names),
    DDP_OPT(ENUM, "memory", 0, AT(bench.memory), "KIND", NULL,
            "buffers from the backend's allocator (zero-copy; the default if it has one), plain "
            "pages, or a window of all ranks (nccl)",
            .choices = ddp_memory_names),
    DDP_OPT_INCLUDE(time_rows, 0),
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(ENUM, "check", 'c', AT(bench.check), "WHEN", "once",
            "per point verify the first operation, the last timed one and a burst (once), every "
            "timed operation, too (all), or nothing (off); 0, 1 and larger numbers mean off, once "
            "and all",
            .choices = ddp_check_names, .spelling = check_number),
    DDP_OPT_INCLUDE(output_rows, 0),
    DDP_OPT_INCLUDE(ddp_plot_rows, AT(world.plot)),
    DDP_OPT_END,
};

static const struct ddp_opt plain[] = {
    DDP_OPT_INCLUDE(data_rows, 0),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_opt split_rows[] = {
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(STRING, "split", 0, AT(split), "HOW", "even",
            "sizes of the parts: even; zipf:S, where the k-th rank in a random order (see --seed) "
            "gets a share proportional to 1/k^S; or a FILE of weights, see below",
            .brief = "sizes of the parts: even, zipf:S, or a FILE"),
    DDP_OPT_END,
};

static const struct ddp_opt with_split[] = {
    DDP_OPT_INCLUDE(data_rows, 0),
    DDP_OPT_INCLUDE(split_rows, 0),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_opt with_op_and_split[] = {
    DDP_OPT_INCLUDE(data_rows, 0),
    DDP_OPT_INCLUDE(op_rows, 0),
    DDP_OPT_INCLUDE(split_rows, 0),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_opt with_op[] = {
    DDP_OPT_INCLUDE(data_rows, 0),
    DDP_OPT_INCLUDE(op_rows, 0),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_opt with_root[] = {
    DDP_OPT_INCLUDE(data_rows, 0),
    DDP_OPT_INCLUDE(root_rows, 0),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_opt with_op_and_root[] = {
    DDP_OPT_INCLUDE(data_rows, 0),
    DDP_OPT_INCLUDE(op_rows, 0),
    DDP_OPT_INCLUDE(root_rows, 0),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_opt allreduce_rows[] = {
    DDP_OPT_INCLUDE(data_rows, 0),
    DDP_OPT_INCLUDE(op_rows, 0),
    DDP_OPT_HEADING("Compression"),
    DDP_OPT(STRING_LIST, "compress", 0, AT(compress), "HOW[,HOW...]", NULL,
            "compression of what ranks send: none, fp16[:CLIP], bf16, q8[:BLOCK] and q4[:BLOCK] "
            "(integers of 8 and 4 bits, with a scale per BLOCK elements), fp8-e4m3[:BLOCK], "
            "fp8-e5m2[:BLOCK] (+sr behind these four: stochastic rounding, as in q8+sr), "
            "sign[:BLOCK] (a sign, with a mean per BLOCK elements), "
            "powersgd:R[:N] (factors of rank R; the first N exchanges are dense), topk:D (the "
            "fraction D of largest magnitude), threshold:T (|x| >= "
            "T), oktopk:D; each is measured in place, with f32",
            .offer = ddp_offer_compressor, .brief = "fp16, q8, q4, topk:D, ...; `list` shows all"),
    DDP_OPT_INCLUDE(ddp_feedback_rows, AT(bench.feedback)),
    DDP_OPT(INT_LIST, "partial", 0, AT(bench.partial), "K[,K...]", NULL,
            "exchange one of K equal chunks per iteration, in turn", .min = 1,
            .max = DDP_PLAN_PARTIAL_MAX),
    DDP_OPT(STRING_LIST, "gradient", 0, AT(bench.gradient), "WHAT", NULL,
            "input data: normal (the default), heavy-tail (Student's t, 3 degrees of freedom), or "
            "FILE.npy[,...] recorded by `train --dump-gradients` and replayed in sequence"),
    DDP_OPT(FLAG, "break-even", 0, AT(bench.break_even), NULL, NULL,
            "measure topk and oktopk at other densities as well, to find the density above which "
            "dense is faster; takes as long as about ten more points"),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_opt barrier_rows[] = {
    DDP_OPT_INCLUDE(algorithm_rows, 0),
    DDP_OPT_INCLUDE(time_rows, 0),
    DDP_OPT_INCLUDE(output_rows, 0),
    DDP_OPT_INCLUDE(ddp_world_rows, 0),
    DDP_OPT_END,
};

/* Writes a description for people, such as "20 iterations" or "until 2 % precise, at most 5 s and
 * 10000 iterations". */
static void describe_timing(const struct ddp_bench_options *o, char *out, size_t out_bytes)
{
    char limit[48] = "", block[48] = "";
    if (o->max_time_s > 0)
        snprintf(limit, sizeof limit, "%s%g s", o->precision > 0 ? "" : ", at most ",
                 o->max_time_s);
    if (o->block > 1)
        snprintf(block, sizeof block, " of %lld calls", (long long)o->block);
    if (o->precision > 0)
        snprintf(out, out_bytes, "until %g %% precise, at most %s%s%lld iterations%s",
                 o->precision * 100, limit, limit[0] ? " and " : "", (long long)o->iters, block);
    else
        snprintf(out, out_bytes, "%lld iterations%s%s", (long long)o->iters, block, limit);
}

static void print_plan(const struct ddp_app *app, const struct ddp_collective_values *v,
                       const char *backend, int ranks)
{
    struct ddp_sysinfo host;
    const struct ddp_bench_plan *plan = ddp_points_plan(v, ranks);
    char each[24], sum[24], have[24], more[24], extra[64] = "", id[192], timing[128];
    const uint64_t compress = plan->compress_registered + plan->compress_private;
    struct ddp_estimate time;
    ddp_format_size(plan->host_bytes, each, sizeof each);
    ddp_format_size(plan->bytes_per_rank * (uint64_t)ranks, sum, sizeof sum);
    ddp_sysinfo_read(&host);
    ddp_memory_text(host.available_bytes, have, sizeof have);
    ddp_format_size(compress, more, sizeof more);
    if (compress > 0)
        snprintf(extra, sizeof extra, " and %s to compress", more);
    describe_timing(&v->bench, timing, sizeof timing);
    ddp_points_job.estimate(v, ranks, ranks, &time);
    ddp_print_note(
        app->out, "dry run: %d point%s; each: %s, after %lld warm-up iterations; backend %s",
        plan->count, plan->count == 1 ? "" : "s", timing, (long long)v->bench.warmup, backend);
    ddp_print_note(app->out, "%s memory: %d rank%s x %d buffers x %s%s = %s; available: %s",
                   plan->host_bytes == plan->buffer_bytes ? ddp_memory_name(plan->memory) : "host",
                   ranks, ranks == 1 ? "" : "s", DDP_PLAN_BUFFERS, each, extra, sum, have);
    ddp_print_time(&time, app->out);
    for (int i = 0; i < plan->small_count; i++)
        ddp_print_note(app->out, "left out: %s: %s", plan->small[i].what, plan->small[i].reason);
    for (int i = 0; i < plan->count; i++) {
        ddp_point_id(&plan->points[i], id, sizeof id);
        fprintf(app->out, "%s\n", id);
    }
}

/* Prints the plan (--dry-run) or the choices of `auto` (--explain-auto). */
static int show(struct ddp_app *app, const void *values, const char *backend, int ranks,
                struct ddp_err *err)
{
    const struct ddp_collective_values *v = values;
    if (!v->explain_auto && !v->bench.dry_run)
        return 0;
    if (ddp_app_is_root(app) && v->explain_auto)
        DDP_TRY(ddp_points_explain_auto(app, v, backend, ranks, err));
    else if (ddp_app_is_root(app))
        for (int i = 0; i < v->plan_count; i++)
            print_plan(app, v, backend, v->world.ranks.n > 0 ? (int)v->world.ranks.v[i] : ranks);
    return DDP_PREPARE_DONE;
}

#define ITERATION                                                                                  \
    "By default an iteration is one operation after a barrier. Every rank times it,\n"             \
    "and the slowest rank's time counts.\n"
#define VERIFIED                                                                                   \
    "Unless --check is off, the result of each point is verified exactly, element by\n"            \
    "element, before and after the point is timed.\n"
#define SIZE_OF_ARRAY "A size is that of the array on each rank.\n"
#define SIZE_OF_CHUNKS                                                                             \
    "A size is that of the full buffer, which has one chunk per rank. It is rounded\n"             \
    "down to whole chunks.\n"

/* Defines the command `name_` of a collective. The first variadic argument is the option table.
 * More members of the descriptor may follow it. */
#define COLLECTIVE(symbol, name_, summary_, ...)                                                   \
    const struct ddp_cmd ddp_cmd_##symbol = {.name = name_,                                        \
                                             .group = DDP_CMD_MEASURE,                             \
                                             .summary = summary_,                                  \
                                             .operands = "",                                       \
                                             .values_bytes = sizeof(struct ddp_collective_values), \
                                             .help_offset = AT(world.help),                        \
                                             .check = ddp_points_check,                            \
                                             .show = show,                                         \
                                             .job = &ddp_points_job,                               \
                                             .rows = __VA_ARGS__}
#define NAMES(...)                                                                                 \
    .aliases = (const char *const[])                                                               \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

COLLECTIVE(allreduce, "allreduce", "sum, average, ... over all ranks; every rank gets the result",
           allreduce_rows, NAMES("all-reduce", "all_reduce"),
           .examples = "  ddpbench allreduce --size 64M\n"
                       "  ddpbench allreduce -b 8 -e 1G -f 2 --json out.json\n"
                       "  mpiexec -n 16 ddpbench allreduce --algorithm all -d f32,f16\n"
                       "  ddpbench allreduce --size 64M --compress fp16,topk:0.01 --break-even\n"
                       "  ddpbench all_reduce_perf -b 8 -e 128M -f 2 -g 1  # as in nccl-tests\n",
           .details = ITERATION VERIFIED
           "\n"
           "Compressed and partial exchanges have no bus bandwidth. `ddpbench explain\n"
           "effective` and `ddpbench explain break-even` say what their figures mean. On\n"
           "GPUs the entries of sparse lists take 8 bytes each. Their bytes are counted for\n"
           "threshold, and for oktopk on three or more ranks; else they are modelled.");

COLLECTIVE(reduce_scatter, "reduce-scatter",
           "sum, average, ... over all ranks; each rank gets a chunk", with_op,
           NAMES("reduce_scatter", "reducescatter"), .details = ITERATION SIZE_OF_CHUNKS VERIFIED,
           .examples = "  ddpbench reduce-scatter --size 64M\n"
                       "  ddpbench reduce-scatter --algorithm all -d f32,bf16 -o avg\n");

COLLECTIVE(all_gather, "all-gather", "every rank receives the chunks of all ranks", plain,
           NAMES("all_gather", "allgather"), .details = ITERATION SIZE_OF_CHUNKS VERIFIED,
           .examples = "  ddpbench all-gather --size 64M\n"
                       "  ddpbench all-gather -b 1K -e 64M -f 2 --placement in --json out.json\n");

COLLECTIVE(broadcast, "broadcast", "copy the root's array to every rank", with_root, NAMES("bcast"),
           .details = ITERATION SIZE_OF_ARRAY VERIFIED,
           .examples = "  ddpbench broadcast --size 64M\n"
                       "  ddpbench broadcast --root 1 --memory private\n");

COLLECTIVE(reduce, "reduce", "sum, average, ... over all ranks; the root gets the result",
           with_op_and_root, .details = ITERATION SIZE_OF_ARRAY VERIFIED,
           .examples = "  ddpbench reduce --size 64M\n"
                       "  ddpbench reduce -r 1 -o max -d i32\n");

COLLECTIVE(all_to_all, "all-to-all", "every rank sends a chunk to every rank", plain,
           NAMES("all_to_all", "alltoall"), .details = ITERATION SIZE_OF_CHUNKS VERIFIED,
           .examples = "  ddpbench all-to-all --size 64M\n"
                       "  ddpbench all-to-all --ranks 2,4,8 --size 1M\n");

COLLECTIVE(all_to_all_v, "all-to-all-v", "every rank sends parts of different sizes to all ranks",
           with_split, NAMES("all_to_all_v", "alltoallv", "MPI_Alltoallv"),
           .details = ITERATION
           "A size is the mean size of the buffers that the ranks send. It is rounded down\n"
           "to whole chunks of the even split. With zipf:S each rank has a random order of\n"
           "its own. Row r of a FILE has the weights of the parts that rank r sends to rank\n"
           "0, 1, ... A rank whose row has a larger sum sends more. The weight 0 makes an\n"
           "empty part. The bus bandwidth counts the bytes of the busiest rank, and\n"
           "`imbalance` in the record is their ratio to the mean of the ranks. All-to-all-v\n"
           "does not work in place.\n" VERIFIED,
           .examples = "  ddpbench all-to-all-v --size 64M --split zipf:1.2\n"
                       "  ddpbench all-to-all-v --ranks 4 --split tokens.txt --json out.json\n");

COLLECTIVE(all_gather_v, "all-gather-v",
           "every rank receives the parts of all ranks, which may differ in size", with_split,
           NAMES("all_gather_v", "allgatherv", "MPI_Allgatherv"),
           .details = ITERATION
           "A size is that of all parts together. It is rounded down to whole chunks of the\n"
           "even split. A FILE has one row: the weights of the ranks' parts. The weight 0\n"
           "makes an empty part. The bus bandwidth counts the bytes of the rank that\n"
           "receives most, and `imbalance` in the record is their ratio to the mean of the\n"
           "ranks. All-gather-v does not work in place.\n" VERIFIED,
           .examples = "  ddpbench all-gather-v --size 64M --split zipf:1.2\n"
                       "  ddpbench all-gather-v --ranks 4 --split parts.txt --json out.json\n");

COLLECTIVE(
    reduce_scatter_v, "reduce-scatter-v", "reduce-scatter of parts that may differ in size",
    with_op_and_split, NAMES("reduce_scatter_v", "reducescatterv", "MPI_Reduce_scatter"),
    .details = ITERATION
    "A size is that of all parts together. It is rounded down to whole chunks of the\n"
    "even split. A FILE has one row: the weights of the ranks' parts. The weight 0\n"
    "makes an empty part. The bus bandwidth counts the bytes that the busiest rank\n"
    "must send: its inputs of all parts but its own. `imbalance` in the record is\n"
    "their ratio to the mean of the ranks. Reduce-scatter-v does not work in place.\n" VERIFIED,
    .examples = "  ddpbench reduce-scatter-v --ranks 4 --split parts.txt -d bf16 -o avg\n");

COLLECTIVE(gather, "gather", "the root receives the chunks of all ranks", with_root,
           .details = ITERATION SIZE_OF_CHUNKS VERIFIED,
           .examples = "  ddpbench gather --size 64M\n"
                       "  ddpbench gather --root 1 --placement in\n");

COLLECTIVE(scatter, "scatter", "each rank receives its chunk of the root's array", with_root,
           .details = ITERATION SIZE_OF_CHUNKS VERIFIED,
           .examples = "  ddpbench scatter --size 64M\n"
                       "  ddpbench scatter --root 1 --placement in\n");

COLLECTIVE(send_recv, "send-recv", "ring shift: each rank sends an array to the next rank", plain,
           NAMES("send_recv", "sendrecv"),
           .details = ITERATION
           "A size is that of the array on each rank. Send-recv does not work in place.\n" VERIFIED,
           .examples = "  ddpbench send-recv --size 64M\n"
                       "  ddpbench send-recv --ranks 4 --groups 2\n");

COLLECTIVE(barrier, "barrier", "no rank leaves before all have entered", barrier_rows,
           .details = ITERATION "A barrier moves no data, so it has a time but no bandwidth.\n",
           .examples = "  ddpbench barrier --ranks 2,4,8 -n 1000\n"
                       "  ddpbench barrier --algorithm all\n");
