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

static int binomial_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                             struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "binomial", err);
}

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
    const size_t chunk = args->count * ddp_dtype_size(args->dtype);

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
    const size_t chunk = args->count * ddp_dtype_size(args->dtype);
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
    const size_t chunk = args->count * ddp_dtype_size(args->dtype);

    if (v == 0) {
        DDP_TRY(send_children(comm, args, v, args->send, err));
        ddp_coll_copy(comm, args->recv, ddp_at(args->send, (size_t)comm->rank, chunk), chunk);
        return 0;
    }
    if (ddp_binomial_span(v, comm->size) == 1)
        return receive_subtree(comm, args, v, args->recv, err);
    DDP_TRY(receive_subtree(comm, args, v, scratch, err));
    DDP_TRY(send_children(comm, args, v, scratch, err));
    ddp_coll_copy(comm, args->recv, scratch, chunk);
    return 0;
}

static void binomial_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double chunk = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    struct ddp_p2p_count root = {0, 0};

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = ddp_rounds(ranks)};
    cost->memory_bytes = shape->in_place ? 0 : DDP_COST_COPY * chunk;
    for (int v = 1; chunk != 0 && v < ranks; v++) {
        const int span = ddp_binomial_span(v, ranks);
        if (ddp_binomial_parent(v) == 0) {
            root.messages += ddp_wrap_of(v, shape->root, ranks).after != 0 ? 2 : 1;
            root.bytes += span * chunk;
        }
        cost->memory_bytes +=
            DDP_COST_MOVE * span * chunk + (span == 1 ? 0 : DDP_COST_COPY * chunk);
    }
    ddp_cost_rank(cost, &root); /* no other rank has as many children or chunks */
}

const struct ddp_coll_alg ddp_alg_scatter_binomial = {
    .name = "binomial",
    .coll = DDP_SCATTER,
    .summary = "messages down a binomial tree, smaller towards the leaves: log2(n) steps",
    .supports = binomial_supports,
    .scratch_bytes = binomial_scratch_bytes,
    .run = binomial_run,
    .cost = binomial_cost,
};
