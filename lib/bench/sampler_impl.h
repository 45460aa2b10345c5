/* Private declarations of the two files of the sampler.
 *
 *   sampler_setup.c   creates buffers, groups and progress thread; finds the points to measure
 *   sampler.c         measures one point */
#ifndef DDP_BENCH_SAMPLER_IMPL_H
#define DDP_BENCH_SAMPLER_IMPL_H

#include "bench/bound.h"
#include "bench/compressed_point.h"
#include "bench/iterations.h"
#include "bench/operands.h"
#include "bench/sampler.h"
#include "coll/async.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sampler {
    struct ddp_comm *comm;  /* all ranks */
    struct ddp_comm *group; /* runs the operation: comm, or this rank's group of --groups */
    const struct ddp_bench_options *options;
    const struct ddp_bench_plan *plan;
    void *a, *b;                     /* the two buffers, [buffer_bytes] each */
    const struct ddp_device *device; /* owner of the buffers' memory; NULL: the host */
    void *image_a, *image_b;         /* copies that the host can read, for a device (operands.h) */
    double *device_ns; /* [iters]: this rank's times by the device's clock; NULL: no device */
    size_t buffer_bytes;
    enum ddp_memory memory;
    char **skip; /* [plan->count]: why a point is left out; NULL: it is measured */
    /* order [measured]: indexes of points in the plan, in the order of measurement. plan_position
     * [plan->count]: how many measured points precede each point in the plan. */
    int *order, *plan_position;
    int measured;
    /* Scratch: duration [iters] for overlap, chunk [size][DDP_SLOWEST_CHUNK]. */
    int64_t *duration, *chunk;
    int64_t page_bytes; /* page size of buffer a; -1: not known */
    struct ddp_iterations *iterations;
    struct ddp_bound *bound;
    struct ddp_compressed_bench *reduced; /* NULL unless points are compressed or partial */
    struct ddp_async *async;              /* runs non-blocking operations; NULL: operations block */
};

/* Returns the communicator on which operations run: the progress thread's if there is one,
 * otherwise the group. */
struct ddp_comm *ddp_sampler_comm(const struct ddp_sampler *s);
/* Sets *out to the arrays of a point. */
void ddp_sampler_operands(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                          struct ddp_operands *out);
/* Prepares the collective of a point. Returns DDP_EUNAVAIL if its algorithm cannot run. Not
 * collective. */
int ddp_sampler_plan(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                     struct ddp_coll_plan *out, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
