/* Helpers of the "direct" algorithms, which move data straight from one rank's registered buffer to
 * another's. For lib/coll only.
 *
 * A call has two *steps*. In each step a rank posts its flag in slot DDP_FLAGS_DIRECT. *Enter*
 * announces that the rank's send buffer is ready and that its recv buffer may be overwritten. The
 * offsets of both buffers are stored beside the flag, so the offsets may differ between ranks.
 * After that, ranks copy or combine data straight from send buffers to recv buffers. *Leave*
 * announces that the rank no longer accesses the memory of other ranks.
 *
 * Two rules make this safe. A rank accesses the memory of a peer only after the peer has entered. A
 * rank returns only after every rank that accesses its memory or reads its offsets has left. Each
 * call raises the flag of every rank by two. */
#ifndef DDP_COLL_COLL_DIRECT_H
#define DDP_COLL_COLL_DIRECT_H

#include <string.h>

#include "coll/coll_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Offsets of a rank's send and recv buffers in the shared segment. If the rank does not need a
 * buffer, that offset is ignored. */
struct ddp_direct_place {
    uint64_t send, recv;
};

static inline struct ddp_direct_place ddp_direct_place_of(const struct ddp_comm *comm, int rank)
{
    struct ddp_direct_place place;
    memcpy(&place, ddp_shm_flag_slot_of(comm->shm, rank, DDP_FLAGS_DIRECT)->inline_data,
           sizeof place);
    return place;
}

static inline void ddp_direct_enter(struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    const uintptr_t base = (uintptr_t)comm->rank_info.segment;
    const struct ddp_direct_place place = {(uintptr_t)args->send - base,
                                           (uintptr_t)args->recv - base};
    memcpy(ddp_shm_flag_slot_of(comm->shm, comm->rank, DDP_FLAGS_DIRECT)->inline_data, &place,
           sizeof place);
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++comm->shm->sequence[DDP_FLAGS_DIRECT]);
}

static inline void ddp_direct_leave(struct ddp_comm *comm)
{
    ddp_shm_post(comm, DDP_FLAGS_DIRECT, ++comm->shm->sequence[DDP_FLAGS_DIRECT]);
}

/* Waits until `peer` has reached the step that this rank is in (enter or leave). */
static inline int ddp_direct_wait(struct ddp_comm *comm, int peer, struct ddp_err *err)
{
    return ddp_shm_wait(comm, peer, DDP_FLAGS_DIRECT, comm->shm->sequence[DDP_FLAGS_DIRECT], err);
}
static inline int ddp_direct_wait_all(struct ddp_comm *comm, struct ddp_err *err)
{
    return ddp_coll_wait_all(comm, DDP_FLAGS_DIRECT, comm->shm->sequence[DDP_FLAGS_DIRECT], err);
}

/* Return the addresses of the send and recv buffers of `rank` in this process. The rank must have
 * entered. */
static inline const unsigned char *ddp_direct_send_of(const struct ddp_comm *comm, int rank)
{
    return (const unsigned char *)comm->rank_info.segment + ddp_direct_place_of(comm, rank).send;
}
static inline unsigned char *ddp_direct_recv_of(const struct ddp_comm *comm, int rank)
{
    return (unsigned char *)comm->rank_info.segment + ddp_direct_place_of(comm, rank).recv;
}

/* True if the arrays that a rank accesses on average are larger than its share of the last-level
 * cache. Long copies then use non-temporal stores, which are faster for such arrays
 * (results/notes/collectives.md). */
bool ddp_direct_outgrows_cache(const struct ddp_comm *comm, const struct ddp_coll_args *args);

/* Like ddp_coll_move, but also uses non-temporal stores if the arrays of the call outgrow the
 * cache. */
static inline void ddp_direct_move(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                                   void *dst, const void *src, size_t bytes)
{
    const size_t long_bytes = (size_t)64 << 10; /* the fence slows down shorter copies */
    if (bytes >= long_bytes && dst != src && ddp_direct_outgrows_cache(comm, args))
        comm->device->copy_nt(dst, src, bytes);
    else
        ddp_coll_move(comm, dst, src, bytes);
}

/* Returns the offset at which the root's part of each peer's chunk begins. Used for calls in place,
 * in which the root has nothing to copy for itself. The root copies the last n-th of each chunk, so
 * that n ranks share the work of n-1. bytes: size of a chunk. Returns `bytes` if the chunk is so
 * short that the additional wait takes longer than the copy. */
size_t ddp_direct_root_begin(const struct ddp_comm *comm, size_t bytes);

/* Cuts `bytes` bytes at address `base` into one chunk per rank, and returns the offset of rank r's
 * chunk. For r == ranks it returns `bytes`. Chunks except the first begin at cache lines of memory.
 * If `base` is not a multiple of the element size, they begin at multiples of a cache line from
 * `base`. Ranks compute the same offset if their bases are equal modulo a cache line. */
size_t ddp_direct_chunk_begin(const void *base, size_t bytes, size_t elem, int r, int ranks);

/* Returns DDP_EUNAVAIL if memory is not shared or the buffers of the shape are not registered. */
int ddp_direct_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                        struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
