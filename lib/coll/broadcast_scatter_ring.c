/* Broadcast "scatter-ring": a scatter from the root, followed by an all-gather around a ring.
 *
 * The algorithm is for large messages. The message is cut into n *chunks*, one per virtual rank v
 * (pattern.h). The chunks move down a binomial tree. A rank receives the chunks of its whole
 * subtree at their offsets in recv. Then the chunks go around the ring (coll_ring.h). No rank sends
 * more than 2S bytes, while the root of broadcast "binomial" sends ceil(log2 n) S bytes. Source: M.
 * Barnett et al., Interprocessor collective communication library (InterCom), SHPCC 1994.
 *
 * Cost for S bytes on n ranks: ceil(log2 n) + n-1 steps. The root sends (n-1)/n S bytes in the
 * tree. Every rank sends (n-1)/n S bytes in the ring. Memory traffic: each chunk moves once per
 * level of the tree between the root and the chunk's rank, and n-1 times around the ring
 * (DDP_COST_MOVE in coll_p2p.h). Out of place, the root also copies the message. */
#include "coll/coll_ring.h"

/* Returns the size in bytes of all chunks of v's subtree. */
static size_t subtree_bytes(const struct ddp_chunks *chunks, int v, size_t elem)
{
    const int end = v + ddp_binomial_span(v, chunks->n);
    return (ddp_chunk_begin(chunks, end) - ddp_chunk_begin(chunks, v)) * elem;
}

/* Moves the chunks down the tree. The most distant child comes first. */
static int scatter(struct ddp_comm *comm, const struct ddp_chunks *chunks, int v, int root,
                   void *data, size_t elem, struct ddp_err *err)
{
    const int n = comm->size;

    if (v != 0) {
        const struct ddp_p2p_move get = {
            .src = ddp_real_rank(ddp_binomial_parent(v), root, n),
            .in = ddp_at(data, ddp_chunk_begin(chunks, v), elem),
            .in_bytes = subtree_bytes(chunks, v, elem),
        };
        DDP_TRY(ddp_p2p_exchange(comm, &get, err));
    }
    for (int k = ddp_binomial_children(v, n) - 1; k >= 0; k--) {
        const int child = v + (1 << k);
        const struct ddp_p2p_move give = {
            .dst = ddp_real_rank(child, root, n),
            .out = ddp_at(data, ddp_chunk_begin(chunks, child), elem),
            .out_bytes = subtree_bytes(chunks, child, elem),
        };
        DDP_TRY(ddp_p2p_exchange(comm, &give, err));
    }
    return 0;
}

static int scatter_ring_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                            struct ddp_err *err)
{
    (void)scratch;
    const size_t elem = ddp_dtype_size(args->dtype);
    const struct ddp_chunks chunks = {.count = args->count, .n = comm->size};
    const int v = ddp_virtual_rank(comm->rank, args->root, comm->size);

    if (v == 0)
        ddp_coll_copy(comm, args->recv, args->send, args->count * elem, false);
    DDP_TRY(scatter(comm, &chunks, v, args->root, args->recv, elem, err));
    return ddp_ring_copy(comm, &chunks, elem, args->recv, v, err);
}

static void scatter_ring_path(int ranks, const struct ddp_coll_shape *shape,
                              struct ddp_coll_cost *cost)
{
    (void)shape;
    cost->steps = ddp_rounds(ranks) + ranks - 1;
}

const struct ddp_coll_alg ddp_alg_broadcast_scatter_ring = {
    .name = "scatter-ring",
    .coll = DDP_BROADCAST,
    .summary = "messages: a scatter, then an all-gather around a ring; for large messages",
    .needs = DDP_NEEDS_MESSAGES,
    .run = scatter_ring_run,
    .path = scatter_ring_path,
};
