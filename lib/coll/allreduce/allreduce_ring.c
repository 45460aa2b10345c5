/* All-reduce "ring": a reduce-scatter around a ring, followed by an all-gather around the ring.
 *
 * The message is cut into n *chunks*. In n-1 steps every chunk passes through all ranks, and each
 * rank combines it with its own input (coll_ring.h). Rank r then holds the complete chunk r. In n-1
 * more steps the complete chunks go around the ring once. No algorithm sends fewer bytes per rank
 * than this one. Source: P. Patarasuk and X. Yuan, Bandwidth optimal all-reduce algorithms for
 * clusters of workstations, JPDC 69 (2009).
 *
 * Chunk r is combined in the rank order r+1, r+2, ..., r, and only rank r computes its result, so
 * all ranks get the same bits. An average is divided once, in the last combine. 16-bit floats are
 * rounded once per combine, n-1 times in total. With more than 2 ranks, an average of 16-bit floats
 * divides each input first (ddp_pre_scales), which rounds once more. Averages of integers are
 * exact, because partial sums are sent in a wider type (coll_acc.h).
 *
 * Cost for S bytes on n ranks: 2(n-1) steps. S' is the size in the accumulator type, which is S
 * except for averages of integers. A rank sends (n-1)/n S' bytes in fragments of
 * DDP_FRAGMENT_BYTES, and then (n-1)/n S bytes in n-1 messages. Memory traffic (DDP_COST_MOVE in
 * coll_p2p.h): each byte moves 2(n-1) times and is combined n-1 times. */
#include "coll/coll_ring.h"
#include "coll/coll_shm.h"

static int ring_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "ring", err);
}

/* Returns the size of the landing buffers (coll_p2p.h), the first part of scratch. For averages of
 * integers, the message in the accumulator type follows. */
static size_t ring_landing_bytes(int ranks, size_t count, size_t elem)
{
    const struct ddp_chunks chunks = {.count = count, .n = ranks};
    return ddp_p2p_landing_bytes(ddp_chunk_count(&chunks, 0) * elem);
}

static size_t ring_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const size_t elem = ddp_dtype_size(ddp_acc_dtype(shape->dtype, shape->op));
    if (comm->size == 1)
        return 0;
    return ring_landing_bytes(comm->size, shape->count, elem) +
           (ddp_has_wider_acc(shape->dtype, shape->op) ? shape->count * elem : 0);
}

static int ring_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                    struct ddp_err *err)
{
    const bool wider_acc = ddp_has_wider_acc(args->dtype, args->op);
    const bool pre_scale = ddp_pre_scales(args->dtype, args->op, comm->size);
    const enum ddp_dtype wire_dtype = ddp_acc_dtype(args->dtype, args->op);
    const size_t elem = ddp_dtype_size(args->dtype), acc_elem = ddp_dtype_size(wire_dtype);
    const struct ddp_chunks chunks = {.count = args->count, .n = comm->size};
    const size_t own = ddp_chunk_begin(&chunks, comm->rank);

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, args->count * elem);
        return 0;
    }
    void *widened = ddp_at(scratch, ring_landing_bytes(comm->size, args->count, acc_elem), 1);
    if (wider_acc)
        ddp_to_acc(widened, args->send, args->count, args->dtype);
    void *whole = wider_acc ? widened : args->recv;
    const struct ddp_ring_sum ring = {
        .chunks = chunks,
        .dtype = wire_dtype,
        .op = args->op,
        .divisor = pre_scale ? 1 : ddp_coll_divisor(comm, args->op),
        .pre_scale = pre_scale,
        .input = wider_acc ? widened : args->send,
        .result = ddp_at(whole, own, acc_elem),
        .whole = whole,
        .landing = scratch,
    };
    DDP_TRY(ddp_ring_sum(comm, &ring, err));
    if (wider_acc)
        ddp_from_acc(ddp_at(args->recv, own, elem), ring.result,
                     ddp_chunk_count(&chunks, comm->rank), args->dtype);
    return ddp_ring_copy(comm, &chunks, elem, args->recv, comm->rank, err);
}

static void ring_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_chunks chunks = {.count = shape->count, .n = ranks};
    const size_t elem = ddp_dtype_size(shape->dtype);
    const size_t acc_elem = ddp_dtype_size(ddp_acc_dtype(shape->dtype, shape->op));
    const double bytes = (double)shape->count * (double)elem;
    const double acc_bytes = (double)shape->count * (double)acc_elem;

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = 2.0 * (ranks - 1)};
    for (int r = 0; r < ranks; r++) {
        struct ddp_p2p_count c = {0, 0};
        ddp_ring_sum_count(&chunks, acc_elem, r, &c);
        ddp_ring_copy_count(&chunks, elem, r, &c);
        ddp_cost_rank(cost, &c);
    }
    cost->memory_bytes =
        (ranks - 1) * ((DDP_COST_MOVE + DDP_COST_COMBINE) * acc_bytes + DDP_COST_MOVE * bytes);
    if (ranks == 1)
        cost->memory_bytes = shape->in_place ? 0 : DDP_COST_COPY * bytes;
    else if (ddp_has_wider_acc(shape->dtype,
                               shape->op)) /* all ranks widen their input, each narrows its chunk */
        cost->memory_bytes += (ranks + 1) * (bytes + acc_bytes);
    else if (ddp_pre_scales(shape->dtype, shape->op, ranks)) /* all ranks divide their input */
        cost->memory_bytes += ranks * DDP_COST_COPY * bytes;
}

const struct ddp_coll_alg ddp_alg_allreduce_ring = {
    .name = "ring",
    .coll = DDP_ALLREDUCE,
    .summary = "messages around a ring: fewest bytes, 2(n-1) steps; for large messages",
    .supports = ring_supports,
    .scratch_bytes = ring_scratch_bytes,
    .run = ring_run,
    .cost = ring_cost,
};
