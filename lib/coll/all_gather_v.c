/* All-gather of chunks of different length, on the ring that copies (coll_ring.h). */
#include "coll/all_gather_v.h"

#include "coll/coll_ring.h"

size_t ddp_all_gather_v_offsets(const size_t *counts, int n, size_t *offset)
{
    offset[0] = 0;
    for (int r = 0; r < n; r++)
        if (__builtin_add_overflow(offset[r], counts[r], &offset[r + 1]))
            return SIZE_MAX;
    return offset[n];
}

static struct ddp_chunks chunks_of(int ranks, const size_t *offset)
{
    return (struct ddp_chunks){.count = offset[ranks], .n = ranks, .offset = offset};
}

int ddp_all_gather_v(struct ddp_comm *comm, const void *send, void *recv, const size_t *offset,
                     enum ddp_dtype dtype, struct ddp_err *err)
{
    const size_t elem = ddp_dtype_size(dtype);
    const struct ddp_chunks chunks = chunks_of(comm->size, offset);

    DDP_TRY(ddp_coll_needs_p2p(comm, "all-gather-v", err));
    if (chunks.count == 0)
        return 0;
    const uint64_t seq = ddp_comm_enter(comm, DDP_ALL_GATHER, dtype, chunks.count * elem);
    ddp_coll_copy(comm, ddp_at(recv, offset[comm->rank], elem), send,
                  ddp_chunk_count(&chunks, comm->rank) * elem);
    const int rc = ddp_ring_copy(comm, &chunks, elem, recv, comm->rank, err);
    ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

void ddp_all_gather_v_cost(int ranks, const size_t *offset, enum ddp_dtype dtype,
                           struct ddp_coll_cost *cost)
{
    const size_t elem = ddp_dtype_size(dtype);
    const struct ddp_chunks chunks = chunks_of(ranks, offset);
    const double bytes = (double)chunks.count * (double)elem;

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = ranks - 1};
    for (int r = 0; r < ranks; r++) {
        struct ddp_p2p_count c = {0, 0};
        ddp_ring_copy_count(&chunks, elem, r, &c);
        ddp_cost_rank(cost, &c);
    }
    cost->memory_bytes = DDP_COST_COPY * bytes + (ranks - 1) * DDP_COST_MOVE * bytes;
}
