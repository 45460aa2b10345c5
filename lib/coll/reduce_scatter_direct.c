/* Reduce-scatter "direct": zero-copy on registered memory.
 *
 * Each rank combines its chunk of all ranks' send buffers, in rank order, into its own recv buffer.
 * In place, a rank overwrites only its own chunk of its send buffer, which no other rank reads.
 *
 * Cost for send buffers of S bytes on n ranks: 2 steps. Each rank reads S and writes S/n bytes,
 * (n+1)S in total. No messages are sent. */
#include "coll/coll_direct.h"

static int direct_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    const size_t own = ddp_coll_array_bytes(args) * (size_t)comm->rank;
    const void *src[DDP_REDUCE_MAX];

    ddp_direct_enter(comm, args);
    DDP_TRY(ddp_direct_wait_all(comm, err));
    for (int r = 0; r < comm->size; r++)
        src[r] = ddp_direct_send_of(comm, r) + own;
    const struct ddp_reduce reduce = {
        .dst = &args->recv,
        .dst_count = 1,
        .src = src,
        .src_count = comm->size,
        .count = args->count,
        .dtype = args->dtype,
        .op = args->op,
        .divisor = ddp_coll_divisor(comm, args->op),
    };
    comm->device->reduce(&reduce);
    ddp_direct_leave(comm);
    return ddp_direct_wait_all(comm, err);
}

static void direct_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double bytes =
        (double)ddp_coll_message_bytes(shape->coll, ranks, shape->count, shape->dtype);
    *cost = (struct ddp_coll_cost){
        .steps = 2,
        .memory_bytes = (ranks + 1.0) * bytes,
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_reduce_scatter_direct = {
    .name = "direct",
    .coll = DDP_REDUCE_SCATTER,
    .summary = "registered memory: each rank sums its chunk of all ranks' send buffers, zero-copy",
    .supports = ddp_direct_supports,
    .run = direct_run,
    .cost = direct_cost,
};
