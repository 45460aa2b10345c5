/* Gives all ranks a common time: estimates the offset of each rank's monotonic clock from rank 0's
 * clock.
 *
 * Ranks of one host read the same clock. On every host except the host of rank 0, the lowest rank
 * asks rank 0 for the time in several round trips, and uses the fastest round trip. Rank 0 is
 * assumed to have read its clock in the middle of the round trip. The error is at most half the
 * round trip (Cristian 1989; Hoefler, Schneider & Lumsdaine 2008). Clocks drift by some parts in a
 * million. The offset is therefore estimated again from time to time, and interpolated linearly
 * between the last two estimates. */
#ifndef DDP_COMM_CLOCKS_H
#define DDP_COMM_CLOCKS_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_clocks {
    struct ddp_comm *comm;
    bool common;         /* all ranks read one clock, so all offsets are 0 */
    int estimates;       /* number of estimates so far */
    int64_t at_ns[2];    /* local times of the last two estimates, the older first */
    double offset_ns[2]; /* the two offsets: rank 0's time minus local time */
    double error_ns;     /* error bound of the last estimate: half the fastest round trip */
};

/* Initialises *c. comm is borrowed. */
void ddp_clocks_init(struct ddp_clocks *c, struct ddp_comm *comm);
/* Estimates the offset again. Does nothing if all ranks read one clock. Takes 20 round trips
 * between rank 0 and each other host, so do not call it in timed regions. Collective. */
int ddp_clocks_estimate(struct ddp_clocks *c, struct ddp_err *err) DDP_MUST_CHECK;
/* Measures with messages by how much rank 0's clock is ahead of this rank's clock, even if both
 * ranks run on one host. *error_ns becomes the bound of the error. Both results are 0 on rank 0.
 * Returns DDP_EUNAVAIL if the backend has no messages. Collective. */
int ddp_clocks_offset(struct ddp_comm *comm, double *offset_ns, double *error_ns,
                      struct ddp_err *err) DDP_MUST_CHECK;

/* Convert local time to rank 0's time, and rank 0's time to local time. */
int64_t ddp_clocks_global(const struct ddp_clocks *c, int64_t local_ns);
int64_t ddp_clocks_local(const struct ddp_clocks *c, int64_t global_ns);

#ifdef __cplusplus
}
#endif
#endif
