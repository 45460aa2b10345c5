/* Combines the durations of all ranks. The time of an iteration is that of the slowest rank. */
#ifndef DDP_BENCH_SLOWEST_H
#define DDP_BENCH_SLOWEST_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of durations exchanged at a time. */
#define DDP_SLOWEST_CHUNK 1024

/* Sets sample [iters] to the largest duration of any rank in each iteration, on all ranks. duration
 * [iters]: this rank's durations in ns. rank_sum [size], or NULL: receives the sum of each rank's
 * durations. chunk [size * DDP_SLOWEST_CHUNK]: scratch. Collective. */
int ddp_slowest(struct ddp_comm *comm, const int64_t *duration, int64_t iters, int64_t *chunk,
                double *sample, double *rank_sum, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
