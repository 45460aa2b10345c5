/* The shm context of a communicator: flags that every rank of the group can read, and a staging
 * area per rank.
 *
 * Algorithms use it on backends with DDP_CAP_MAP. A flag is a 64-bit sequence number on a cache
 * line of its own that one rank writes. It only grows, and ranks always wait until a peer's flag is
 * at least a given number, so no flag is reset and no wake-up is lost. Waits poll the abort word
 * and the deadline; with more ranks than cores they call sched_yield almost at once. */
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

#define DDP_SHM_RANKS_MAX  256
#define DDP_SHM_FLAG_SLOTS 12 /* flag slots of a rank in a group */
/* Payload in a flag slot: a small message and its flag share one cache line. */
#define DDP_SHM_INLINE 48
/* Bytes of a small-message slot; each rank has two (double buffer). */
#define DDP_SHM_SLOT_BYTES (16u << 10)
/* Slots and bytes per slot of a rank's staging ring. Many small slots are faster than few large
 * ones, because a slot must have left the peer's L2 before it is written again. */
#define DDP_SHM_RING_SLOTS 32
#define DDP_SHM_RING_BYTES (64u << 10)

/* A flag slot. */
struct ddp_shm_flag_slot {
    /* The sequence number. */
    alignas(64) _Atomic(uint64_t) sequence;
    unsigned char inline_data[DDP_SHM_INLINE];
};

/* One group's area, seen from one rank. */
struct ddp_comm_shm {
    struct ddp_shm_flag_slot *flag_slots; /* [size][DDP_SHM_FLAG_SLOTS] */
    unsigned char *slots;                 /* [size][2][DDP_SHM_SLOT_BYTES] */
    unsigned char *rings;                 /* [size][DDP_SHM_RING_SLOTS][DDP_SHM_RING_BYTES] */
    _Atomic(uint32_t) *abort_word;        /* 0, or the code of the world's abort */
    /* This rank's last sequence number in each of its flag slots. Slot 0 belongs to barriers. All
     * ranks of a group run the same algorithms in the same order, so their numbers agree between
     * calls. */
    uint64_t sequence[DDP_SHM_FLAG_SLOTS];
    int spin;            /* polls before yielding; large if each rank has a core */
    bool oversubscribed; /* more ranks than cores; the same on all ranks, so that all choose the
                     same algorithm */
};

static inline struct ddp_shm_flag_slot *ddp_shm_flag_slot_of(const struct ddp_comm_shm *shm,
                                                             int rank, int flag_slot)
{
    return &shm->flag_slots[(size_t)rank * DDP_SHM_FLAG_SLOTS + (size_t)flag_slot];
}
static inline unsigned char *ddp_shm_slot_of(const struct ddp_comm_shm *shm, int rank, int slot)
{
    return shm->slots + ((size_t)rank * 2 + (size_t)slot) * DDP_SHM_SLOT_BYTES;
}
static inline unsigned char *ddp_shm_ring_of(const struct ddp_comm_shm *shm, int rank, int slot)
{
    return shm->rings + ((size_t)rank * DDP_SHM_RING_SLOTS + (size_t)slot) * DDP_SHM_RING_BYTES;
}

/* Publishes sequence number `epoch` in this rank's flag slot `lane`. A rank that reads the number
 * also sees all earlier stores of this rank. */
static inline void ddp_shm_post(struct ddp_comm *comm, int flag_slot, uint64_t sequence)
{
    atomic_store_explicit(&ddp_shm_flag_slot_of(comm->shm, comm->rank, flag_slot)->sequence,
                          sequence, memory_order_release);
}
/* The rest of ddp_shm_wait after its first polls. */
int ddp_shm_wait_slow(struct ddp_comm *comm, int peer, int flag_slot, uint64_t sequence,
                      struct ddp_err *err);
/* Waits until flag slot `lane` of rank `peer` has reached sequence number `epoch` (acquire).
 * Returns DDP_ELOST on an abort or at the deadline. */
static inline int ddp_shm_wait(struct ddp_comm *comm, int peer, int flag_slot, uint64_t sequence,
                               struct ddp_err *err)
{
    _Atomic(uint64_t) *flag = &ddp_shm_flag_slot_of(comm->shm, peer, flag_slot)->sequence;
    DDP_TRY(DDP_FAULT(WAIT, comm->rank_info.rank, err));
    const int polls = DDP_MIN(comm->shm->spin, 64);
    for (int i = 0; i < polls; i++) {
        if (atomic_load_explicit(flag, memory_order_acquire) >= sequence)
            return 0;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return ddp_shm_wait_slow(comm, peer, flag_slot, sequence, err);
}
/* A barrier by all-to-all flags: posts in flag slot `lane` and waits for all peers. The sequence
 * number is counted in shm->epoch[lane]. */
int ddp_shm_barrier(struct ddp_comm *comm, int flag_slot, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
