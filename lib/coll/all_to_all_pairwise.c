/* All-to-all "pairwise": a rank exchanges with one partner in each step, until it has met all
 * ranks.
 *
 * Out of place it *shifts*: in step s a rank sends to the rank s after it and receives from the
 * rank s before it. Each chunk is one message that arrives at its place. In place it *mirrors*:
 * every pair of ranks meets in one step and swaps chunks, in fragments. A fragment is copied to
 * scratch before the partner's fragment takes its place. pattern.h defines both orders.
 *
 * Cost, chunks of S bytes, n ranks: n-1 steps, in place n (a rank may be idle in one of them). A
 * rank sends (n-1) S bytes, as n-1 messages, in place in fragments of DDP_FRAGMENT_BYTES. Memory,
 * all ranks: n(n-1) chunks move. Out of place each rank copies its own chunk, in place every chunk
 * that it sends. */
#include "coll/coll_p2p.h"

static int pairwise_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                             struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "pairwise", err);
}

static size_t pairwise_scratch_bytes(const struct ddp_comm *comm,
                                     const struct ddp_coll_shape *shape)
{
    const size_t chunk = shape->count * ddp_dtype_size(shape->dtype);
    return comm->size > 1 && shape->in_place ? DDP_MIN(chunk, DDP_FRAGMENT_BYTES) : 0;
}

/* Swaps the data chunk[bytes] with the partner's. saved: scratch for one fragment. */
static int swap_chunk(struct ddp_comm *comm, int partner, void *chunk, size_t bytes, void *saved,
                      struct ddp_err *err)
{
    for (size_t at = 0; at < bytes; at += DDP_FRAGMENT_BYTES) {
        void *fragment = ddp_at(chunk, at, 1);
        const size_t fragment_bytes = DDP_MIN(DDP_FRAGMENT_BYTES, bytes - at);
        const struct ddp_p2p_move move = {partner, saved,    fragment_bytes,
                                          partner, fragment, fragment_bytes};
        ddp_coll_copy(comm, saved, fragment, fragment_bytes);
        DDP_TRY(ddp_p2p_exchange(comm, &move, err));
    }
    return 0;
}

static int run_mirror(struct ddp_comm *comm, const struct ddp_coll_args *args, void *saved,
                      struct ddp_err *err)
{
    const size_t chunk = args->count * ddp_dtype_size(args->dtype);

    for (int step = 0; step < comm->size; step++) {
        const int partner = ddp_mirror_partner(comm->rank, step, comm->size);
        if (partner != comm->rank)
            DDP_TRY(swap_chunk(comm, partner, ddp_at(args->recv, (size_t)partner, chunk), chunk,
                               saved, err));
    }
    return 0;
}

static int pairwise_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                        struct ddp_err *err)
{
    const int n = comm->size, me = comm->rank;
    const size_t chunk = args->count * ddp_dtype_size(args->dtype);

    if (args->send == args->recv)
        return run_mirror(comm, args, scratch, err);
    ddp_coll_copy(comm, ddp_at(args->recv, (size_t)me, chunk),
                  ddp_at(args->send, (size_t)me, chunk), chunk);
    for (int step = 1; step < n; step++) {
        const int after = ddp_rank_at(me, step, n), before = ddp_rank_at(me, -step, n);
        const struct ddp_p2p_move move = {
            .dst = after,
            .out = ddp_at(args->send, (size_t)after, chunk),
            .out_bytes = chunk,
            .src = before,
            .in = ddp_at(args->recv, (size_t)before, chunk),
            .in_bytes = chunk,
        };
        DDP_TRY(ddp_p2p_exchange(comm, &move, err));
    }
    return 0;
}

static void pairwise_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const size_t chunk = shape->count * ddp_dtype_size(shape->dtype);
    const double others = (double)(ranks - 1) * (double)chunk;
    const double messages = shape->in_place ? (double)ddp_fragment_count(chunk) : chunk != 0;

    *cost = (struct ddp_coll_cost){
        .modelled = true,
        .steps = ranks == 1 ? 0 : ranks - 1 + shape->in_place,
        .messages = (ranks - 1) * messages,
        .sent_bytes = others,
        .memory_bytes = ranks * (DDP_COST_MOVE * others +
                                 DDP_COST_COPY * (shape->in_place ? others : (double)chunk)),
    };
}

const struct ddp_coll_alg ddp_alg_all_to_all_pairwise = {
    .name = "pairwise",
    .coll = DDP_ALL_TO_ALL,
    .summary = "messages, one partner in each step: n-1 steps, any memory",
    .supports = pairwise_supports,
    .scratch_bytes = pairwise_scratch_bytes,
    .run = pairwise_run,
    .cost = pairwise_cost,
};
