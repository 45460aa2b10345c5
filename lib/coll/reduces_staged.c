/* Reduce-scatter and reduce "staged". Data of private memory moves through ring buffers in shared
 * memory (coll_stage.h).
 *
 * Reduce-scatter: each rank publishes one chunk of its send buffer for every other rank. It then
 * combines its own chunk and the chunks that the others published for it, in rank order, into recv.
 * Reduce: each rank except the root publishes its send buffer, and the root combines all send
 * buffers in rank order.
 *
 * Cost for send buffers of S bytes on n ranks: 3 steps. Publishing reads and writes (n-1)S bytes.
 * Combining reads nS and writes S bytes. The total is (3n-1)S bytes. No messages are sent. */
#include "coll/coll_stage.h"

static void take(struct ddp_comm *comm, const struct ddp_staging *stage,
                 const unsigned char *const *data, size_t offset, size_t bytes)
{
    const struct ddp_coll_args *args = stage->args;
    const size_t own = stage->personal ? stage->chunk_bytes * (size_t)comm->rank : 0;
    const void *src[DDP_REDUCE_MAX];
    void *dst = (unsigned char *)args->recv + offset;

    for (int r = 0; r < comm->size; r++)
        src[r] = r == comm->rank ? stage->send + own + offset : data[r];
    const struct ddp_reduce reduce = {
        .dst = &dst,
        .dst_count = 1,
        .src = src,
        .src_count = comm->size,
        .count = bytes / ddp_dtype_size(args->dtype),
        .dtype = args->dtype,
        .op = args->op,
        .divisor = ddp_coll_divisor(comm, args->op),
    };
    comm->device->reduce(&reduce);
}

static int staged_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    const bool scatter = args->coll == DDP_REDUCE_SCATTER;
    const struct ddp_staging stage = {
        .args = args,
        .flow = scatter ? DDP_STAGING_ALL_TO_ALL : DDP_STAGING_ALL_TO_ROOT,
        .personal = scatter,
        .chunk_bytes = ddp_coll_array_bytes(args),
        .send = args->send,
        .take = take,
    };

    if (comm->size == 1) {
        ddp_coll_move(comm, args->recv, args->send, stage.chunk_bytes);
        return 0;
    }
    return ddp_staging_run(comm, &stage, err);
}

static void staged_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double bytes =
        (double)ddp_coll_message_bytes(shape->coll, ranks, shape->count, shape->dtype);
    *cost = (struct ddp_coll_cost){
        .steps = ranks == 1 ? 0 : 3,
        .memory_bytes = ranks == 1 ? (shape->in_place ? 0 : 2 * bytes) : (3.0 * ranks - 1) * bytes,
        .modelled = true,
    };
}

const struct ddp_coll_alg ddp_alg_reduce_scatter_staged = {
    .name = "staged",
    .coll = DDP_REDUCE_SCATTER,
    .summary = "private memory: chunks go through ring buffers in shared memory, pipelined",
    .supports = ddp_staging_supports,
    .run = staged_run,
    .cost = staged_cost,
};

const struct ddp_coll_alg ddp_alg_reduce_staged = {
    .name = "staged",
    .coll = DDP_REDUCE,
    .summary = "private memory: goes through ring buffers in shared memory to the root, which "
               "sums, pipelined",
    .supports = ddp_staging_supports,
    .run = staged_run,
    .cost = staged_cost,
};
