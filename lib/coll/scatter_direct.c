/* Scatter "direct": zero-copy on registered memory.
 *
 * Every rank copies its chunk of the root's send buffer to its own recv buffer. If the call is in
 * place, the root has nothing to copy for itself. If the chunks then have 16 KiB or more, the root
 * copies the last n-th of every other rank's chunk.
 *
 * Cost for a send buffer of S bytes on n ranks: 2 steps. S bytes are read and written, in place
 * (n-1)/n S. The total is 2S bytes, in place 2(n-1)/n S. No messages are sent. */
#include "coll/coll_direct.h"

static int run_root(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    const size_t chunk = ddp_coll_array_bytes(args);
    const size_t begin = ddp_direct_root_begin(comm, chunk);
    const unsigned char *send = args->send;
    const unsigned char *own = send + chunk * (size_t)comm->rank;

    ddp_direct_move(comm, args, args->recv, own, chunk);
    for (int i = 1; args->recv == own && begin < chunk && i < comm->size; i++) {
        const int peer = ddp_rank_at(comm->rank, i, comm->size);
        DDP_TRY(ddp_direct_wait(comm, peer, err));
        ddp_direct_move(comm, args, ddp_direct_recv_of(comm, peer) + begin,
                        send + chunk * (size_t)peer + begin, chunk - begin);
    }
    ddp_direct_leave(comm);
    return ddp_direct_wait_all(comm, err);
}

static int run_peer(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    const size_t chunk = ddp_coll_array_bytes(args);
    size_t end = chunk;

    DDP_TRY(ddp_direct_wait(comm, args->root, err));
    const struct ddp_direct_place root = ddp_direct_place_of(comm, args->root);
    if (root.recv == root.send + chunk * (size_t)args->root)
        end = ddp_direct_root_begin(comm, chunk);
    ddp_direct_move(comm, args, args->recv,
                    ddp_direct_send_of(comm, args->root) + chunk * (size_t)comm->rank, end);
    ddp_direct_leave(comm);
    return end < chunk ? ddp_direct_wait(comm, args->root, err) : 0;
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
    const double chunk = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    *cost = (struct ddp_coll_cost){
        .steps = 2,
        .memory_bytes = 2.0 * (ranks - shape->in_place) * chunk,
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_scatter_direct = {
    .name = "direct",
    .coll = DDP_SCATTER,
    .summary = "registered memory: each rank copies its chunk of the root's send buffer, zero-copy",
    .supports = ddp_direct_supports,
    .run = direct_run,
    .cost = direct_cost,
};
