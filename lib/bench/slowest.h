/* What the ranks' durations mean together: the slowest rank's time is the iteration's. */
#ifndef DDP_BENCH_SLOWEST_H
#define DDP_BENCH_SLOWEST_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Durations exchanged at a time. */
#define DDP_SLOWEST_CHUNK 1024

/* Collective. duration [iters] ns of this rank; sample [iters]: receives the largest of all ranks,
 * iteration by iteration, on every rank alike; rank_sum [size], or NULL: each rank's sum. chunk
 * [size * DDP_SLOWEST_CHUNK]: scratch. */
int ddp_slowest(struct ddp_comm *comm, const int64_t *duration, int64_t iters, int64_t *chunk,
                double *sample, double *rank_sum, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
