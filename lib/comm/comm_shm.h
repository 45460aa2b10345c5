/* The shared-memory face of a communicator: flags every rank of the group can read, and a staging
 * area a rank.
 *
 * For algorithms on backends with DDP_CAP_MAP. A flag is a 64-bit epoch on a cache line of its own,
 * written by one rank, that only grows; waiting is always "until peer's flag >= epoch", so no flag
 * is ever reset and a wake-up cannot be lost. Waits poll the abort word and the deadline; with more
 * ranks than cores they sched_yield almost at once. */
#ifndef DDP_COMM_COMM_SHM_H
#define DDP_COMM_COMM_SHM_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/mem.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_SHM_RANKS_MAX 256
#define DDP_SHM_LANES     12 /* flag words a rank owns per group, each on its own cache line */
/* Payload beside the flag of a lane, so that a small message and its flag travel in one cache line.
 */
#define DDP_SHM_INLINE 48
/* Small-message slots: two a rank (double buffer), each this many bytes. */
#define DDP_SHM_SLOT_BYTES (16u << 10)
/* Staging ring a rank: slots x bytes. research: 32 x 64 KiB beats 4 x 128 KiB, for a slot must have
 * left the peer's L2. */
#define DDP_SHM_RING_SLOTS 32
#define DDP_SHM_RING_BYTES (64u << 10)

struct ddp_shm_lane {
    alignas(64) _Atomic(uint64_t) epoch;
    unsigned char inline_data[DDP_SHM_INLINE];
};

/* One group's area, seen from one rank. lane(r, l): lane l of rank r. slot(r, i): small slot i of
 * rank r. ring(r, s): staging slot s. epoch: this rank's count of barrier-like steps on lane 0;
 * algorithms share it and leave it consistent on all ranks. lane_epoch[l]: this rank's last value
 * on lane l (all ranks of a group execute the same algorithms in the same order, so these agree
 * where the algorithm says so). */
struct ddp_comm_shm {
    struct ddp_shm_lane *lanes;    /* [size][DDP_SHM_LANES] */
    unsigned char *slots;          /* [size][2][DDP_SHM_SLOT_BYTES] */
    unsigned char *rings;          /* [size][DDP_SHM_RING_SLOTS][DDP_SHM_RING_BYTES] */
    _Atomic(uint32_t) *abort_word; /* 0, or a code; the world's */
    uint64_t epoch[DDP_SHM_LANES];
    int spin;     /* polls before yielding; large when each rank has a core */
    bool crowded; /* more ranks than cores; the same on all ranks, for what they choose alike */
};

static inline struct ddp_shm_lane *ddp_shm_lane_of(const struct ddp_comm_shm *shm, int rank,
                                                   int lane)
{
    return &shm->lanes[(size_t)rank * DDP_SHM_LANES + (size_t)lane];
}
static inline unsigned char *ddp_shm_slot_of(const struct ddp_comm_shm *shm, int rank, int slot)
{
    return shm->slots + ((size_t)rank * 2 + (size_t)slot) * DDP_SHM_SLOT_BYTES;
}
static inline unsigned char *ddp_shm_ring_of(const struct ddp_comm_shm *shm, int rank, int slot)
{
    return shm->rings + ((size_t)rank * DDP_SHM_RING_SLOTS + (size_t)slot) * DDP_SHM_RING_BYTES;
}

/* Publishes: all earlier stores of this rank are visible to whoever sees the epoch. */
static inline void ddp_shm_post(struct ddp_comm *comm, int lane, uint64_t epoch)
{
    atomic_store_explicit(&ddp_shm_lane_of(comm->shm, comm->rank, lane)->epoch, epoch,
                          memory_order_release);
}
/* The rest of ddp_shm_wait once the first polls failed. */
int ddp_shm_wait_slow(struct ddp_comm *comm, int peer, int lane, uint64_t epoch,
                      struct ddp_err *err);
/* Waits until lane `lane` of `peer` has reached `epoch` (acquire). DDP_ELOST on abort or deadline.
 */
static inline int ddp_shm_wait(struct ddp_comm *comm, int peer, int lane, uint64_t epoch,
                               struct ddp_err *err)
{
    _Atomic(uint64_t) *flag = &ddp_shm_lane_of(comm->shm, peer, lane)->epoch;
    DDP_TRY(DDP_FAULT(WAIT, comm->place.rank, err));
    const int polls = DDP_MIN(comm->shm->spin, 64);
    for (int i = 0; i < polls; i++) {
        if (atomic_load_explicit(flag, memory_order_acquire) >= epoch)
            return 0;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return ddp_shm_wait_slow(comm, peer, lane, epoch, err);
}
/* Post on `lane`, then wait for all peers: a barrier by all-to-all flags; epoch taken from and kept
 * in shm->epoch[lane]. */
int ddp_shm_barrier(struct ddp_comm *comm, int lane, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
