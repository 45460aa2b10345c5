/* Algorithm "ring" of all-reduce, reduce-scatter and all-gather, and the two rings from which the
 * algorithm is built (coll_ring.h).
 *
 * Reduce-scatter: in n-1 steps every chunk passes through all ranks, and each rank combines the
 * chunk with its own input. Rank r then holds the complete chunk r. All-gather: in n-1 steps the
 * chunks go around the ring once, and each chunk is one message that is received at its place in
 * recv. All-reduce: the message is cut into n *chunks*. A reduce-scatter of the chunks is followed
 * by an all-gather. No algorithm that uses only messages sends fewer bytes on its busiest rank.
 * Source: P. Patarasuk and X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of
 * workstations, JPDC 69 (2009).
 *
 * Chunk r is combined in the rank order r+1, r+2, ..., r, and only rank r computes the result of
 * the chunk, so all ranks get the same bits. Narrow floats are rounded once per combine, n-1 times
 * in total. Averages are computed as struct ddp_reduction describes.
 *
 * Cost for S bytes (a chunk has S/n) on n ranks: n-1 steps for each of the two rings. S' is the
 * size of the message in the accumulator type. It equals S except for averages of integers of at
 * most 32 bits. In the combining ring a rank sends (n-1)/n S' bytes in fragments of
 * DDP_FRAGMENT_BYTES. In the copying ring a rank sends (n-1)/n S bytes in n-1 messages. */
#include "coll/coll_ring.h"

/* Returns the address where a step stores the partial sum of chunk c. The next step sends this
 * partial sum. For step -1, returns the address of the divided input, which step 0 sends. */
static void *partial(const struct ddp_ring_sum *ring, int step, int c)
{
    if (ring->whole == NULL)
        return ring->spare[(step + 2) % 2];
    return ddp_at(ring->whole, ddp_chunk_begin(&ring->chunks, c), ring->reduction->acc_elem);
}

int ddp_ring_sum(struct ddp_comm *comm, const struct ddp_ring_sum *ring, struct ddp_err *err)
{
    const int n = comm->size, next = ddp_rank_at(comm->rank, 1, n),
              before = ddp_rank_at(comm->rank, -1, n);
    const size_t elem = ring->reduction->acc_elem;
    const bool pre_scale = ring->reduction->pre_scale;

    const int sent_first = ddp_ring_chunk_summed(comm->rank, 0, n);
    const void *out = ddp_at(ring->input, ddp_chunk_begin(&ring->chunks, sent_first), elem);
    if (pre_scale)
        out = ddp_reduction_input(comm, ring->reduction, partial(ring, -1, sent_first), out,
                                  ddp_chunk_count(&ring->chunks, sent_first));
    for (int step = 0; step < n - 1; step++) {
        const bool last = step == n - 2;
        const int give = ddp_ring_chunk_summed(comm->rank, step, n);
        const int take = ddp_ring_chunk_summed(before, step, n);
        const struct ddp_p2p_combine c = {
            .dst = next,
            .out = step == 0 ? out : partial(ring, step - 1, give),
            .out_count = ddp_chunk_count(&ring->chunks, give),
            .src = before,
            .in_count = ddp_chunk_count(&ring->chunks, take),
            .own = ddp_at(ring->input, ddp_chunk_begin(&ring->chunks, take), elem),
            .sum = last ? ring->result : partial(ring, step, take),
            .own_first = false,
            .divide_own = pre_scale,
            .last = last,
            .reduction = ring->reduction,
        };
        DDP_TRY(ddp_p2p_combine(comm, &c, err));
    }
    return 0;
}

int ddp_ring_copy(struct ddp_comm *comm, const struct ddp_chunks *chunks, size_t elem, void *data,
                  int chunk, struct ddp_err *err)
{
    const int n = comm->size, next = ddp_rank_at(comm->rank, 1, n),
              before = ddp_rank_at(comm->rank, -1, n);

    for (int step = 0; step < n - 1; step++) {
        const int give = ddp_ring_chunk_copied(chunk, step, n);
        const int take = ddp_ring_chunk_copied(chunk, step + 1, n);
        const struct ddp_p2p_move move = {
            .dst = next,
            .out = ddp_at(data, ddp_chunk_begin(chunks, give), elem),
            .out_bytes = ddp_chunk_count(chunks, give) * elem,
            .src = before,
            .in = ddp_at(data, ddp_chunk_begin(chunks, take), elem),
            .in_bytes = ddp_chunk_count(chunks, take) * elem,
        };
        DDP_TRY(ddp_p2p_exchange(comm, &move, err));
    }
    return 0;
}

/* The layout of scratch. The landing buffers (coll_p2p.h) come first. The partial sums follow. For
 * averages of integers of at most 32 bits, the partial sums are the whole array in the accumulator
 * type. Otherwise only a reduce-scatter on more than two ranks stores partial sums in scratch,
 * which has room for two chunks. The partial sums cannot be stored in `send`, because a
 * reduce-scatter must not change the other ranks' chunks of `send`, not even in place. */
struct layout {
    struct ddp_chunks chunks;
    size_t stride, landing, bytes; /* stride: bytes of the longest chunk */
};

static struct layout layout_of(int ranks, enum ddp_coll coll, size_t count,
                               const struct ddp_reduction *reduction)
{
    const size_t n = (size_t)ranks;
    struct layout layout = {
        .chunks = {.count = coll == DDP_ALLREDUCE ? count : n * count, .n = ranks}};
    const size_t longest = ddp_chunk_count(&layout.chunks, 0) * reduction->acc_elem;
    layout.stride = ddp_round_to_line(longest);
    layout.landing = ddp_p2p_landing_bytes(longest);
    if (ranks == 1)
        return layout;
    layout.bytes = layout.landing;
    if (reduction->wider_acc)
        layout.bytes += layout.chunks.count * reduction->acc_elem;
    else if (coll == DDP_REDUCE_SCATTER && ranks > 2)
        layout.bytes += 2 * layout.stride;
    return layout;
}

static size_t sum_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, shape->dtype, shape->op);
    return layout_of(comm->size, shape->coll, shape->count, &reduction).bytes;
}

/* Runs the combining ring of an all-reduce or a reduce-scatter. Stores this rank's chunk of the
 * result in `result`. */
static int sum(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch, void *result,
               const struct layout *layout, struct ddp_reduction *reduction, struct ddp_err *err)
{
    const size_t own = ddp_chunk_begin(&layout->chunks, comm->rank);
    void *sums = ddp_at(scratch, layout->landing, 1);
    struct ddp_ring_sum ring = {
        .chunks = layout->chunks,
        .reduction = reduction,
        .input = args->send,
        .result = result,
        .whole = args->coll == DDP_ALLREDUCE ? args->recv : NULL,
        .spare = {sums, ddp_at(sums, layout->stride, 1)},
    };

    reduction->landing = scratch;
    if (!reduction->wider_acc)
        return ddp_ring_sum(comm, &ring, err);
    ring.whole = sums;
    ring.input = ddp_reduction_input(comm, reduction, sums, args->send, layout->chunks.count);
    ring.result = ddp_at(sums, own, reduction->acc_elem);
    DDP_TRY(ddp_ring_sum(comm, &ring, err));
    ddp_reduction_output(comm, reduction, result, ring.result,
                         ddp_chunk_count(&layout->chunks, comm->rank));
    return 0;
}

static int sum_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                   struct ddp_err *err)
{
    struct ddp_reduction reduction = ddp_reduction_of(comm->size, args->dtype, args->op);
    const struct layout layout = layout_of(comm->size, args->coll, args->count, &reduction);
    const bool scatter = args->coll == DDP_REDUCE_SCATTER;
    const size_t own = scatter ? 0 : ddp_chunk_begin(&layout.chunks, comm->rank);

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, ddp_coll_array_bytes(args), false);
        return 0;
    }
    DDP_TRY(sum(comm, args, scratch, ddp_at(args->recv, own, reduction.elem), &layout, &reduction,
                err));
    if (scatter)
        return 0;
    return ddp_ring_copy(comm, &layout.chunks, reduction.elem, args->recv, comm->rank, err);
}

static int gather_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    (void)scratch;
    const size_t elem = ddp_dtype_size(args->dtype);
    const struct ddp_chunks chunks = {.count = (size_t)comm->size * args->count, .n = comm->size};

    ddp_coll_copy(comm, ddp_at(args->recv, (size_t)comm->rank * args->count, elem), args->send,
                  args->count * elem, false);
    return ddp_ring_copy(comm, &chunks, elem, args->recv, comm->rank, err);
}

static void path_both(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    (void)shape;
    cost->steps = 2.0 * (ranks - 1);
}

#define RING(symbol, kind, run_, path_, text, ...)                                                 \
    const struct ddp_coll_alg ddp_alg_##symbol = {                                                 \
        .name = "ring",                                                                            \
        .coll = kind,                                                                              \
        .summary = "messages around a ring: as few bytes as possible, " text,                      \
        .needs = DDP_NEEDS_MESSAGES,                                                               \
        .run = run_,                                                                               \
        .path = path_,                                                                             \
        __VA_ARGS__}
RING(allreduce_ring, DDP_ALLREDUCE, sum_run, path_both, "2(n-1) steps; for large messages",
     .scratch_bytes = sum_scratch_bytes);
RING(reduce_scatter_ring, DDP_REDUCE_SCATTER, sum_run, ddp_path_ring, "n-1 steps",
     .scratch_bytes = sum_scratch_bytes);
RING(all_gather_ring, DDP_ALL_GATHER, gather_run, ddp_path_ring, "n-1 steps");
