/* Reports which ranks wait for which other ranks, from the flight recorders of all ranks of a
 * world. For example: "rank 2 never entered allreduce seq 41; ranks 0, 1, 3 wait in it". The
 * process that ends a run makes the report while the ranks still wait. Making a report only reads
 * the recorders. */
#ifndef DDP_DIAG_FLIGHT_REPORT_H
#define DDP_DIAG_FLIGHT_REPORT_H

#include "diag/flight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the ranks r with mark[r] == wanted as "0, 1, 3" or "0-7, 9". mark has `ranks` elements.
 * Four or more consecutive ranks become a range. Returns the number of ranks with this mark. Text
 * that does not fit is cut and ends in "...". */
int ddp_rank_list(const unsigned char *mark, int ranks, unsigned char wanted, char *out,
                  size_t out_bytes);

/* The recorders of all ranks. The recorder of rank r lies `r * stride` bytes after `first`. */
struct ddp_flights {
    const struct ddp_flight *first;
    size_t stride;
    int ranks;
};

/* Writes a report about the newest operation of rank `by`. The report says which ranks of its group
 * have not entered the operation, wait in it, or have left it. In a group other than the world, a
 * rank counts as a member if its recorder holds an operation of the group. Rank `peer` (-1: none)
 * counts as a member, too. Returns false and does not change `out` if rank `by` has no operation
 * yet, or if its newest operation succeeded or concerns only one rank. Also returns false if `by`
 * is not a rank, and for worlds of more than 1,024 ranks. */
bool ddp_flight_report(const struct ddp_flights *all, int by, int peer, char *out,
                       size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
