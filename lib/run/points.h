/* The job of a collective command: measures the points of its plan. */
#ifndef DDP_RUN_POINTS_H
#define DDP_RUN_POINTS_H

#include <assert.h>

#include "bench/plan.h"
#include "run/command.h"

/* The values of a collective command. */
struct ddp_collective_values {
    struct ddp_world_options world; /* must be the first member, see command.h */
    struct ddp_bench_options bench;
    struct ddp_bench_plan *plans; /* one per rank count (one without --ranks); made by prepare */
    int plan_count;
    bool explain_auto;
    struct ddp_string_list compress; /* --compress as given */
    const char *groups;              /* --groups as given */
    const char *split;               /* --split as given; NULL: the command has no such option */
    double precision_percent;        /* --precision as given */
    const char *inject;              /* --inject-delay as given; NULL without it */
};

static_assert(offsetof(struct ddp_collective_values, world) == 0,
              "main.c casts values to struct ddp_world_options");

extern const struct ddp_job ddp_points_job;

/* Returns the plan that prepare() has made for `ranks` ranks. `values` is a struct
 * ddp_collective_values. */
const struct ddp_bench_plan *ddp_points_plan(const void *values, int ranks);

#endif
