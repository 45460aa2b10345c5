/* Combines the durations of all ranks: the time of an iteration is the slowest rank's. */
#ifndef DDP_BENCH_SLOWEST_H
#define DDP_BENCH_SLOWEST_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of durations exchanged at a time. */
#define DDP_SLOWEST_CHUNK 1024

/* Sets sample [iters], on every rank alike, to the largest duration of all ranks in each iteration.
 * duration [iters]: this rank's, in ns. rank_sum [size], or NULL: receives each rank's sum. chunk
 * [size * DDP_SLOWEST_CHUNK]: scratch. Collective. */
int ddp_slowest(struct ddp_comm *comm, const int64_t *duration, int64_t iters, int64_t *chunk,
                double *sample, double *rank_sum, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
