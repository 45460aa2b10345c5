/* All-gather "ring": in each step every rank passes on the chunk that it received in the step
 * before.
 *
 * Each chunk is one message that is received at its place in recv (coll_ring.h). No algorithm sends
 * fewer bytes.
 *
 * Cost for chunks of S bytes on n ranks: n-1 steps. A rank sends n-1 messages and (n-1) S bytes. In
 * memory, each byte moves n-1 times. Out of place, each rank also copies its own chunk. */
#include "coll/coll_ring.h"

static int ring_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "ring", err);
}

static int ring_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                    struct ddp_err *err)
{
    (void)scratch;
    const size_t elem = ddp_dtype_size(args->dtype);
    const struct ddp_chunks chunks = {.count = (size_t)comm->size * args->count, .n = comm->size};

    ddp_coll_copy(comm, ddp_at(args->recv, (size_t)comm->rank * args->count, elem), args->send,
                  args->count * elem);
    return ddp_ring_copy(comm, &chunks, elem, args->recv, comm->rank, err);
}

static void ring_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const size_t elem = ddp_dtype_size(shape->dtype);
    const struct ddp_chunks chunks = {.count = (size_t)ranks * shape->count, .n = ranks};
    const double bytes = (double)chunks.count * (double)elem;
    struct ddp_p2p_count c = {0, 0};

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = ranks - 1};
    ddp_ring_copy_count(&chunks, elem, 0,
                        &c); /* all chunks are equally long, so all ranks send the same */
    ddp_cost_rank(cost, &c);
    cost->memory_bytes =
        (shape->in_place ? 0 : DDP_COST_COPY * bytes) + (ranks - 1) * DDP_COST_MOVE * bytes;
}

const struct ddp_coll_alg ddp_alg_all_gather_ring = {
    .name = "ring",
    .coll = DDP_ALL_GATHER,
    .summary = "messages around a ring: fewest bytes, n-1 steps",
    .supports = ring_supports,
    .run = ring_run,
    .cost = ring_cost,
};
