/* All-gather "direct": zero-copy on registered memory.
 *
 * Each rank copies its own send buffer into its recv buffer, unless the call is in place. The rank
 * then copies the send buffer of every other rank, as soon as that rank has entered.
 *
 * Cost for recv buffers of S bytes on n ranks: 2 steps. Each rank reads and writes S bytes, in
 * place (n-1)/n S. The total is 2nS bytes, in place 2(n-1)S. No messages are sent. */
#include "coll/coll_direct.h"

static int direct_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    const size_t chunk = ddp_coll_array_bytes(args);
    unsigned char *recv = args->recv;

    ddp_direct_enter(comm, args);
    ddp_direct_move(comm, args, recv + chunk * (size_t)comm->rank, args->send, chunk);
    for (int i = 1; i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        DDP_TRY(ddp_direct_wait(comm, peer, err));
        ddp_direct_move(comm, args, recv + chunk * (size_t)peer, ddp_direct_send_of(comm, peer),
                        chunk);
    }
    ddp_direct_leave(comm);
    return ddp_direct_wait_all(comm, err);
}

static void direct_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double bytes =
        (double)ddp_coll_message_bytes(shape->coll, ranks, shape->count, shape->dtype);
    *cost = (struct ddp_coll_cost){
        .steps = 2,
        .memory_bytes = 2.0 * (ranks - shape->in_place) * bytes,
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_all_gather_direct = {
    .name = "direct",
    .coll = DDP_ALL_GATHER,
    .summary = "registered memory: each rank copies all ranks' send buffers, zero-copy",
    .supports = ddp_direct_supports,
    .run = direct_run,
    .cost = direct_cost,
};
