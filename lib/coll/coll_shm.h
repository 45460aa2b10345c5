/* Helpers of the algorithms that use shared memory: numbers of flag slots, copies, and the wait for
 * all ranks. For lib/coll only. */
#ifndef DDP_COLL_COLL_SHM_H
#define DDP_COLL_COLL_SHM_H

#include "base/mem.h"
#include "coll/coll.h"
#include "coll/pattern.h"
#include "comm/shm/comm_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The flag slots (comm_shm.h) that algorithms use. Slots 0 and 1 belong to lib/comm (barrier and
 * all-gather of bytes). Algorithms may share a slot, because every call raises the slot's sequence
 * number by the same amount on all ranks. */
enum ddp_coll_flag_slot {
    DDP_FLAGS_FLAT = 2, /* also 3; even calls use 2, odd calls use 3 */
    DDP_FLAGS_DIRECT = 4,
    DDP_FLAGS_STAGED_IN = 5,
    DDP_FLAGS_STAGED_SUM = 6,
    DDP_FLAGS_STAGED_DONE = DDP_FLAGS_STAGED_SUM, /* the name of this slot in coll_stage.c */
    DDP_FLAGS_PINGPONG = 7,                       /* bench/pingpong.c */
    DDP_FLAGS_HIER_IN = 8,                        /* 8 to 11: allreduce_hier.c */
    DDP_FLAGS_HIER_SUM,
    DDP_FLAGS_HIER_RESULT,
    DDP_FLAGS_HIER_OUT
};

/* Returns the bytes of args->count elements. */
static inline size_t ddp_coll_array_bytes(const struct ddp_coll_args *args)
{
    return args->count * ddp_dtype_size(args->dtype);
}

/* Returns the divisor that the last combine must pass to reduce(). */
static inline int ddp_coll_divisor(const struct ddp_comm *comm, enum ddp_op op)
{
    return op == DDP_AVG ? comm->size : 1;
}

/* Arrays of at least this size are assumed not to fit the cache. They are copied with non-temporal
 * stores, which do not read the destination first (results/notes/collectives.md). */
#define DDP_PAST_CACHE_BYTES ((size_t)16 << 20)

/* Copies, unless bytes is 0 or dst and src are the same. Large arrays use non-temporal stores. */
static inline void ddp_coll_move(const struct ddp_comm *comm, void *dst, const void *src,
                                 size_t bytes)
{
    if (bytes == 0 || dst == src)
        return;
    if (bytes >= DDP_PAST_CACHE_BYTES)
        comm->device->copy_nt(dst, src, bytes);
    else
        comm->device->copy(dst, src, bytes);
}

/* Waits until the flag of every other rank in `flag_slot` has reached `sequence`. A rank waits
 * first for the rank after it, so that not all ranks poll the same flag. */
static inline int ddp_coll_wait_all(struct ddp_comm *comm, int flag_slot, uint64_t sequence,
                                    struct ddp_err *err)
{
    for (int i = 1; i < comm->size; i++) {
        const int peer = comm->rank + i < comm->size ? comm->rank + i : comm->rank + i - comm->size;
        DDP_TRY(ddp_shm_wait(comm, peer, flag_slot, sequence, err));
    }
    return 0;
}

/* Returns DDP_EUNAVAIL if the shape is in place and has elements. Used for send-recv. */
int ddp_coll_no_in_place(const struct ddp_coll_shape *shape, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_EUNAVAIL, with the reason, if the ranks of the group do not share memory. name: the
 * algorithm, for the message. */
int ddp_coll_needs_shm(const struct ddp_comm *comm, const char *name,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
