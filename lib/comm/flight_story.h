/* Who waits for whom, read from the recorders of all ranks of a world: "rank 2 never entered
 * allreduce seq 41; 0, 1, 3 wait in it". Asked for by whoever ends a run, while the others still
 * wait; only looks. */
#ifndef DDP_COMM_FLIGHT_STORY_H
#define DDP_COMM_FLIGHT_STORY_H

#include "comm/flight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Recorder of rank r: at `first` + r * stride bytes. */
struct ddp_flights {
    const struct ddp_flight *first;
    size_t stride;
    int ranks;
};

/* The newest operation of rank `by`, and how far the other ranks of its group are with it.
 * peer: a rank known to be of that group, -1: none (ranks of a group are otherwise known by
 * what they did in it before). False, out untouched: it is no operation of a group, so nothing can
 * be compared. */
bool ddp_flight_story(const struct ddp_flights *all, int by, int peer, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
