/* Reads the configuration of a sweep: turns a JSON document into a list of cells. A cell is the
 * command line of one run.
 *
 *     {"description": "...",
 *      "runs": [{"command": "allreduce", "ranks": [1, 2], "size": ["8", "64K"], "dtype": "f32"},
 *               {"command": "train", "sync": ["dense", "topk:0.01"], "epochs": 2}]}
 *
 * The keys of a run are its command, the options of the command, and optionally a description. A
 * value is a string, a number, true (the flag is given) or false (it is not). A list of values is
 * an axis. A run becomes one cell for every combination of the values of its axes. The last axis
 * varies fastest. There is one exception: if the option itself takes a list (ddp_sweep_takes_list),
 * such as "size" but not "ranks", the values stay together in one cell, which measures one point
 * per value. This parser does not check options. Each command checks its own cells. */
#ifndef DDP_RUN_SWEEP_PLAN_H
#define DDP_RUN_SWEEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

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

/* Returns whether the values of this option of the command stay in one cell, because the option
 * takes a list. */
typedef bool (*ddp_sweep_takes_list)(void *arg, const char *command, const char *option);

/* Parses text[bytes]. name: the document's name in messages. Release *out with
 * ddp_sweep_plan_release. Returns DDP_EINPUT if the text is not JSON or too long, and DDP_ENOMEM if
 * there is no memory. Returns DDP_ECONFIG if it is not a configuration as described above; the
 * message names the run and the key. */
int ddp_sweep_plan_parse(const char *text, size_t bytes, const char *name,
                         ddp_sweep_takes_list takes_list, void *arg, struct ddp_sweep_plan *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sweep_plan_release(struct ddp_sweep_plan *plan);

#endif
