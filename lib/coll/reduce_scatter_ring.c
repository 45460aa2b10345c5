/* Reduce-scatter "ring": every chunk passes through all ranks, and each rank combines it with its
 * own input.
 *
 * After n-1 steps (coll_ring.h) rank r has the complete chunk r in recv. Partial sums are stored
 * alternately in two buffers in scratch, so the other chunks of send do not change, not even in
 * place.
 *
 * Values are combined, rounded and averaged as in allreduce_ring.c.
 *
 * Cost for chunks of S bytes on n ranks: n-1 steps. S' is the size of a chunk in the accumulator
 * type (coll_acc.h), which is S except for averages of integers. A rank sends (n-1) S' bytes, each
 * chunk in fragments of DDP_FRAGMENT_BYTES. Memory traffic (DDP_COST_MOVE in coll_p2p.h): each byte
 * moves n-1 times and is combined n-1 times. */
#include "coll/coll_ring.h"
#include "coll/coll_shm.h"

static int ring_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "ring", err);
}

/* The layout of scratch. The landing buffers (coll_p2p.h) come first, then two chunks of partial
 * sums (none with two ranks). For averages of integers, all of send in the accumulator type takes
 * the place of the two chunks. */
struct ring_layout {
    size_t chunk, landing, bytes;
};

static struct ring_layout ring_layout_of(int ranks, size_t count, enum ddp_dtype dtype,
                                         enum ddp_op op)
{
    const size_t chunk = count * ddp_dtype_size(ddp_acc_dtype(dtype, op));
    const size_t chunks = ddp_has_wider_acc(dtype, op) ? (size_t)ranks : ranks > 2 ? 2 : 0;
    struct ring_layout layout = {.chunk = ddp_round_to_line(chunk),
                                 .landing = ddp_p2p_landing_bytes(chunk)};
    layout.bytes = ranks == 1 ? 0 : layout.landing + chunks * layout.chunk;
    return layout;
}

static size_t ring_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    return ring_layout_of(comm->size, shape->count, shape->dtype, shape->op).bytes;
}

static int ring_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                    struct ddp_err *err)
{
    const bool wider_acc = ddp_has_wider_acc(args->dtype, args->op);
    const bool pre_scale = ddp_pre_scales(args->dtype, args->op, comm->size);
    const size_t n = (size_t)comm->size, elem = ddp_dtype_size(args->dtype);
    const struct ring_layout layout =
        ring_layout_of(comm->size, args->count, args->dtype, args->op);

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, args->count * elem);
        return 0;
    }
    struct ddp_ring_sum ring = {
        .chunks = {.count = n * args->count, .n = comm->size},
        .dtype = ddp_acc_dtype(args->dtype, args->op),
        .op = args->op,
        .divisor = pre_scale ? 1 : ddp_coll_divisor(comm, args->op),
        .pre_scale = pre_scale,
        .input = args->send,
        .result = args->recv,
        .spare = {ddp_at(scratch, layout.landing, 1),
                  ddp_at(scratch, layout.landing + layout.chunk, 1)},
        .landing = scratch,
    };
    if (!wider_acc)
        return ddp_ring_sum(comm, &ring, err);
    ring.whole = ddp_at(scratch, layout.landing, 1);
    ring.input = ring.whole;
    ring.result = ddp_at(ring.whole, (size_t)comm->rank * args->count, ddp_dtype_size(ring.dtype));
    ddp_to_acc(ring.whole, args->send, n * args->count, args->dtype);
    DDP_TRY(ddp_ring_sum(comm, &ring, err));
    ddp_from_acc(args->recv, ring.result, args->count, args->dtype);
    return 0;
}

static void ring_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double chunk = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const size_t acc_elem = ddp_dtype_size(ddp_acc_dtype(shape->dtype, shape->op));
    const double acc_chunk = (double)shape->count * (double)acc_elem;
    const struct ddp_chunks chunks = {.count = (size_t)ranks * shape->count, .n = ranks};
    struct ddp_p2p_count c = {0, 0};

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = ranks - 1};
    ddp_ring_sum_count(&chunks, acc_elem, 0,
                       &c); /* all chunks are equally long, so all ranks send the same */
    ddp_cost_rank(cost, &c);
    cost->memory_bytes =
        (double)ranks * (ranks - 1) * (DDP_COST_MOVE + DDP_COST_COMBINE) * acc_chunk;
    if (ranks == 1)
        cost->memory_bytes = shape->in_place ? 0 : DDP_COST_COPY * chunk;
    else if (ddp_has_wider_acc(shape->dtype,
                               shape->op)) /* all ranks widen their input, each narrows its chunk */
        cost->memory_bytes += (double)ranks * (ranks + 1) * (chunk + acc_chunk);
    else if (ddp_pre_scales(shape->dtype, shape->op, ranks)) /* all ranks divide their input */
        cost->memory_bytes += (double)ranks * ranks * DDP_COST_COPY * chunk;
}

const struct ddp_coll_alg ddp_alg_reduce_scatter_ring = {
    .name = "ring",
    .coll = DDP_REDUCE_SCATTER,
    .summary = "messages around a ring: fewest bytes, n-1 steps",
    .supports = ring_supports,
    .scratch_bytes = ring_scratch_bytes,
    .run = ring_run,
    .cost = ring_cost,
};
