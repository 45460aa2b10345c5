/* The sampler: measures one point on a communicator.
 *
 * Points with compression or --partial are measured by compressed_point.h. This comment describes
 * all other points. The sampler first runs one untimed operation and counts the bytes sent. Unless
 * --check is off, it verifies the result of this operation. After the timed loop it then verifies
 * the last operation and a burst (verify_burst.h). Each timed iteration waits for the start
 * (iterations.h) and times one operation (--block: several). Between the two clock readings the
 * sampler does nothing else, except for the delay of --inject-delay. In place, the input is
 * rewritten before every iteration. Out of place, it is rewritten only with --check all, which
 * gives every iteration new input and verifies its result outside the timed region.
 *
 * A ping-pong of at most about 1 ms between ranks 0 and 1 runs before and after the timed loop. The
 * least time that this machine needs for the operation is also measured before and after the loop
 * (bound.h). With --overlap-compute the operation runs through coll/async.h, except on a device,
 * and is measured again beside a compute loop (overlap.h). */
#ifndef DDP_BENCH_SAMPLER_H
#define DDP_BENCH_SAMPLER_H

#include "bench/plan.h"
#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sampler;
/* Allocates the buffers for the largest point of the plan, and finds the points that can be
 * measured. Returns DDP_EUNAVAIL on all ranks if the user named a point that cannot run. options
 * and plan are borrowed until destroy. Collective. */
int ddp_sampler_create(struct ddp_comm *comm, const struct ddp_bench_options *options,
                       const struct ddp_bench_plan *plan, struct ddp_sampler **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sampler_destroy(struct ddp_sampler *s);
/* True if plan->points[index] is skipped: it cannot run here, and it is in the plan only because
 * an option has the value "all". *why: the reason, borrowed. */
bool ddp_sampler_skips(const struct ddp_sampler *s, int index, const char **why);
/* Returns the indexes [*count] of the points to measure, in the order of measurement. Borrowed. */
const int *ddp_sampler_order(const struct ddp_sampler *s, int *count);
/* Measures plan->points[index], which must not be skipped. *out is complete on every rank. *samples
 * [out->sample_count], in ns, is borrowed until the next call. Returns DDP_EDATA on all ranks if a
 * result is wrong. err then names the rank, the element, the expected and the received value, and
 * their xor. Collective. */
int ddp_sampler_point(struct ddp_sampler *s, int index, struct ddp_point *out,
                      const double **samples, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
