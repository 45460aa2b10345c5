/* A cache-line ping-pong between ranks 0 and 1. Its time shows which cores the ranks really run on,
 * and on shared machines that decides what is fast; every result therefore reports it. It uses
 * shared flags if the backend maps memory, otherwise 8-byte messages. */
#ifndef DDP_BENCH_PINGPONG_H
#define DDP_BENCH_PINGPONG_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *round_trip_ns to the median round trip over about budget_ns (records use 1e6), equal on all
 * ranks; NaN if there is one rank or the backend has neither flags nor messages. Collective. */
int ddp_pingpong(struct ddp_comm *comm, int64_t budget_ns, double *round_trip_ns,
                 struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
