/* Broadcast "direct": zero-copy on registered memory.
 *
 * Every rank copies the root's send buffer to its own recv buffer. If the call is in place, the
 * root has nothing to copy for itself. If the message then has 16 KiB or more, the root writes the
 * last n-th of it to all recv buffers. The other ranks copy the rest.
 *
 * Cost for S bytes on n ranks: 2 steps. S bytes are read and written for every rank, except for the
 * root in place. The total is 2nS bytes, in place 2(n-1)S. No messages are sent. */
#include "coll/coll_direct.h"

static int run_root(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    const unsigned char *send = args->send;
    const size_t bytes = ddp_coll_array_bytes(args);
    const size_t begin = ddp_direct_root_begin(comm, bytes);

    ddp_direct_move(comm, args, args->recv, send, bytes);
    for (int i = 1; send == args->recv && begin < bytes && i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        DDP_TRY(ddp_direct_wait(comm, peer, err));
        ddp_direct_move(comm, args, ddp_direct_recv_of(comm, peer) + begin, send + begin,
                        bytes - begin);
    }
    ddp_direct_leave(comm);
    return ddp_direct_wait_all(comm, err);
}

static int run_peer(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    const size_t bytes = ddp_coll_array_bytes(args);
    size_t end = bytes;

    DDP_TRY(ddp_direct_wait(comm, args->root, err));
    const struct ddp_direct_place root = ddp_direct_place_of(comm, args->root);
    if (root.send == root.recv)
        end = ddp_direct_root_begin(comm, bytes);
    ddp_direct_move(comm, args, args->recv, ddp_direct_send_of(comm, args->root), end);
    ddp_direct_leave(comm);
    return end < bytes ? ddp_direct_wait(comm, args->root, err) : 0;
}

static int direct_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    ddp_direct_enter(comm, args);
    return comm->rank == args->root ? run_root(comm, args, err) : run_peer(comm, args, err);
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

const struct ddp_coll_alg ddp_alg_broadcast_direct = {
    .name = "direct",
    .coll = DDP_BROADCAST,
    .summary = "registered memory: each rank copies the root's send buffer, zero-copy",
    .supports = ddp_direct_supports,
    .run = direct_run,
    .cost = direct_cost,
};
