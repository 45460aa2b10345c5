/* The shm context of a communicator: flags and small buffers that every rank of the group can read.
 *
 * Algorithms use the context if comm->shm is set. A flag is a 64-bit sequence number in a cache
 * line of its own (a flag slot). Only the rank that owns the flag slot writes the flag, and the
 * number only grows while the group exists. Other ranks wait until the flag is at least a given
 * number. Therefore no flag needs to be reset between calls, and no wake-up is lost. A wait that
 * does not end during the first polls also checks the abort word and the deadline. */
#ifndef DDP_COMM_SHM_COMM_SHM_H
#define DDP_COMM_SHM_COMM_SHM_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "launch/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The shared memory of one group, as one rank sees it. `slots` holds two buffers per rank for small
 * messages. `rings` holds one staging ring per rank (segment.h). */
struct ddp_comm_shm {
    struct ddp_shm_flag_slot *flag_slots; /* [size][DDP_SHM_FLAG_SLOTS], in one of the areas */
    unsigned char *areas;                 /* [DDP_SHM_FLAG_AREAS][area_bytes] */
    size_t area_bytes;
    unsigned moves;                /* number of calls of ddp_shm_move_flags */
    unsigned char *slots;          /* [size][2][DDP_SHM_SLOT_BYTES] */
    unsigned char *rings;          /* [size][DDP_SHM_RING_SLOTS][DDP_SHM_RING_BYTES] */
    _Atomic(uint32_t) *abort_word; /* 0 until the world is aborted (segment.h) */
    /* This rank's last sequence number in each of its flag slots. ddp_comm_barrier uses flag slot
     * 0. All ranks of a group run the same algorithms in the same order, so the numbers of all
     * ranks agree between calls. */
    uint64_t sequence[DDP_SHM_FLAG_SLOTS];
    int spin; /* number of polls before the first yield (waiter.h) */
    /* True if there are more ranks than usable cores. The value is the same on all ranks, so all
     * ranks choose the same algorithm. */
    bool oversubscribed;
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

/* Publishes `sequence` in this rank's flag slot number `flag_slot`. Another rank that reads this
 * number also sees all earlier stores of this rank. */
static inline void ddp_shm_post(struct ddp_comm *comm, int flag_slot, uint64_t sequence)
{
    atomic_store_explicit(&ddp_shm_flag_slot_of(comm->shm, comm->rank, flag_slot)->sequence,
                          sequence, memory_order_release);
}
/* Continues ddp_shm_wait after the first polls. */
int ddp_shm_wait_slow(struct ddp_comm *comm, int peer, int flag_slot, uint64_t sequence,
                      struct ddp_err *err);
/* Waits until flag slot number `flag_slot` of rank `peer` holds at least `sequence` (acquire).
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
/* Waits until flag slot number `flag_slot` of each peer holds at least `sequence`. A rank waits
 * first for the rank after it, so that not all ranks poll the same flag. */
static inline int ddp_shm_wait_all(struct ddp_comm *comm, int flag_slot, uint64_t sequence,
                                   struct ddp_err *err)
{
    for (int i = 1; i < comm->size; i++) {
        const int peer = comm->rank + i < comm->size ? comm->rank + i : comm->rank + i - comm->size;
        DDP_TRY(ddp_shm_wait(comm, peer, flag_slot, sequence, err));
    }
    return 0;
}
/* Moves the flags of all ranks to the next of the group's areas (segment.h). The time that a cache
 * line takes from one core to a distant core depends on the line's address. A measurement therefore
 * uses several areas in turn (results/notes/gate.md). Collective. */
int ddp_shm_move_flags(struct ddp_comm *comm, struct ddp_err *err) DDP_MUST_CHECK;
/* A barrier by all-to-all flags. Increments shm->sequence[flag_slot], posts the new number in flag
 * slot number `flag_slot`, and waits until the flags of all peers have reached it. */
int ddp_shm_barrier(struct ddp_comm *comm, int flag_slot, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
