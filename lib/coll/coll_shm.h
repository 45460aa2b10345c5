/* Helpers of the algorithms that use shared memory: the numbers of flag slots, the choice of stores
 * for copies, and chunks that begin at cache lines. Only lib/coll and bench/pingpong.c use this
 * header. */
#ifndef DDP_COLL_COLL_SHM_H
#define DDP_COLL_COLL_SHM_H

#include "base/mem.h"
#include "coll/coll.h"
#include "coll/coll_p2p.h"
#include "coll/pattern.h"
#include "comm/shm/comm_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The flag slots (comm_shm.h) that algorithms use. Slots 0 and 1 belong to lib/comm, which uses
 * slot 0 for barriers and all-gathers of bytes. Algorithms may share a slot, because every call
 * raises the slot's sequence number by the same amount on all ranks. */
enum ddp_coll_flag_slot {
    DDP_FLAGS_FLAT = 2, /* slots 2 and 3; calls use them in turn */
    DDP_FLAGS_DIRECT = 4,
    DDP_FLAGS_STAGED_IN = 5,
    DDP_FLAGS_STAGED_SUM = 6,
    DDP_FLAGS_STAGED_DONE = DDP_FLAGS_STAGED_SUM, /* the name of this slot in coll_staged.c */
    DDP_FLAGS_PINGPONG = 7,                       /* bench/pingpong.c */
    DDP_FLAGS_HIER_IN = 8,                        /* 8 to 11: allreduce_hier.c */
    DDP_FLAGS_HIER_SUM,
    DDP_FLAGS_HIER_RESULT,
    DDP_FLAGS_HIER_OUT
};

/* Returns DDP_EUNAVAIL, with the reason, if the ranks of the group do not share memory. `name` is
 * the algorithm's name for the error message. */
int ddp_coll_needs_shm(const struct ddp_comm *comm, const char *name,
                       struct ddp_err *err) DDP_MUST_CHECK;

/* True if a copy of `bytes` bytes should use non-temporal stores, which do not read the destination
 * first. Such stores are faster if the data does not fit the cache (results/notes/collectives.md).
 * `touched` is the size of all arrays that a rank accesses in the call, or 0 if it is unknown.
 * Copies of 16 MiB or more always use non-temporal stores. Copies of 64 KiB or more use them if
 * `touched` exceeds the rank's share of the cache. Shorter copies never use them, because the fence
 * after the stores would take too long. */
static inline bool ddp_coll_past_cache(const struct ddp_comm *comm, size_t bytes, size_t touched)
{
    return bytes >= (size_t)16 << 20 || (bytes >= (size_t)64 << 10 && touched > comm->cache_share);
}

/* Sets up *reduce for a call of the device's reduce(). The call combines one array of each rank,
 * src[0] to src[comm->size - 1], into the array dst[0]. *reduce keeps the pointers `dst` and `src`,
 * so both arrays must live as long as *reduce. The function does not return the struct by value,
 * because the copy would delay short messages. */
static inline void ddp_reduce_all(struct ddp_reduce *reduce, const struct ddp_comm *comm,
                                  const struct ddp_coll_args *args, void *const *dst,
                                  const void *const *src, size_t count)
{
    *reduce = (struct ddp_reduce){
        .dst = dst,
        .dst_count = 1,
        .src = src,
        .src_count = comm->size,
        .count = count,
        .dtype = args->dtype,
        .op = args->op,
        .divisor = ddp_coll_divisor(comm, args->op),
        .remote = 0,
    };
}

/* Cuts `bytes` bytes at address `base` into one chunk per rank, and returns the offset of rank r's
 * chunk. For r == ranks it returns `bytes`. All chunks except the first begin at the start of a
 * cache line. If `base` is not a multiple of the element size, all chunks begin at a multiple of
 * the cache line size from `base` instead. Two ranks compute the same offsets if their values of
 * `base` are equal modulo the cache line size. */
static inline size_t ddp_direct_chunk_begin(const void *base, size_t bytes, size_t elem, int r,
                                            int ranks)
{
    const size_t to_line = -(uintptr_t)base & (DDP_CACHE_LINE - 1);
    const size_t lead = to_line % elem == 0 ? to_line : 0;
    if (r == 0 || bytes <= lead)
        return r == 0 ? 0 : bytes;
    const size_t lines = (bytes - lead + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE;
    return DDP_MIN(bytes, lead + lines * (size_t)r / (size_t)ranks * DDP_CACHE_LINE);
}

#ifdef __cplusplus
}
#endif
#endif
