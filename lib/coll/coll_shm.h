/* What the algorithms on shared memory have in common: which lanes are theirs, how a message is
 * cut into pieces, and the wait for everybody. For lib/coll only. */
#ifndef DDP_COLL_COLL_SHM_H
#define DDP_COLL_COLL_SHM_H

#include "base/mem.h"
#include "coll/coll.h"
#include "coll/pattern.h"
#include "comm/comm_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lanes of a group (comm_shm.h) and who posts on them. 0 and 1 are lib/comm's (barrier, exchange),
 * 7 is the bench layer's (ping-pong). Algorithms never share one: the epochs of each stay equal on
 * all ranks by the order of that algorithm's calls alone. */
enum ddp_coll_lane {
    DDP_LANE_FLAT = 2, /* and 3: even and odd calls, each with its inline data */
    DDP_LANE_DIRECT = 4,
    DDP_LANE_STAGED_IN = 5,
    DDP_LANE_STAGED_SUM = 6,
    DDP_LANE_STAGED_DONE = DDP_LANE_STAGED_SUM, /* of coll_stage.h; the same flags */
    DDP_LANE_HIER_IN = 8,                       /* and up to 11: allreduce_hier.c */
    DDP_LANE_HIER_SUM,
    DDP_LANE_HIER_RESULT,
    DDP_LANE_HIER_OUT
};

/* Bytes of one array of the shape. */
static inline size_t ddp_coll_array_bytes(const struct ddp_coll_args *args)
{
    return args->count * ddp_dtype_size(args->dtype);
}

/* What reduce() must divide by after the last combine. */
static inline int ddp_coll_divisor(const struct ddp_comm *comm, enum ddp_op op)
{
    return op == DDP_AVG ? comm->size : 1;
}

/* Arrays from here up are copied past the cache: what does not fit it need not be read to be
 * overwritten. 2 ranks on 2 cores, 480 MiB L3, ping-pong 280 ns, plain against non-temporal: equal
 * from 2 to 16 MiB; 64 MiB: broadcast 6.5 ms against 3.5, all-gather 6.7 against 4.8,
 * send-recv 12.0 against 9.3. */
#define DDP_PAST_CACHE_BYTES ((size_t)16 << 20)

/* Copies unless it is the same array, or nothing. */
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

/* Waits until `lane` of every other rank has reached `epoch`, the next rank first, so that ranks
 * look at different flags at first. */
static inline int ddp_coll_wait_all(struct ddp_comm *comm, int lane, uint64_t epoch,
                                    struct ddp_err *err)
{
    for (int i = 1; i < comm->size; i++) {
        const int peer = comm->rank + i < comm->size ? comm->rank + i : comm->rank + i - comm->size;
        DDP_TRY(ddp_shm_wait(comm, peer, lane, epoch, err));
    }
    return 0;
}

/* DDP_EUNAVAIL for send-recv in place: it has no such form. */
int ddp_coll_no_in_place(const struct ddp_coll_shape *shape, struct ddp_err *err) DDP_MUST_CHECK;
/* DDP_EUNAVAIL unless the backend maps memory and the group is not larger than one reduce call. */
int ddp_coll_needs_shm(const struct ddp_comm *comm, const char *name,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
