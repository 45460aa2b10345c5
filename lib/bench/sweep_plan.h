/* The configuration of a sweep: a JSON document becomes a list of cells, each of which is the
 * command line of one run.
 *
 *     {"description": "...",
 *      "runs": [{"command": "allreduce", "ranks": [1, 2], "size": ["8", "64K"], "dtype": "f32"},
 *               {"command": "train", "sync": ["dense", "topk:0.01"], "epochs": 2}]}
 *
 * The keys of a run are the options of its command. A value is a string, a number, true (a flag) or
 * false (no flag). A list is an axis: the run becomes one cell for every combination, the last axis
 * varying fastest. If the option itself takes a list ("size"), the values stay together in one
 * cell, which then has a point for each. This file does not know the commands and their options;
 * each command checks its own cells. */
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

struct ddp_sweep_cell {
    int run, argc; /* run: index in "runs" */
    /* [argc], then NULL: the command, then "--option=value" or "--flag". */
    char **argv;
};

struct ddp_sweep_plan {
    struct ddp_sweep_cell *cells; /* [count] */
    int count, runs;
    uint64_t hash; /* 64-bit FNV-1a of the text */
};

/* Returns whether the command's option takes a list; its values then stay in one cell. */
typedef bool (*ddp_sweep_takes_list)(void *arg, const char *command, const char *option);

/* Parses text[bytes]; name: its name for messages. *out is released with ddp_sweep_plan_release.
 * Returns DDP_EINPUT if the text is not JSON, and DDP_ECONFIG, naming run and key, if it is not a
 * configuration as described above. */
int ddp_sweep_plan_parse(const char *text, size_t bytes, const char *name,
                         ddp_sweep_takes_list takes_list, void *arg, struct ddp_sweep_plan *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sweep_plan_release(struct ddp_sweep_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
