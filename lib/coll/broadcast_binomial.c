/* Broadcast "binomial": in each step, every rank that has the message sends it to a rank that does
 * not have it.
 *
 * The ranks form a binomial tree, counted from the root (pattern.h). A rank receives the message
 * from its parent. It then sends the message to its children one after another, because the
 * farthest leaf would wait longer if all messages were sent at once. The child with the largest
 * subtree comes first.
 *
 * Cost for S bytes on n ranks: ceil(log2 n) steps. The root sends ceil(log2 n) messages of S bytes.
 * Other ranks send fewer. Memory traffic (DDP_COST_MOVE in coll_p2p.h): S bytes move n-1 times. Out
 * of place, the root also copies S bytes. */
#include "coll/coll_p2p.h"

static int binomial_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                             struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "binomial", err);
}

static int binomial_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                        struct ddp_err *err)
{
    (void)scratch;
    const size_t bytes = args->count * ddp_dtype_size(args->dtype);
    const int n = comm->size, v = ddp_virtual_rank(comm->rank, args->root, n);

    if (v != 0) {
        const int parent = ddp_real_rank(ddp_binomial_parent(v), args->root, n);
        const struct ddp_p2p_move get = {.src = parent, .in = args->recv, .in_bytes = bytes};
        DDP_TRY(ddp_p2p_exchange(comm, &get, err));
    }
    for (int k = ddp_binomial_children(v, n) - 1; k >= 0; k--) {
        const int child = ddp_real_rank(v + (1 << k), args->root, n);
        const struct ddp_p2p_move give = {
            .dst = child, .out = v == 0 ? args->send : args->recv, .out_bytes = bytes};
        DDP_TRY(ddp_p2p_exchange(comm, &give, err));
    }
    if (v == 0)
        ddp_coll_copy(comm, args->recv, args->send, bytes);
    return 0;
}

static void binomial_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double bytes = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const int rounds = ddp_rounds(ranks);
    *cost = (struct ddp_coll_cost){
        .modelled = true,
        .steps = rounds,
        .messages = bytes != 0 ? rounds : 0,
        .sent_bytes = rounds * bytes,
        .memory_bytes =
            (shape->in_place ? 0 : DDP_COST_COPY * bytes) + (ranks - 1) * DDP_COST_MOVE * bytes,
    };
}

const struct ddp_coll_alg ddp_alg_broadcast_binomial = {
    .name = "binomial",
    .coll = DDP_BROADCAST,
    .summary = "messages down a binomial tree: log2(n) steps; for small messages",
    .supports = binomial_supports,
    .run = binomial_run,
    .cost = binomial_cost,
};
