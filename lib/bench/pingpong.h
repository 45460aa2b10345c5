/* A cache-line ping-pong between ranks 0 and 1: on shared machines it decides what is fast (which
 * cores the ranks really sit on), so it stands beside every figure. Over shared flags where the
 * backend maps memory, else by 8-byte messages. */
#ifndef DDP_BENCH_PINGPONG_H
#define DDP_BENCH_PINGPONG_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Median round trip in ns over about budget_ns (1e6: the record's), on all ranks alike; NaN with
 * one rank. Collective. */
int ddp_pingpong(struct ddp_comm *comm, int64_t budget_ns, double *round_trip_ns,
                 struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
