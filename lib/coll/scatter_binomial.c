/* Scatter "binomial": a rank receives the chunks of its subtree, keeps its own chunk and sends the
 * others to its children.
 *
 * The tree consists of virtual ranks, counted from the root (pattern.h), so a subtree is a range of
 * consecutive ranks. The root sends chunks from its send buffer. An inner rank receives the chunks
 * of its subtree in scratch. A leaf receives its chunk in recv. If a subtree wraps from the last
 * rank to rank 0, the root sends it as two messages. A rank sends to its children one after
 * another. The child with the largest subtree comes first, so that the farthest leaf waits for the
 * fewest bytes.
 *
 * Cost for chunks of S bytes on n ranks: ceil(log2 n) steps. The root sends (n-1) S bytes in one
 * message per child, and one more if a subtree wraps. Memory traffic (DDP_COST_MOVE in coll_p2p.h):
 * each chunk moves once per level between the root and its rank. Inner ranks and, out of place, the
 * root also copy their own chunk. */
#include "coll/coll_p2p.h"

static size_t binomial_scratch_bytes(const struct ddp_comm *comm,
                                     const struct ddp_coll_shape *shape)
{
    const int v = ddp_virtual_rank(comm->rank, shape->root, comm->size);
    const int span = ddp_binomial_span(v, comm->size);
    return v == 0 || span == 1 ? 0 : (size_t)span * shape->count * ddp_dtype_size(shape->dtype);
}

/* Sends the chunks of the children's subtrees. chunks: on the root, all chunks in rank order. On
 * other ranks, the chunks of this rank's subtree. */
static int send_children(struct ddp_comm *comm, const struct ddp_coll_args *args, int v,
                         const void *chunks, struct ddp_err *err)
{
    const int n = comm->size;
    const size_t chunk = ddp_coll_array_bytes(args);

    for (int k = ddp_binomial_children(v, n) - 1; k >= 0; k--) {
        const int child = v + (1 << k), rank = ddp_real_rank(child, args->root, n);
        const struct ddp_wrap wrap = ddp_wrap_of(child, args->root, n);
        const int at = v == 0 ? rank : child - v;
        const int together = v == 0 ? wrap.before : wrap.before + wrap.after;
        const int rest = v == 0 ? wrap.after : 0;
        struct ddp_p2p_move give = {.dst = rank,
                                    .out = ddp_at(chunks, (size_t)at, chunk),
                                    .out_bytes = (size_t)together * chunk};
        DDP_TRY(ddp_p2p_exchange(comm, &give, err));
        give.out = chunks;
        give.out_bytes = (size_t)rest * chunk;
        DDP_TRY(ddp_p2p_exchange(comm, &give, err));
    }
    return 0;
}

static int receive_subtree(struct ddp_comm *comm, const struct ddp_coll_args *args, int v,
                           void *chunks, struct ddp_err *err)
{
    const int up = ddp_binomial_parent(v);
    const size_t chunk = ddp_coll_array_bytes(args);
    const struct ddp_wrap wrap = ddp_wrap_of(v, args->root, comm->size);
    const int together = up == 0 ? wrap.before : wrap.before + wrap.after;
    const int rest = up == 0 ? wrap.after : 0;
    struct ddp_p2p_move get = {.src = ddp_real_rank(up, args->root, comm->size),
                               .in = chunks,
                               .in_bytes = (size_t)together * chunk};
    DDP_TRY(ddp_p2p_exchange(comm, &get, err));
    get.in = ddp_at(chunks, (size_t)together, chunk);
    get.in_bytes = (size_t)rest * chunk;
    return ddp_p2p_exchange(comm, &get, err);
}

static int binomial_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                        struct ddp_err *err)
{
    const int v = ddp_virtual_rank(comm->rank, args->root, comm->size);
    const size_t chunk = ddp_coll_array_bytes(args);

    if (v == 0) {
        DDP_TRY(send_children(comm, args, v, args->send, err));
        ddp_coll_copy(comm, args->recv, ddp_at(args->send, (size_t)comm->rank, chunk), chunk,
                      false);
        return 0;
    }
    if (ddp_binomial_span(v, comm->size) == 1)
        return receive_subtree(comm, args, v, args->recv, err);
    DDP_TRY(receive_subtree(comm, args, v, scratch, err));
    DDP_TRY(send_children(comm, args, v, scratch, err));
    ddp_coll_copy(comm, args->recv, scratch, chunk, false);
    return 0;
}

const struct ddp_coll_alg ddp_alg_scatter_binomial = {
    .name = "binomial",
    .coll = DDP_SCATTER,
    .summary = "messages down a binomial tree, smaller towards the leaves: log2(n) steps",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = binomial_scratch_bytes,
    .run = binomial_run,
    .path = ddp_path_log,
};
