/* Code shared by all collective commands: the option rows, the check of the options, and the dry
 * run. run/points.h measures the points. Each command adds a descriptor and a check function that
 * names its collective (see allreduce.c). */
#ifndef DDP_CMD_COLLECTIVE_H
#define DDP_CMD_COLLECTIVE_H

#include "cmd.h"
#include "run/points.h"

extern const struct ddp_opt_choices ddp_dtype_choices, ddp_op_choices, ddp_placement_choices,
    ddp_memory_choices, ddp_check_choices, ddp_start_choices, ddp_order_choices;

#define DDP_COLLECTIVE_FIELD(member) offsetof(struct ddp_collective_values, bench.member)

/* Option rows of a collective that moves data. A barrier uses only some of these groups. */
#define DDP_COLLECTIVE_ROWS                                                                        \
    DDP_COLLECTIVE_SIZE_ROWS, DDP_COLLECTIVE_ALGORITHM_ROWS, DDP_COLLECTIVE_ARRAY_ROWS,            \
        DDP_COLLECTIVE_TIME_ROWS, DDP_COLLECTIVE_CHECK_ROW, DDP_COLLECTIVE_OUTPUT_ROWS

#define DDP_COLLECTIVE_SIZE_ROWS                                                                   \
    {.name = "size",                                                                               \
     .kind = DDP_OPT_SIZE_LIST,                                                                    \
     .offset = DDP_COLLECTIVE_FIELD(sizes),                                                        \
     .value = "S[,S...]",                                                                          \
     .group = "Sizes",                                                                             \
     .help = "message sizes, instead of a range; 64M and 64MiB are 64*2^20 bytes, 64MB is 64e6"},  \
        {.name = "min-bytes",                                                                      \
         .short_name = 'b',                                                                        \
         .kind = DDP_OPT_SIZE,                                                                     \
         .offset = DDP_COLLECTIVE_FIELD(min_bytes),                                                \
         .value = "S",                                                                             \
         .initial = "8",                                                                           \
         .group = "Sizes",                                                                         \
         .help = "first size of a range"},                                                         \
        {.name = "max-bytes",                                                                      \
         .short_name = 'e',                                                                        \
         .kind = DDP_OPT_SIZE,                                                                     \
         .offset = DDP_COLLECTIVE_FIELD(max_bytes),                                                \
         .value = "S",                                                                             \
         .initial = "64M",                                                                         \
         .group = "Sizes",                                                                         \
         .help = "last size of a range; measured even if the steps miss it"},                      \
        {.name = "step-factor",                                                                    \
         .short_name = 'f',                                                                        \
         .kind = DDP_OPT_INT,                                                                      \
         .offset = DDP_COLLECTIVE_FIELD(step_factor),                                              \
         .value = "N",                                                                             \
         .initial = "4",                                                                           \
         .group = "Sizes",                                                                         \
         .help = "each size of the range is N times the previous one",                             \
         .min = 2,                                                                                 \
         .max = 1 << 20},                                                                          \
    {                                                                                              \
        .name = "step-bytes", .short_name = 'i', .kind = DDP_OPT_SIZE,                             \
        .offset = DDP_COLLECTIVE_FIELD(step_bytes), .value = "S", .group = "Sizes",                \
        .help = "each size of the range is S larger than the previous one; instead of a factor",   \
        .min = 1, .max = 9007199254740992.0                                                        \
    }

#define DDP_COLLECTIVE_ALGORITHM_ROWS                                                              \
    {.name = "algorithm",                                                                          \
     .kind = DDP_OPT_STRING_LIST,                                                                  \
     .offset = DDP_COLLECTIVE_FIELD(algorithms),                                                   \
     .value = "NAME[,NAME...]",                                                                    \
     .initial = "auto",                                                                            \
     .group = "Operation",                                                                         \
     .help = "auto, all, or names: see `ddpbench list`"},                                          \
        {.name = "graph",                                                                          \
         .kind = DDP_OPT_FLAG,                                                                     \
         .offset = DDP_COLLECTIVE_FIELD(graph),                                                    \
         .group = "Operation",                                                                     \
         .help = "backend nccl: run the operation as a captured CUDA graph"},                      \
    {                                                                                              \
        .name = "groups", .kind = DDP_OPT_INT, .offset = DDP_COLLECTIVE_FIELD(groups),             \
        .value = "G", .initial = "1", .group = "Operation",                                        \
        .help = "run the operation in G groups of consecutive ranks at the same time; the "        \
                "slowest rank of all groups counts",                                               \
        .min = 1, .max = 128                                                                       \
    }

#define DDP_COLLECTIVE_ARRAY_ROWS                                                                  \
    {.name = "dtype",                                                                              \
     .short_name = 'd',                                                                            \
     .kind = DDP_OPT_ENUM_LIST,                                                                    \
     .offset = DDP_COLLECTIVE_FIELD(dtypes),                                                       \
     .value = "TYPE[,TYPE...]",                                                                    \
     .initial = "f32",                                                                             \
     .group = "Operation",                                                                         \
     .help = "element types, or all",                                                              \
     .choices = &ddp_dtype_choices},                                                               \
        {.name = "placement",                                                                      \
         .kind = DDP_OPT_ENUM,                                                                     \
         .offset = DDP_COLLECTIVE_FIELD(placement),                                                \
         .value = "WHERE",                                                                         \
         .initial = "both",                                                                        \
         .group = "Operation",                                                                     \
         .help = "store the result in place of the input, or in a separate buffer",                \
         .choices = &ddp_placement_choices},                                                       \
    {                                                                                              \
        .name = "memory", .kind = DDP_OPT_ENUM, .offset = DDP_COLLECTIVE_FIELD(memory),            \
        .value = "KIND", .group = "Operation",                                                     \
        .help = "buffers from the backend's allocator (zero-copy; the default if it has one), "    \
                "plain pages, or a window of all ranks (nccl)",                                    \
        .choices = &ddp_memory_choices                                                             \
    }

#define DDP_COLLECTIVE_TIME_ROWS                                                                   \
    {.name = "iters",                                                                              \
     .short_name = 'n',                                                                            \
     .kind = DDP_OPT_INT,                                                                          \
     .offset = DDP_COLLECTIVE_FIELD(iters),                                                        \
     .value = "N",                                                                                 \
     .group = "Measurement",                                                                       \
     .help = "exactly N timed iterations per point; with --precision or --max-time at most N "     \
             "(default: adaptive, see --precision and --max-time)",                                \
     .min = 1,                                                                                     \
     .max = DDP_PLAN_ITERS_MAX},                                                                   \
        {.name = "warmup",                                                                         \
         .short_name = 'w',                                                                        \
         .kind = DDP_OPT_INT,                                                                      \
         .offset = DDP_COLLECTIVE_FIELD(warmup),                                                   \
         .value = "N",                                                                             \
         .initial = "5",                                                                           \
         .group = "Measurement",                                                                   \
         .help = "untimed iterations before the timed ones",                                       \
         .max = DDP_PLAN_ITERS_MAX},                                                               \
        {.name = "precision",                                                                      \
         .kind = DDP_OPT_DOUBLE,                                                                   \
         .offset = offsetof(struct ddp_collective_values, precision_percent),                      \
         .value = "PCT",                                                                           \
         .initial = "2",                                                                           \
         .group = "Measurement",                                                                   \
         .help = "measure until half the 95 % interval is within PCT percent of the median, "      \
                 "checked after 20, 30, 45, ... iterations; no default with -n",                   \
         .min = 0.01,                                                                              \
         .max = 100},                                                                              \
        {.name = "max-time",                                                                       \
         .kind = DDP_OPT_DOUBLE,                                                                   \
         .offset = DDP_COLLECTIVE_FIELD(max_time_s),                                               \
         .value = "S",                                                                             \
         .initial = "5",                                                                           \
         .group = "Measurement",                                                                   \
         .help = "end a point after S seconds (at least 6 iterations); no default with -n",        \
         .min = 0.001,                                                                             \
         .max = 86400},                                                                            \
        {.name = "start",                                                                          \
         .kind = DDP_OPT_ENUM,                                                                     \
         .offset = DDP_COLLECTIVE_FIELD(start),                                                    \
         .value = "HOW",                                                                           \
         .initial = "barrier",                                                                     \
         .group = "Measurement",                                                                   \
         .help = "how an iteration starts: after a barrier, timed on each rank; or at an agreed "  \
                 "time, timed from the earliest start to the latest exit on synchronised clocks",  \
         .choices = &ddp_start_choices},                                                           \
        {.name = "block",                                                                          \
         .kind = DDP_OPT_INT,                                                                      \
         .offset = DDP_COLLECTIVE_FIELD(block),                                                    \
         .value = "K",                                                                             \
         .initial = "1",                                                                           \
         .group = "Measurement",                                                                   \
         .help = "time K calls in a row as one iteration, as nccl-tests does; the record is "      \
                 "labelled and has no interval",                                                   \
         .min = 1,                                                                                 \
         .max = 1000000},                                                                          \
        {.name = "order",                                                                          \
         .kind = DDP_OPT_ENUM,                                                                     \
         .offset = DDP_COLLECTIVE_FIELD(order),                                                    \
         .value = "HOW",                                                                           \
         .initial = "random",                                                                      \
         .group = "Measurement",                                                                   \
         .help = "measure points in random order (see --seed) or as given; rows always appear as " \
                 "given",                                                                          \
         .choices = &ddp_order_choices},                                                           \
        {.name = "inject-delay",                                                                   \
         .kind = DDP_OPT_STRING,                                                                   \
         .offset = offsetof(struct ddp_collective_values, inject),                                 \
         .value = "PCT@ID",                                                                        \
         .group = "Measurement",                                                                   \
         .help = "slow down the point with this id by PCT percent of its time, to test a gate; "   \
                 "the record is labelled"},                                                        \
    {                                                                                              \
        .name = "overlap-compute", .kind = DDP_OPT_FLAG, .offset = DDP_COLLECTIVE_FIELD(overlap),  \
        .group = "Measurement",                                                                    \
        .help = "run the operation in a progress thread beside a compute loop of the same "        \
                "length; report how much of the operation is hidden"                               \
    }

#define DDP_COLLECTIVE_CHECK_ROW                                                                   \
    {                                                                                              \
        .name = "check", .short_name = 'c', .kind = DDP_OPT_ENUM,                                  \
        .offset = DDP_COLLECTIVE_FIELD(check), .value = "WHEN", .initial = "once",                 \
        .group = "Measurement",                                                                    \
        .help = "verify every element of one untimed operation per point, of all iterations, or "  \
                "of none; 0, 1 and larger numbers mean off, once and all",                         \
        .choices = &ddp_check_choices                                                              \
    }

#define DDP_COLLECTIVE_OUTPUT_ROWS                                                                 \
    {.name = "samples",                                                                            \
     .kind = DDP_OPT_FLAG,                                                                         \
     .offset = DDP_COLLECTIVE_FIELD(samples),                                                      \
     .group = "Output",                                                                            \
     .help = "put every iteration's time into the record"},                                        \
        {.name = "dry-run",                                                                        \
         .kind = DDP_OPT_FLAG,                                                                     \
         .offset = DDP_COLLECTIVE_FIELD(dry_run),                                                  \
         .group = "Output",                                                                        \
         .help = "print the plan and the memory it needs; measure nothing"},                       \
    {                                                                                              \
        .name = "explain-auto", .kind = DDP_OPT_FLAG,                                              \
        .offset = offsetof(struct ddp_collective_values, explain_auto), .group = "Output",         \
        .help = "print which algorithm `auto` chooses for which sizes, and why; measure nothing"   \
    }

/* Option row of collectives that have a root. */
#define DDP_COLLECTIVE_ROOT_ROW                                                                    \
    {                                                                                              \
        .name = "root", .short_name = 'r', .kind = DDP_OPT_INT,                                    \
        .offset = DDP_COLLECTIVE_FIELD(root), .value = "N", .initial = "0", .group = "Operation",  \
        .help = "the rank that holds or receives the full array (in each group)", .min = 0,        \
        .max = 1 << 20                                                                             \
    }

/* Option row of collectives that combine values. */
#define DDP_COLLECTIVE_OP_ROW                                                                      \
    {                                                                                              \
        .name = "op", .short_name = 'o', .kind = DDP_OPT_ENUM_LIST,                                \
        .offset = DDP_COLLECTIVE_FIELD(ops), .value = "OP[,OP...]", .initial = "sum",              \
        .group = "Operation",                                                                      \
        .help = "operations that combine values, or all; NaN stays NaN, also in min and max",      \
        .choices = &ddp_op_choices                                                                 \
    }

/* Functions for a command's descriptor. Each command wraps ddp_collective_check to pass its
 * collective. */
int ddp_collective_check(enum ddp_coll coll, struct ddp_app *app, void *values,
                         const struct ddp_opt_result *parsed, struct ddp_err *err) DDP_MUST_CHECK;
/* Prints the plan (--dry-run) or the choices of `auto` (--explain-auto). */
int ddp_collective_show(struct ddp_app *app, const void *values, const char *backend, int ranks,
                        struct ddp_err *err);

#endif
