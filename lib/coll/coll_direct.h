/* Helpers of the "direct" algorithms, which copy nothing in between, on registered memory. For
 * lib/coll only.
 *
 * A call has two *steps*, both on flag slot DDP_FLAGS_DIRECT. *Enter*: a rank announces that its
 * send buffer is ready and that its recv buffer may be overwritten. The addresses of both buffers
 * are stored beside the flag, in its cache line, so ranks may have their buffers at different
 * offsets, and only the root needs to have both. Then each byte moves once, from the send buffer of
 * one rank to the recv buffer of another; the algorithm decides which of the two ranks copies.
 * *Leave*: a rank announces that it no longer touches the memory of other ranks.
 *
 * Two rules make this safe. Before a rank touches the memory of a peer, it waits for the peer to
 * enter. A rank returns only after all ranks have left that touch its memory or read its addresses.
 * Flags only grow, by two a call on every rank. A rank that does not need to wait may be one call
 * ahead. */
#ifndef DDP_COLL_COLL_DIRECT_H
#define DDP_COLL_COLL_DIRECT_H

#include <string.h>

#include "coll/coll_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Offsets of a rank's send and recv buffers in the shared segment. The offset of a buffer that the
 * rank does not need has no meaning. */
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

/* Waits until `peer` has reached the step that this rank is in: enter or leave. */
static inline int ddp_direct_wait(struct ddp_comm *comm, int peer, struct ddp_err *err)
{
    return ddp_shm_wait(comm, peer, DDP_FLAGS_DIRECT, comm->shm->sequence[DDP_FLAGS_DIRECT], err);
}
static inline int ddp_direct_wait_all(struct ddp_comm *comm, struct ddp_err *err)
{
    return ddp_coll_wait_all(comm, DDP_FLAGS_DIRECT, comm->shm->sequence[DDP_FLAGS_DIRECT], err);
}

/* Return the addresses, in this process, of the send and recv buffers of `rank`, which must have
 * entered. */
static inline const unsigned char *ddp_direct_send_of(const struct ddp_comm *comm, int rank)
{
    return (const unsigned char *)comm->rank_info.segment + ddp_direct_place_of(comm, rank).send;
}
static inline unsigned char *ddp_direct_recv_of(const struct ddp_comm *comm, int rank)
{
    return (unsigned char *)comm->rank_info.segment + ddp_direct_place_of(comm, rank).recv;
}

/* True if this rank's share of all arrays of the call is larger than its share of the last-level
 * cache. Long copies then use non-temporal stores, which were faster in most collectives from 16
 * MiB on; the timings are in results/notes/collectives.md. */
bool ddp_direct_outgrows_cache(const struct ddp_comm *comm, const struct ddp_coll_args *args);

/* Like ddp_coll_move, but also uses non-temporal stores if the arrays of the call outgrow the
 * cache. */
static inline void ddp_direct_move(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                                   void *dst, const void *src, size_t bytes)
{
    const size_t long_bytes = (size_t)64 << 10; /* shorter copies do not pay for the fence */
    if (bytes >= long_bytes && dst != src && ddp_direct_outgrows_cache(comm, args))
        comm->device->copy_nt(dst, src, bytes);
    else
        ddp_coll_move(comm, dst, src, bytes);
}

/* Returns the first byte of the tail that the root copies on behalf of its peers. In place, the
 * root has no copy of its own, so it takes the last n-th of each chunk and n ranks share the work
 * of n-1. bytes: size of a chunk. Returns `bytes` if the chunk is too short to pay for a second
 * synchronisation. */
size_t ddp_direct_root_begin(const struct ddp_comm *comm, size_t bytes);

/* Returns the first byte of rank r's chunk of `bytes` bytes at address `base`: 0 for rank 0 and
 * `bytes` for rank n. In between it is aligned to a cache line of memory, or to a cache line
 * counted from `base` if `base` is not a multiple of the element size. Ranks compute the same value
 * if their bases are equal modulo a cache line. */
size_t ddp_direct_chunk_begin(const void *base, size_t bytes, size_t elem, int r, int ranks);

/* Returns DDP_EUNAVAIL if memory is not shared or the buffers of the shape are not registered. */
int ddp_direct_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                        struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
