/* The sampler: measures one point on a communicator.
 *
 * Per iteration: rewrite the input (in place: always; out of place: once), start (iterations.h: a
 * barrier or a window), clock, one operation, clock. Nothing is allocated, written or logged
 * between the two clocks. Around each point: a ping-pong of about 1 ms between ranks 0 and 1, and
 * behind it what the machine could do at best (bound.h). First comes one untimed operation whose
 * traffic is counted and (check once) whose result is verified exactly; with check all each
 * iteration has fresh input and is verified, outside the clocks. With overlap the operation is
 * started and waited for through coll/async.h, and measured again beside a compute loop
 * (overlap.h). One rank has nobody to wait for: no barrier.
 */
#ifndef DDP_BENCH_SAMPLER_H
#define DDP_BENCH_SAMPLER_H

#include "bench/plan.h"
#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sampler;
/* Allocates the buffers for the largest point of the plan, and finds out which points can be
 * measured: DDP_EUNAVAIL, on all ranks and before anything is measured, when a named algorithm
 * cannot. options and plan are borrowed until destroy. Collective. */
int ddp_sampler_create(struct ddp_comm *comm, const struct ddp_bench_options *options,
                       const struct ddp_bench_plan *plan, struct ddp_sampler **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sampler_destroy(struct ddp_sampler *s);
/* Was plan->points[index] left out, being one of `--algorithm all` that cannot here? *why: the
 * reason, borrowed. */
bool ddp_sampler_skips(const struct ddp_sampler *s, int index, const char **why);
/* Indexes of the points that are not skipped, in the order options ask for: [*count], borrowed. */
const int *ddp_sampler_order(const struct ddp_sampler *s, int *count);
/* Measures plan->points[index], which is not skipped. Collective. *out is complete on every rank;
 * *samples (ns, [out->sample_count]) borrowed until the next call. A wrong result is DDP_EDATA on
 * all ranks, with rank, offset, expected, got and xor in err. */
int ddp_sampler_point(struct ddp_sampler *s, int index, struct ddp_point *out,
                      const double **samples, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
