/* The barriers.
 *
 * "flags": every rank raises its flag in shared memory and waits for the flags of all other ranks.
 *
 * "dissemination": in round k = 0, 1, ... each rank sends an empty message to the rank 2^k ranks
 * after it, and receives an empty message from the rank 2^k ranks before it. When a rank has
 * finished round k, the 2^(k+1) - 1 ranks before it have entered the barrier. After ceil(log2 n)
 * rounds, all ranks have entered the barrier. Source: D. Hensgen, R. Finkel, U. Manber, Two
 * algorithms for barrier synchronization, IJPP 17 (1988). */
#include "coll/coll_shm.h"

static int flags_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                     struct ddp_err *err)
{
    (void)args;
    (void)scratch;
    return ddp_shm_barrier(comm, DDP_FLAGS_DIRECT, err);
}

const struct ddp_coll_alg ddp_alg_barrier_flags = {
    .name = "flags",
    .coll = DDP_BARRIER,
    .summary = "shared memory: each rank raises a flag and waits for all other flags, one step",
    .needs = DDP_NEEDS_SHARED,
    .run = flags_run,
    .cost_model = DDP_COST_FLAT,
};

static int dissemination_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                             struct ddp_err *err)
{
    (void)args;
    (void)scratch;
    const int n = comm->size;

    for (int distance = 1; distance < n; distance *= 2) {
        struct ddp_request req[2];
        DDP_TRY(ddp_comm_irecv(comm, ddp_rank_at(comm->rank, -distance, n), DDP_COLL_TAG, NULL, 0,
                               &req[0], err));
        DDP_TRY(ddp_comm_isend(comm, ddp_rank_at(comm->rank, distance, n), DDP_COLL_TAG, NULL, 0,
                               &req[1], err));
        DDP_TRY(ddp_comm_wait(comm, req, 2, err));
    }
    return 0;
}

const struct ddp_coll_alg ddp_alg_barrier_dissemination = {
    .name = "dissemination",
    .coll = DDP_BARRIER,
    .summary = "empty messages to partners 1, 2, 4, ... ranks away: ceil(log2 n) steps",
    .needs = DDP_NEEDS_MESSAGES,
    .run = dissemination_run,
    .path = ddp_path_log,
};
