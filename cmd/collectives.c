/* The commands of the collectives. Each has a descriptor and an option table; several commands
 * share a table. */
#include <errno.h>
#include <stdlib.h>

#include "collective.h"

#define AT(member) offsetof(struct ddp_collective_values, member)

/* Accepts the number of checked iterations, as nccl-tests' -c does. */
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

static const struct ddp_opt algorithm_rows[] = {
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(STRING_LIST, "algorithm", 0, AT(bench.algorithms), "NAME[,NAME...]", "auto",
            "auto, all, or names: see `ddpbench list`"),
    DDP_OPT(FLAG, "graph", 0, AT(bench.graph), NULL, NULL,
            "backend nccl: run the operation as a captured CUDA graph"),
    DDP_OPT(INT, "groups", 0, AT(bench.groups), "G", "1",
            "run the operation in G groups of consecutive ranks at the same time; the slowest rank "
            "of all groups counts",
            .min = 1, .max = 128),
    DDP_OPT_END,
};

static const struct ddp_opt time_rows[] = {
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(INT, "iters", 'n', AT(bench.iters), "N", NULL,
            "exactly N timed iterations per point; with --precision or --max-time at most N "
            "(default: adaptive, see --precision and --max-time)",
            .min = 1, .max = DDP_PLAN_ITERS_MAX),
    DDP_OPT(INT, "warmup", 'w', AT(bench.warmup), "N", "5",
            "untimed iterations before the timed ones", .max = DDP_PLAN_ITERS_MAX),
    DDP_OPT(DOUBLE, "precision", 0, AT(precision_percent), "PCT", "2",
            "measure until half the 95 % interval is within PCT percent of the median, checked "
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
            "time K calls in a row as one iteration, as nccl-tests does; the record is labelled "
            "and has no interval",
            .min = 1, .max = 1000000),
    DDP_OPT(ENUM, "order", 0, AT(bench.order), "HOW", "random",
            "measure points in random order (see --seed) or as given; rows always appear as given",
            .choices = order_names),
    DDP_OPT(STRING, "inject-delay", 0, AT(inject), "PCT@ID", NULL,
            "slow down the point with this id by PCT percent of its time, to test a gate; the "
            "record is labelled"),
    DDP_OPT(FLAG, "overlap-compute", 0, AT(bench.overlap), NULL, NULL,
            "run the operation in a progress thread beside a compute loop of the same length; "
            "report how much of the operation is hidden"),
    DDP_OPT_END,
};

static const struct ddp_opt output_rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "samples", 0, AT(bench.samples), NULL, NULL,
            "put every iteration's time into the record"),
    DDP_OPT(FLAG, "dry-run", 0, AT(bench.dry_run), NULL, NULL,
            "print the plan and the memory it needs; measure nothing"),
    DDP_OPT(FLAG, "explain-auto", 0, AT(explain_auto), NULL, NULL,
            "print which algorithm `auto` chooses for which sizes, and why; measure nothing"),
    DDP_OPT_END,
};

static const struct ddp_opt op_rows[] = {
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(ENUM_LIST, "op", 'o', AT(bench.ops), "OP[,OP...]", "sum",
            "operations that combine values, or all; NaN stays NaN, also in min and max",
            .choices = ddp_op_names, .spelling = ddp_op_parse),
    DDP_OPT_END,
};

static const struct ddp_opt root_rows[] = {
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(INT, "root", 'r', AT(bench.root), "N", "0",
            "the rank that holds or receives the full array (in each group)", .max = 1 << 20),
    DDP_OPT_END,
};

/* The options of every collective that moves data. */
static const struct ddp_opt data_rows[] = {
    DDP_OPT_HEADING("Sizes"),
    DDP_OPT(SIZE_LIST, "size", 0, AT(bench.sizes), "S[,S...]", NULL,
            "message sizes, instead of a range; 64M and 64MiB are 64*2^20 bytes, 64MB is 64e6"),
    DDP_OPT(SIZE, "min-bytes", 'b', AT(bench.min_bytes), "S", "8", "first size of a range"),
    DDP_OPT(SIZE, "max-bytes", 'e', AT(bench.max_bytes), "S", "64M",
            "last size of a range; measured even if the steps miss it"),
    DDP_OPT(INT, "step-factor", 'f', AT(bench.step_factor), "N", "4",
            "each size of the range is N times the previous one", .min = 2, .max = 1 << 20),
    DDP_OPT(SIZE, "step-bytes", 'i', AT(bench.step_bytes), "S", NULL,
            "each size of the range is S larger than the previous one; instead of a factor",
            .min = 1, .max = 9007199254740992.0),
    DDP_OPT_INCLUDE(algorithm_rows, 0),
    DDP_OPT_HEADING("Operation"),
    DDP_OPT(ENUM_LIST, "dtype", 'd', AT(bench.dtypes), "TYPE[,TYPE...]", "f32",
            "element types, or all", .choices = ddp_dtype_names, .spelling = ddp_dtype_parse),
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
            "verify every element of one untimed operation per point, of all iterations, or of "
            "none; 0, 1 and larger numbers mean off, once and all",
            .choices = ddp_check_names, .spelling = check_number),
    DDP_OPT_INCLUDE(output_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_opt plain[] = {
    DDP_OPT_INCLUDE(data_rows, 0),
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
            "compression of what ranks send: none, fp16[:CLIP], bf16, topk:D (the fraction D of "
            "largest magnitude), threshold:T (|x| >= T), oktopk:D; each is measured in place, with "
            "f32"),
    DDP_OPT(ENUM, "feedback", 0, AT(bench.feedback), "WHEN", "auto",
            "error feedback: add the values that were not sent to the next gradient; auto: on for "
            "the sparse methods",
            .choices = ddp_feedback_names),
    DDP_OPT(INT, "partial", 0, AT(bench.partial), "K", NULL,
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

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    struct ddp_collective_values *v = values;
    struct ddp_bench_options *o = &v->bench;
    DDP_TRY(ddp_compress_parse_list(&v->compress, &o->compress, err));
    /* Compressed and partial exchanges work in place. The dense points of the same plan then do
     * too, so that they can be compared. */
    if (ddp_plan_reduces(o) && !ddp_opt_given(app->cmd->rows, parsed, "placement"))
        o->placement = DDP_IN_PLACE;
    return ddp_collective_check((enum ddp_coll)ddp_coll_parse(app->cmd->name), app, values, parsed,
                                err);
}

#define ITERATION                                                                                  \
    "By default an iteration is one operation after a barrier. Every rank times it, and\n"         \
    "the slowest rank's time counts.\n"
#define VERIFIED                                                                                   \
    "Unless --check is off, the result of each point is verified exactly, element by\n"            \
    "element, before the point is timed.\n\nExamples:\n"
#define SIZE_OF_ARRAY "A size is that of the array on each rank.\n"
#define SIZE_OF_CHUNKS                                                                             \
    "A size is that of the full buffer, which has one chunk per rank. It is rounded down\n"        \
    "to whole chunks.\n"

/* The command of the collective that is called `name_`. More members may follow the table. */
#define COLLECTIVE(symbol, name_, summary_, ...)                                                   \
    const struct ddp_cmd ddp_cmd_##symbol = {.name = name_,                                        \
                                             .summary = summary_,                                  \
                                             .operands = "",                                       \
                                             .values_bytes = sizeof(struct ddp_collective_values), \
                                             .help_offset = AT(world.help),                        \
                                             .check = check,                                       \
                                             .show = ddp_collective_show,                          \
                                             .job = &ddp_points_job,                               \
                                             .rows = __VA_ARGS__}
#define NAMES(...)                                                                                 \
    .aliases = (const char *const[])                                                               \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

COLLECTIVE(allreduce, "allreduce", "sum, average, ... over all ranks; every rank gets the result",
           allreduce_rows, NAMES("all-reduce", "all_reduce"),
           .details = ITERATION VERIFIED
           "  ddpbench allreduce --size 64M\n"
           "  ddpbench allreduce -b 8 -e 1G -f 2 --json out.json\n"
           "  mpiexec -n 16 ddpbench allreduce --algorithm all -d f32,f16\n"
           "  ddpbench allreduce --size 64M --compress fp16,topk:0.01 --break-even\n"
           "  ddpbench all_reduce_perf -b 8 -e 128M -f 2 -g 1    (flags of nccl-tests)\n\n"
           "Compressed and partial exchanges have no bus bandwidth. `ddpbench explain effective`\n"
           "and `ddpbench explain break-even` say what their figures mean. On GPUs each rank's\n"
           "sparse list has a fixed capacity. For n values this is D*n (topk, oktopk) or n/8\n"
           "(threshold; without feedback: n). All lists are gathered in full. The bytes shown are\n"
           "modelled, and oktopk sends as many bytes as topk.");

COLLECTIVE(reduce_scatter, "reduce-scatter",
           "sum, average, ... over all ranks; each rank gets a chunk", with_op,
           NAMES("reduce_scatter", "reducescatter"),
           .details = ITERATION SIZE_OF_CHUNKS VERIFIED
           "  ddpbench reduce-scatter --size 64M\n"
           "  ddpbench reduce-scatter --algorithm all -d f32,bf16 -o avg");

COLLECTIVE(all_gather, "all-gather", "every rank receives the chunks of all ranks", plain,
           NAMES("all_gather", "allgather"),
           .details = ITERATION SIZE_OF_CHUNKS VERIFIED
           "  ddpbench all-gather --size 64M\n"
           "  ddpbench all-gather -b 1K -e 64M -f 2 --placement in --json out.json");

COLLECTIVE(broadcast, "broadcast", "copy the root's array to every rank", with_root, NAMES("bcast"),
           .details = ITERATION SIZE_OF_ARRAY VERIFIED
           "  ddpbench broadcast --size 64M\n"
           "  ddpbench broadcast --root 1 --memory private");

COLLECTIVE(reduce, "reduce", "sum, average, ... over all ranks; the root gets the result",
           with_op_and_root,
           .details = ITERATION SIZE_OF_ARRAY VERIFIED "  ddpbench reduce --size 64M\n"
                                                       "  ddpbench reduce -r 1 -o max -d i32");

COLLECTIVE(all_to_all, "all-to-all", "every rank sends a chunk to every rank", plain,
           NAMES("all_to_all", "alltoall"),
           .details = ITERATION SIZE_OF_CHUNKS VERIFIED
           "  ddpbench all-to-all --size 64M\n"
           "  ddpbench all-to-all --ranks 2,4,8 --size 1M");

COLLECTIVE(gather, "gather", "the root receives the chunks of all ranks", with_root,
           .details = ITERATION SIZE_OF_CHUNKS VERIFIED
           "  ddpbench gather --size 64M\n"
           "  ddpbench gather --root 1 --placement in");

COLLECTIVE(scatter, "scatter", "each rank receives its chunk of the root's array", with_root,
           .details = ITERATION SIZE_OF_CHUNKS VERIFIED
           "  ddpbench scatter --size 64M\n"
           "  ddpbench scatter --root 1 --placement in");

COLLECTIVE(send_recv, "send-recv", "ring shift: each rank sends an array to the next rank", plain,
           NAMES("send_recv", "sendrecv"),
           .details = ITERATION
           "A size is that of the array on each rank. There is no in-place form.\n" VERIFIED
           "  ddpbench send-recv --size 64M\n"
           "  ddpbench send-recv --ranks 4 --groups 2");

COLLECTIVE(barrier, "barrier", "no rank leaves before all have entered", barrier_rows,
           .details = ITERATION "A barrier moves no data, so it has a time but no bandwidth.\n\n"
                                "Examples:\n"
                                "  ddpbench barrier --ranks 2,4,8 -n 1000\n"
                                "  ddpbench barrier --algorithm all");
