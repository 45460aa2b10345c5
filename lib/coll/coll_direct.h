/* Zero-copy on registered memory: what the "direct" algorithms have in common. For lib/coll only.
 *
 * A call has two *steps*, both on DDP_LANE_DIRECT. *Enter*: a rank says that its send is ready and
 * its recv may be overwritten, and where both lie: their addresses travel beside the flag, in its
 * cache line. So ranks may have their buffers at different places, and only the root need have
 * both. Data then moves once, from a rank's send to a rank's recv, by whichever of the two the
 * algorithm says. *Leave*: a rank says that it touches no other rank's memory any more.
 *
 * Two rules: before a rank touches a peer's memory it waits for the peer's enter; and a rank does
 * not return before all those have left that touch its memory or look for its addresses.
 * Flags only grow, by two a call on every rank; a rank that need not wait may be a call ahead. */
#ifndef DDP_COLL_COLL_DIRECT_H
#define DDP_COLL_COLL_DIRECT_H

#include <string.h>

#include "coll/coll_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Offsets in the shared segment of a rank's send and recv; of one that is private (that this rank
 * need not have): meaningless. */
struct ddp_direct_place {
    uint64_t send, recv;
};

static inline struct ddp_direct_place ddp_direct_place_of(const struct ddp_comm *comm, int rank)
{
    struct ddp_direct_place place;
    memcpy(&place, ddp_shm_lane_of(comm->shm, rank, DDP_LANE_DIRECT)->inline_data, sizeof place);
    return place;
}

static inline void ddp_direct_enter(struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    const uintptr_t base = (uintptr_t)comm->place.segment;
    const struct ddp_direct_place place = {(uintptr_t)args->send - base,
                                           (uintptr_t)args->recv - base};
    memcpy(ddp_shm_lane_of(comm->shm, comm->rank, DDP_LANE_DIRECT)->inline_data, &place,
           sizeof place);
    ddp_shm_post(comm, DDP_LANE_DIRECT, ++comm->shm->epoch[DDP_LANE_DIRECT]);
}

static inline void ddp_direct_leave(struct ddp_comm *comm)
{
    ddp_shm_post(comm, DDP_LANE_DIRECT, ++comm->shm->epoch[DDP_LANE_DIRECT]);
}

/* Waits until `peer` has reached the step this rank is in: has entered, or has left. */
static inline int ddp_direct_wait(struct ddp_comm *comm, int peer, struct ddp_err *err)
{
    return ddp_shm_wait(comm, peer, DDP_LANE_DIRECT, comm->shm->epoch[DDP_LANE_DIRECT], err);
}
static inline int ddp_direct_wait_all(struct ddp_comm *comm, struct ddp_err *err)
{
    return ddp_coll_wait_all(comm, DDP_LANE_DIRECT, comm->shm->epoch[DDP_LANE_DIRECT], err);
}

/* Where this rank sees the arrays of `rank`, which has entered. */
static inline const unsigned char *ddp_direct_send_of(const struct ddp_comm *comm, int rank)
{
    return (const unsigned char *)comm->place.segment + ddp_direct_place_of(comm, rank).send;
}
static inline unsigned char *ddp_direct_recv_of(const struct ddp_comm *comm, int rank)
{
    return (unsigned char *)comm->place.segment + ddp_direct_place_of(comm, rank).recv;
}

/* Of a long copy: do the call's arrays, a rank's part of them, not fit a rank's share of the cache?
 * 2 ranks on 2 cores of an EPYC with 32 MiB for both, us, plain and non-temporal (Open MPI); other
 * runs were a fifth faster, the non-temporal ones least. rep movsb is as plain.
 *               8 MiB            16 MiB             32 MiB
 *   all-gather  276, 610 (363)   1409, 1272 (1358)  2599, 2583 (3566)
 *   all-to-all  624, 640 (626)   1993, 1344 (1798)  2734, 2779 (4376)
 *   broadcast   164, 308 (465)   703, 634 (1203)    1357, 1333 (2535) */
bool ddp_direct_outgrows_cache(const struct ddp_comm *comm, const struct ddp_coll_args *args);

/* ddp_coll_move, and past the cache where the call outgrows it. */
static inline void ddp_direct_move(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                                   void *dst, const void *src, size_t bytes)
{
    const size_t long_bytes = (size_t)64 << 10; /* below, a fence is no longer small */
    if (bytes >= long_bytes && dst != src && ddp_direct_outgrows_cache(comm, args))
        comm->device->copy_nt(dst, src, bytes);
    else
        ddp_coll_move(comm, dst, src, bytes);
}

/* What rooted collectives share: the root, with nothing to copy for itself in place, takes the end
 * of each part off its peers' hands, so that n ranks copy what n-1 would. From which byte on?
 * `bytes` when the part is too short to be worth a second synchronisation. */
size_t ddp_direct_root_begin(const struct ddp_comm *comm, size_t bytes);

/* First byte of rank r's slice of `bytes` bytes at address `base`: 0 for rank 0, `bytes` for rank
 * n, else a cache-line boundary of memory (of the array, should base not be a multiple of the
 * element size). Ranks agree where their bases are equal modulo a line. */
size_t ddp_direct_slice_begin(const void *base, size_t bytes, size_t elem, int r, int ranks);

/* DDP_EUNAVAIL unless memory is shared and the shape's buffers are registered. */
int ddp_direct_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                        struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
