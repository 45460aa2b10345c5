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

static int binomial_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                        struct ddp_err *err)
{
    (void)scratch;
    const size_t bytes = ddp_coll_array_bytes(args);
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
        ddp_coll_copy(comm, args->recv, args->send, bytes, false);
    return 0;
}

const struct ddp_coll_alg ddp_alg_broadcast_binomial = {
    .name = "binomial",
    .coll = DDP_BROADCAST,
    .summary = "messages down a binomial tree: log2(n) steps; for small messages",
    .needs = DDP_NEEDS_MESSAGES,
    .run = binomial_run,
    .path = ddp_path_log,
};
