/* Send-recv "p2p": each rank sends one message to the next rank and receives one message from the
 * rank before it.
 *
 * The algorithm works only out of place, because a rank sends and receives at the same time. A
 * single rank copies its buffer.
 *
 * Cost for S bytes on n ranks: 1 step. A rank sends one message of S bytes. Memory traffic:
 * messages move n S bytes (DDP_COST_MOVE in coll_p2p.h). */
#include "coll/coll_p2p.h"

static int p2p_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                   struct ddp_err *err)
{
    (void)scratch;
    const size_t bytes = ddp_coll_array_bytes(args);
    const struct ddp_p2p_move move = {
        .dst = ddp_rank_at(comm->rank, 1, comm->size),
        .out = args->send,
        .out_bytes = bytes,
        .src = ddp_rank_at(comm->rank, -1, comm->size),
        .in = args->recv,
        .in_bytes = bytes,
    };

    if (comm->size > 1)
        return ddp_p2p_exchange(comm, &move, err);
    ddp_coll_copy(comm, args->recv, args->send, bytes, false);
    return 0;
}

static void p2p_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    (void)shape;
    cost->steps = ranks > 1;
}

const struct ddp_coll_alg ddp_alg_send_recv_p2p = {
    .name = "p2p",
    .coll = DDP_SEND_RECV,
    .summary = "one message to the next rank, one from the rank before",
    .needs = DDP_NEEDS_MESSAGES,
    .run = p2p_run,
    .path = p2p_path,
};
