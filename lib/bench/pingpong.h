/* Measures a ping-pong between ranks 0 and 1. Its time shows how far apart the cores of these two
 * ranks are. This distance affects all other times, so every result reports the ping-pong. The
 * ranks use flags if all ranks share memory, otherwise 8-byte messages. If `comm` has a side
 * channel (comm->control), the ping-pong uses only this channel. */
#ifndef DDP_BENCH_PINGPONG_H
#define DDP_BENCH_PINGPONG_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs one batch of 8 round trips to warm up, then batches for about budget_ns, but at most 128
 * batches. For the ping-pong of a point, budget_ns is 1e6. Oversubscribed ranks use at most 2e5 ns.
 * Sets *round_trip_ns on all ranks to the median of the batches' means, or to NaN if there is one
 * rank or the backend has neither flags nor messages. Collective. */
int ddp_pingpong(struct ddp_comm *comm, int64_t budget_ns, double *round_trip_ns,
                 struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
