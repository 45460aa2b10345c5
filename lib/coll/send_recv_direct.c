/* Send-recv "direct": zero-copy on registered memory.
 *
 * Each rank copies the send buffer of the rank before it to its own recv buffer. Then it waits
 * until the rank after it has copied this rank's send buffer. Only neighbours wait for each other.
 *
 * Cost for S bytes on n ranks: 2 steps. Each rank reads and writes S bytes, 2nS in total. No
 * messages are sent. */
#include "coll/coll_direct.h"

static int direct_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                           struct ddp_err *err)
{
    DDP_TRY(ddp_coll_no_in_place(shape, err));
    return ddp_direct_supports(comm, shape, err);
}

static int direct_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    const int after = ddp_rank_at(comm->rank, 1, comm->size);
    const int before = ddp_rank_at(comm->rank, -1, comm->size);

    ddp_direct_enter(comm, args);
    DDP_TRY(ddp_direct_wait(comm, before, err));
    ddp_direct_move(comm, args, args->recv, ddp_direct_send_of(comm, before),
                    ddp_coll_array_bytes(args));
    ddp_direct_leave(comm);
    return ddp_direct_wait(comm, after, err);
}

static void direct_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    *cost = (struct ddp_coll_cost){
        .steps = 2,
        .memory_bytes = 2.0 * ranks * (double)shape->count * (double)ddp_dtype_size(shape->dtype),
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_send_recv_direct = {
    .name = "direct",
    .coll = DDP_SEND_RECV,
    .summary = "registered memory: each rank reads its predecessor's buffer, zero-copy",
    .supports = direct_supports,
    .run = direct_run,
    .cost = direct_cost,
};
