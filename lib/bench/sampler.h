/* The sampler: measures one point on a communicator.
 *
 * Per iteration: rewrite the input (in place: always; out of place: once), barrier, clock, one
 * operation, clock. Time of an iteration = max over ranks of the single operation's duration.
 * Nothing is allocated, written or logged between the two clocks. Around each point: a ping-pong of
 * about 1 ms between ranks 0 and 1. After (or for check all, with each iteration) the data is
 * verified exactly. */
#ifndef DDP_BENCH_SAMPLER_H
#define DDP_BENCH_SAMPLER_H

#include "bench/plan.h"
#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sampler;
/* Allocates the buffers for the largest point of the plan. Collective. */
int ddp_sampler_create(struct ddp_comm *comm, const struct ddp_bench_options *options,
                       const struct ddp_bench_plan *plan, struct ddp_sampler **out,
                       struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sampler_destroy(struct ddp_sampler *s);
/* Measures plan->points[index]. Collective. *out is complete on every rank; *samples (ns,
 * [out->sample_count]) borrowed until the next call. A wrong result is DDP_EDATA on all ranks, with
 * rank, offset, expected, got and xor in err. */
int ddp_sampler_point(struct ddp_sampler *s, int index, struct ddp_point *out,
                      const double **samples, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
