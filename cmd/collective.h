/* Code shared by all collective commands: the values, the plan of points, and the loop over the
 * points. collectives.c has the option tables and the descriptors. */
#ifndef DDP_CMD_COLLECTIVE_H
#define DDP_CMD_COLLECTIVE_H

#include <assert.h>

#include "bench/plan.h"
#include "cmd.h"

/* The values of a collective command. */
struct ddp_collective_values {
    struct ddp_world_options world; /* must be the first member, see cmd.h */
    struct ddp_bench_options bench;
    struct ddp_bench_plan plan; /* for the largest rank count; filled by prepare */
    bool explain_auto;
    struct ddp_string_list compress; /* --compress as given */
    double precision_percent;        /* --precision as given */
    const char *inject;              /* --inject-delay as given; NULL without it */
};

static_assert(offsetof(struct ddp_collective_values, world) == 0,
              "main.c casts values to struct ddp_world_options");

/* Functions for the descriptors of the commands. */
int ddp_collective_check(enum ddp_coll coll, struct ddp_app *app, void *values,
                         const struct ddp_opt_result *parsed, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_collective_prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                           struct ddp_err *err);
uint64_t ddp_collective_heap_bytes(const void *values, int ranks);
bool ddp_collective_threads(const void *values);
int ddp_collective_gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err);
int ddp_collective_rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err);
void ddp_collective_release(void *values);

#endif
