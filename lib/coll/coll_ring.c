/* The ring that combines chunks and the ring that copies chunks. See coll_ring.h. */
#include "coll/coll_ring.h"

/* Returns the address where a step stores the partial sum of chunk c. The next step sends this
 * partial sum. For step -1 it returns the address of the divided input, which step 0 sends. */
static void *partial(const struct ddp_ring_sum *ring, int step, int c)
{
    if (ring->whole == NULL)
        return ring->spare[(step + 2) % 2];
    return ddp_at(ring->whole, ddp_chunk_begin(&ring->chunks, c), ddp_dtype_size(ring->dtype));
}

int ddp_ring_sum(struct ddp_comm *comm, const struct ddp_ring_sum *ring, struct ddp_err *err)
{
    const int n = comm->size, next = ddp_rank_at(comm->rank, 1, n),
              before = ddp_rank_at(comm->rank, -1, n);
    const size_t elem = ddp_dtype_size(ring->dtype);

    const int sent_first = ddp_ring_chunk_summed(comm->rank, 0, n);
    const void *out = ddp_at(ring->input, ddp_chunk_begin(&ring->chunks, sent_first), elem);
    if (ring->pre_scale) {
        ddp_coll_divide(comm, partial(ring, -1, sent_first), out,
                        ddp_chunk_count(&ring->chunks, sent_first), ring->dtype);
        out = partial(ring, -1, sent_first);
    }
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
            .divide_own = ring->pre_scale,
            .dtype = ring->dtype,
            .op = ring->op,
            .divisor = last ? ring->divisor : 1,
            .landing = ring->landing,
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

void ddp_ring_sum_count(const struct ddp_chunks *chunks, size_t elem, int r,
                        struct ddp_p2p_count *c)
{
    for (int step = 0; step < chunks->n - 1; step++)
        ddp_count_fragments(
            c, elem * ddp_chunk_count(chunks, ddp_ring_chunk_summed(r, step, chunks->n)));
}

void ddp_ring_copy_count(const struct ddp_chunks *chunks, size_t elem, int r,
                         struct ddp_p2p_count *c)
{
    for (int step = 0; step < chunks->n - 1; step++)
        ddp_count_message(
            c, elem * ddp_chunk_count(chunks, ddp_ring_chunk_copied(r, step, chunks->n)));
}
