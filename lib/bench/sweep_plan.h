/* The configuration of a sweep: JSON becomes a list of cells, each the command line of one run.
 *
 *     {"description": "...",
 *      "runs": [{"command": "allreduce", "ranks": [1, 2], "size": ["8", "64K"], "dtype": "f32"},
 *               {"command": "train", "sync": ["dense", "topk:0.01"], "epochs": 2}]}
 *
 * The keys of a run are the options of its command; a value is a text, a number, true (a flag) or
 * false (none). A list is an axis: a run becomes a cell for every combination, the last axis
 * running fastest. Where the option itself takes a list ("size") the values stay together in one
 * cell, which then has a point for each. What this does not do: know commands and their options;
 * what a cell says is checked by the command's own table. */
#ifndef DDP_BENCH_SWEEP_PLAN_H
#define DDP_BENCH_SWEEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_SWEEP_FILE_MAX  ((size_t)1 << 20)
#define DDP_SWEEP_CELLS_MAX 10000
#define DDP_SWEEP_KEYS_MAX  48
#define DDP_SWEEP_AXIS_MAX  256  /* values of one axis */
#define DDP_SWEEP_VALUE_MAX 4095 /* bytes of one value */

/* argv[0]: the command; then "--option=value" or "--flag"; [argc], NULL after the last. run: which
 * of "runs", from 0. */
struct ddp_sweep_cell {
    int run, argc;
    char **argv;
};
struct ddp_sweep_plan {
    struct ddp_sweep_cell *cells;
    int count, runs;
    uint64_t hash;
};
typedef bool (*ddp_sweep_takes_list)(void *arg, const char *command, const char *option);

/* text[bytes], which `name` stands for in messages. DDP_EINPUT: no JSON; DDP_ECONFIG: not as said
 * above, naming run and key. *out is released with ddp_sweep_plan_release. */
int ddp_sweep_plan_parse(const char *text, size_t bytes, const char *name,
                         ddp_sweep_takes_list takes_list, void *arg, struct ddp_sweep_plan *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sweep_plan_release(struct ddp_sweep_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
