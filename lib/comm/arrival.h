/* Artificial arrivals (--arrival): the ranks enter the timed operation at different times, as in a
 * training with a slow rank. The times show which algorithm suffers least from a late rank.
 *
 *   late:R,MS    rank R enters MS milliseconds after the others
 *   ramp[:MS]    rank r of n enters r / (n-1) * MS after the first rank
 *   random[:MS]  each rank enters after a uniform random delay of at most MS; the delay depends on
 *                --seed and differs between iterations
 *
 * The default of MS is 1. */
#ifndef DDP_COMM_ARRIVAL_H
#define DDP_COMM_ARRIVAL_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_arrival_kind {
    DDP_ARRIVAL_TOGETHER, /* without --arrival */
    DDP_ARRIVAL_LATE,
    DDP_ARRIVAL_RAMP,
    DDP_ARRIVAL_RANDOM
};

struct ddp_arrival {
    enum ddp_arrival_kind kind;
    int rank; /* of LATE */
    double ms;
    char name[32]; /* such as "late:1,2" or "ramp:1"; "": together */
};

/* Parses the value of --arrival. Returns DDP_EUSAGE if it is not valid. */
int ddp_arrival_parse(const char *text, struct ddp_arrival *out,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_EUSAGE if late:R,MS names a rank R that does not exist among `ranks` ranks. */
int ddp_arrival_check(const struct ddp_arrival *a, int ranks, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the delay, in ns, of a rank of `size` ranks in an iteration. */
int64_t ddp_arrival_delay(const struct ddp_arrival *a, int rank, int size, uint64_t seed,
                          uint64_t iteration);
/* Waits for the delay of this rank in an iteration. Does nothing if the ranks enter together, or if
 * there is one rank. */
void ddp_arrival_wait(const struct ddp_arrival *a, const struct ddp_comm *comm, uint64_t seed,
                      uint64_t iteration);

#ifdef __cplusplus
}
#endif
#endif
