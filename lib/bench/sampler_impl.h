/* Inside the sampler: what its two files share. Nobody else includes this.
 *
 *   sampler_setup.c   buffers, groups, the progress thread; which points can be measured
 *   sampler.c         one point */
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

/* comm: of all ranks. group: the one that runs the operation: comm, or this rank's share of it.
 * skip: [plan->count] reasons of points left out, NULL: measured. order [measured]: indexes of the
 * plan's points in the order they are measured; place [plan->count]: how many measured ones come
 * before one in the plan. duration [iters], of overlap, chunk [size][DDP_SLOWEST_CHUNK]: scratch.
 * reduced: NULL unless points are compressed or partial. async: NULL unless operations are
 * non-blocking; its thread runs them in the group's stead. */
struct ddp_sampler {
    struct ddp_comm *comm;
    struct ddp_comm *group;
    const struct ddp_bench_options *options;
    const struct ddp_bench_plan *plan;
    void *a, *b;
    const struct ddp_device *device;
    void *image_a, *image_b;
    double *device_ns;
    size_t buffer_bytes;
    enum ddp_memory memory;
    char **skip;
    int *order, *place;
    int measured;
    int64_t *duration, *chunk;
    int64_t page_bytes;
    struct ddp_iterations *iterations;
    struct ddp_bound *bound;
    struct ddp_compressed_bench *reduced;
    struct ddp_async *async;
};
struct ddp_comm *ddp_sampler_comm(const struct ddp_sampler *s);
/* Where the arrays of a point lie. */
void ddp_sampler_operands(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                          struct ddp_operands *out);
/* The collective of a point made ready. DDP_EUNAVAIL: its algorithm cannot. Not collective. */
int ddp_sampler_plan(const struct ddp_sampler *s, const struct ddp_point_spec *spec,
                     struct ddp_coll_plan *out, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
