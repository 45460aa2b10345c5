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
    const char *arrival;             /* --arrival as given; NULL without it */
};

static_assert(offsetof(struct ddp_collective_values, world) == 0,
              "main.c casts values to struct ddp_world_options");

extern const struct ddp_job ddp_points_job;

/* Returns the plan that prepare() has made for `ranks` ranks. `values` is a struct
 * ddp_collective_values. */
const struct ddp_bench_plan *ddp_points_plan(const void *values, int ranks);

/* The function `check` of a collective command (run/command.h): completes and checks the values. */
int ddp_points_check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Prints which algorithm `auto` chooses with each rank count of --ranks, or with `ranks` ranks if
 * the option was not given. Called after prepare. */
int ddp_points_explain_auto(const struct ddp_app *app, const struct ddp_collective_values *v,
                            const char *backend, int ranks, struct ddp_err *err) DDP_MUST_CHECK;

#endif
