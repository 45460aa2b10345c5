/* Waits and barriers on flags in shared memory. */
#include "comm/shm/comm_shm.h"
#include "comm/waiter.h"

int ddp_shm_wait_slow(struct ddp_comm *comm, int peer, int flag_slot, uint64_t sequence,
                      struct ddp_err *err)
{
    _Atomic(uint64_t) *flag = &ddp_shm_flag_slot_of(comm->shm, peer, flag_slot)->sequence;
    struct ddp_waiter waiter;
    ddp_waiter_init(&waiter, comm);
    for (;;) {
        switch (ddp_waiter_step(&waiter)) {
        case DDP_WAIT_ON:
            if (atomic_load_explicit(flag, memory_order_acquire) >= sequence)
                return 0;
            break;
        case DDP_WAIT_ABORTED:
            return ddp_wait_aborted(comm, err);
        case DDP_WAIT_EXPIRED:
            return ddp_wait_expired(comm, comm->world_rank[peer], err);
        }
    }
}

int ddp_shm_barrier(struct ddp_comm *comm, int flag_slot, struct ddp_err *err)
{
    uint64_t sequence = ++comm->shm->sequence[flag_slot];
    ddp_shm_post(comm, flag_slot, sequence);
    return ddp_shm_wait_all(comm, flag_slot, sequence, err);
}
