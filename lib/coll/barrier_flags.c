/* Barrier "flags": every rank raises its flag in shared memory and waits for the flags of all other
 * ranks.
 *
 * Cost on n ranks: 1 step. Each rank reads n-1 flags. No messages are sent. */
#include "coll/coll_shm.h"

static int flags_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                          struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_shm(comm, "flags", err);
}

static int flags_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                     struct ddp_err *err)
{
    (void)args;
    (void)scratch;
    return ddp_shm_barrier(comm, DDP_FLAGS_DIRECT, err);
}

static void flags_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    (void)ranks;
    (void)shape;
    *cost = (struct ddp_coll_cost){.steps = 1, .modelled = true};
}

const struct ddp_coll_alg ddp_alg_barrier_flags = {
    .name = "flags",
    .coll = DDP_BARRIER,
    .summary = "shared memory: each rank raises a flag and waits for all other flags, one step",
    .supports = flags_supports,
    .run = flags_run,
    .cost = flags_cost,
};
