/* Reduce "direct": zero-copy on registered memory.
 *
 * The message is cut into one *chunk* per rank, at cache lines of the root's recv buffer. Each rank
 * combines its chunk of all ranks' send buffers, in rank order, into the root's recv buffer. The
 * root may be in place, because only one rank reads and writes the elements of a chunk, and it
 * reads each element before writing it.
 *
 * Cost for S bytes on n ranks: 2 steps. In total, nS bytes are read and S bytes are written. No
 * messages are sent. */
#include "coll/coll_direct.h"

static void reduce_chunk(struct ddp_comm *comm, const struct ddp_coll_args *args)
{
    const size_t elem = ddp_dtype_size(args->dtype), bytes = ddp_coll_array_bytes(args);
    unsigned char *recv = ddp_direct_recv_of(comm, args->root);
    const size_t begin = ddp_direct_chunk_begin(recv, bytes, elem, comm->rank, comm->size);
    const size_t end = ddp_direct_chunk_begin(recv, bytes, elem, comm->rank + 1, comm->size);
    const void *src[DDP_REDUCE_MAX];
    void *dst = recv + begin;

    for (int r = 0; r < comm->size; r++)
        src[r] = ddp_direct_send_of(comm, r) + begin;
    const struct ddp_reduce reduce = {
        .dst = &dst,
        .dst_count = 1,
        .src = src,
        .src_count = comm->size,
        .count = (end - begin) / elem,
        .dtype = args->dtype,
        .op = args->op,
        .divisor = ddp_coll_divisor(comm, args->op),
    };
    comm->device->reduce(&reduce);
}

static int direct_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    ddp_direct_enter(comm, args);
    DDP_TRY(ddp_direct_wait_all(comm, err));
    reduce_chunk(comm, args);
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

const struct ddp_coll_alg ddp_alg_reduce_direct = {
    .name = "direct",
    .coll = DDP_REDUCE,
    .summary = "registered memory: each rank sums a chunk into the root's recv buffer, zero-copy",
    .supports = ddp_direct_supports,
    .run = direct_run,
    .cost = direct_cost,
};
