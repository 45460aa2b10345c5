/* Gather "binomial": every rank collects the chunks of its subtree and sends them to its parent.
 *
 * The tree consists of virtual ranks, counted from the root (pattern.h), so a subtree is a range of
 * consecutive ranks. A leaf sends its chunk from its send buffer. An inner rank collects the chunks
 * of its subtree in scratch. The root receives each subtree in recv. If a subtree wraps from the
 * last rank to rank 0, the root receives it as two messages.
 *
 * Cost for chunks of S bytes on n ranks: ceil(log2 n) steps. The root's child with the largest
 * subtree sends the most, up to n/2 chunks. A rank sends one message, or two if its subtree wraps.
 * Memory traffic (DDP_COST_MOVE in coll_p2p.h): each chunk moves once per level between the root
 * and its rank. Inner ranks and, out of place, the root also copy their own chunk. */
#include "coll/coll_p2p.h"

static size_t binomial_scratch_bytes(const struct ddp_comm *comm,
                                     const struct ddp_coll_shape *shape)
{
    const int v = ddp_virtual_rank(comm->rank, shape->root, comm->size);
    const int span = ddp_binomial_span(v, comm->size);
    return v == 0 || span == 1 ? 0 : (size_t)span * shape->count * ddp_dtype_size(shape->dtype);
}

/* Receives the chunks of all children's subtrees at the same time. base: memory for the chunks. On
 * the root these are all chunks in rank order. On other ranks they are the chunks of the subtree.
 */
static int receive_children(struct ddp_comm *comm, const struct ddp_coll_args *args, int v,
                            void *base, struct ddp_err *err)
{
    const int n = comm->size, children = ddp_binomial_children(v, n);
    const size_t chunk = ddp_coll_array_bytes(args);
    struct ddp_request req[64]; /* enough for 31 children, of which at most one wraps */
    int posted = 0;

    for (int k = 0; k < children; k++) {
        const int child = v + (1 << k), rank = ddp_real_rank(child, args->root, n);
        const struct ddp_wrap wrap = ddp_wrap_of(child, args->root, n);
        const int at = v == 0 ? rank : child - v;
        const int together = v == 0 ? wrap.before : wrap.before + wrap.after;
        DDP_TRY(ddp_comm_irecv(comm, rank, DDP_COLL_TAG, ddp_at(base, (size_t)at, chunk),
                               (size_t)together * chunk, &req[posted++], err));
        if (v == 0 && wrap.after != 0)
            DDP_TRY(ddp_comm_irecv(comm, rank, DDP_COLL_TAG, base, (size_t)wrap.after * chunk,
                                   &req[posted++], err));
    }
    return ddp_comm_wait(comm, req, posted, err);
}

static int send_up(struct ddp_comm *comm, const struct ddp_coll_args *args, int v,
                   const void *chunks, struct ddp_err *err)
{
    const int up = ddp_binomial_parent(v);
    const size_t chunk = ddp_coll_array_bytes(args);
    const struct ddp_wrap wrap = ddp_wrap_of(v, args->root, comm->size);
    const int together = up == 0 ? wrap.before : wrap.before + wrap.after;
    const int rest = up == 0 ? wrap.after : 0;
    struct ddp_p2p_move give = {.dst = ddp_real_rank(up, args->root, comm->size),
                                .out = chunks,
                                .out_bytes = (size_t)together * chunk};
    DDP_TRY(ddp_p2p_exchange(comm, &give, err));
    give.out = ddp_at(chunks, (size_t)together, chunk);
    give.out_bytes = (size_t)rest * chunk;
    return ddp_p2p_exchange(comm, &give, err);
}

static int binomial_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                        struct ddp_err *err)
{
    const int v = ddp_virtual_rank(comm->rank, args->root, comm->size);
    const size_t chunk = ddp_coll_array_bytes(args);

    if (v == 0) {
        ddp_coll_copy(comm, ddp_at(args->recv, (size_t)comm->rank, chunk), args->send, chunk,
                      false);
        return receive_children(comm, args, v, args->recv, err);
    }
    if (ddp_binomial_span(v, comm->size) == 1)
        return send_up(comm, args, v, args->send, err);
    ddp_coll_copy(comm, scratch, args->send, chunk, false);
    DDP_TRY(receive_children(comm, args, v, scratch, err));
    return send_up(comm, args, v, scratch, err);
}

/* The root receives all chunks. */
static void binomial_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double chunk = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    cost->steps = ddp_rounds(ranks);
    cost->path_bytes = (ranks - 1) * chunk;
}

const struct ddp_coll_alg ddp_alg_gather_binomial = {
    .name = "binomial",
    .coll = DDP_GATHER,
    .summary = "messages up a binomial tree, larger towards the root: log2(n) steps",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = binomial_scratch_bytes,
    .run = binomial_run,
    .path = binomial_path,
};
