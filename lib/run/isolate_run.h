/* The job of `ddpbench isolate`. It runs a collective in many groups of hosts (or of ranks, on one
 * host), which group testing chooses (stats/group_test.h). Then it names the hosts, ranks and links
 * that slow down the collective. */
#ifndef DDP_RUN_ISOLATE_RUN_H
#define DDP_RUN_ISOLATE_RUN_H

#include "run/command.h"

enum ddp_isolate_collective { DDP_ISOLATE_ALL_TO_ALL, DDP_ISOLATE_ALLREDUCE };
extern const char *const ddp_isolate_collective_names[]; /* ends with NULL */

struct ddp_isolate_values {
    struct ddp_world_options world; /* must be first */
    int collective;                 /* enum ddp_isolate_collective */
    uint64_t size;                  /* bytes of the array of a rank */
    int64_t rounds;                 /* largest number of rounds */
    double max_time_s;              /* no round begins after this time */
    double min_effect_percent, must_find_percent;
    const char *inject; /* MS@RANK or MS@RANK-RANK, or NULL */
    /* The parsed value of `inject`. inject_rank -1: no delay. inject_to -1: the delay belongs to a
     * rank and not to a link. */
    double inject_ms;
    int inject_rank, inject_to;
};

/* Parses v->inject. Returns DDP_EUSAGE if it is illegal. */
int ddp_isolate_parse_inject(struct ddp_isolate_values *v, struct ddp_err *err) DDP_MUST_CHECK;

extern const struct ddp_job ddp_isolate_job;

#endif
