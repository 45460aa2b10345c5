/* Barrier "dissemination": in round k each rank sends an empty message to the rank 2^k after it and
 * receives one from the rank 2^k before it.
 *
 * When a rank has finished round k, the 2^(k+1) - 1 ranks before it have entered the barrier. After
 * ceil(log2 n) rounds, all ranks have entered. Source: D. Hensgen, R. Finkel, U. Manber, Two
 * algorithms for barrier synchronization, IJPP 17 (1988).
 *
 * Cost on n ranks: ceil(log2 n) steps. A rank sends one empty message per step. */
#include "coll/coll_p2p.h"

static int dissemination_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                                  struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "dissemination", err);
}

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

static void dissemination_cost(int ranks, const struct ddp_coll_shape *shape,
                               struct ddp_coll_cost *cost)
{
    (void)shape;
    *cost = (struct ddp_coll_cost){
        .modelled = true, .steps = ddp_rounds(ranks), .messages = ddp_rounds(ranks)};
}

const struct ddp_coll_alg ddp_alg_barrier_dissemination = {
    .name = "dissemination",
    .coll = DDP_BARRIER,
    .summary = "empty messages to partners 1, 2, 4, ... ranks away: log2(n) steps",
    .supports = dissemination_supports,
    .run = dissemination_run,
    .cost = dissemination_cost,
};
