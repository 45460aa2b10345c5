/* One clock for all ranks: how far each rank's monotonic clock is from rank 0's.
 *
 * Ranks of one host read the same clock; the lowest rank of every other host asks rank 0 for its
 * time, several rounds of exchanges, and takes the one that came back fastest: at the middle of
 * that round trip both read the clock, give or take half of it (Cristian 1989; Hoefler, Schneider
 * & Lumsdaine 2008). Clocks drift by some parts in a million, so the offset is estimated again and
 * again, and between two estimates taken from the line through them. What it does not do: set any
 * clock, or start anything; iterations.h does. */
#ifndef DDP_BENCH_CLOCKS_H
#define DDP_BENCH_CLOCKS_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* common: all ranks read one clock, offsets are 0. estimates: how many there were. at_ns: the local
 * times of the last two, the older first; offset_ns: what is added to local time to get rank 0's.
 * error_ns: bound of the last one, half the fastest round trip. */
struct ddp_clocks {
    struct ddp_comm *comm;
    bool common;
    int estimates;
    int64_t at_ns[2];
    double offset_ns[2];
    double error_ns;
};
void ddp_clocks_init(struct ddp_clocks *c, struct ddp_comm *comm);
/* Estimates once more. Collective, untimed: two exchanges a round and other host; nothing where
 * the clock is common. */
int ddp_clocks_estimate(struct ddp_clocks *c, struct ddp_err *err) DDP_MUST_CHECK;
/* This rank's offset from rank 0 by messages, whatever hosts there are: what an estimate is made
 * of. Collective. *error_ns: as above. */
int ddp_clocks_offset(struct ddp_comm *comm, double *offset_ns, double *error_ns,
                      struct ddp_err *err) DDP_MUST_CHECK;

/* Local time to rank 0's, and back. */
int64_t ddp_clocks_global(const struct ddp_clocks *c, int64_t local_ns);
int64_t ddp_clocks_local(const struct ddp_clocks *c, int64_t global_ns);

#ifdef __cplusplus
}
#endif
#endif
