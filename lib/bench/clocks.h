/* A common clock for all ranks: the offset of each rank's monotonic clock from rank 0's.
 *
 * Ranks of one host read the same clock. The lowest rank of every other host asks rank 0 for its
 * time several times and uses the fastest round trip. In its middle both clocks were read at the
 * same moment, within half the round trip (Cristian 1989; Hoefler, Schneider & Lumsdaine 2008).
 * Clocks drift by some parts in a million, so the offset is estimated again and again, and
 * interpolated linearly between two estimates. No clock is set. */
#ifndef DDP_BENCH_CLOCKS_H
#define DDP_BENCH_CLOCKS_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_clocks {
    struct ddp_comm *comm;
    bool common;         /* all ranks read one clock: offsets are 0 */
    int estimates;       /* number of estimates so far */
    int64_t at_ns[2];    /* local times of the last two estimates, the older first */
    double offset_ns[2]; /* their offsets: rank 0's time minus local time */
    double error_ns;     /* error bound of the last one: half the fastest round trip */
};

/* Starts without an estimate. comm is borrowed. */
void ddp_clocks_init(struct ddp_clocks *c, struct ddp_comm *comm);
/* Estimates the offset again, outside timed regions. Does nothing if the clock is common.
 * Collective; each other host takes 20 round trips with rank 0. */
int ddp_clocks_estimate(struct ddp_clocks *c, struct ddp_err *err) DDP_MUST_CHECK;
/* Measures this rank's offset from rank 0 by messages, even within a host. *error_ns: error bound.
 * Collective. Returns DDP_EUNAVAIL if the backend has no messages. */
int ddp_clocks_offset(struct ddp_comm *comm, double *offset_ns, double *error_ns,
                      struct ddp_err *err) DDP_MUST_CHECK;

/* Convert local time to rank 0's, and back. */
int64_t ddp_clocks_global(const struct ddp_clocks *c, int64_t local_ns);
int64_t ddp_clocks_local(const struct ddp_clocks *c, int64_t global_ns);

#ifdef __cplusplus
}
#endif
#endif
