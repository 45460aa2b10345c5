/* All-reduce "chain": partial sums go from the last rank down to rank 0, and the result goes back
 * up. Only for the trial (trial.sh). It has few messages per rank and many steps. */
#include "coll/coll_p2p.h"

static size_t chain_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, shape->dtype, shape->op);
    const size_t bytes = shape->count * reduction.acc_elem;
    return comm->size == 1 ? 0 : ddp_p2p_landing_bytes(bytes) + ddp_round_to_line(bytes);
}

static int chain_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                     struct ddp_err *err)
{
    const size_t bytes = ddp_coll_array_bytes(args);
    struct ddp_reduction reduction = ddp_reduction_of(comm->size, args->dtype, args->op);

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, bytes, false);
        return 0;
    }
    reduction.landing = scratch;
    const int below = comm->rank - 1, above = comm->rank + 1;
    const bool is_last = above == comm->size;
    void *sum = ddp_at(scratch, ddp_p2p_landing_bytes(args->count * reduction.acc_elem), 1);
    const void *own = ddp_reduction_input(comm, &reduction, sum, args->send, args->count);

    if (!is_last) {
        const struct ddp_p2p_combine from_above = {
            .src = above,
            .in_count = args->count,
            .own = own,
            .sum = comm->rank == 0 && !reduction.wider_acc ? args->recv : sum,
            .own_first = true,
            .last = comm->rank == 0,
            .reduction = &reduction,
        };
        DDP_TRY(ddp_p2p_combine(comm, &from_above, err));
        own = from_above.sum;
    }
    if (comm->rank > 0) {
        const struct ddp_p2p_combine to_below = {
            .dst = below, .out = own, .out_count = args->count, .reduction = &reduction};
        const struct ddp_p2p_move result = {.src = below, .in = args->recv, .in_bytes = bytes};
        DDP_TRY(ddp_p2p_combine(comm, &to_below, err));
        DDP_TRY(ddp_p2p_exchange(comm, &result, err));
    } else {
        ddp_reduction_output(comm, &reduction, args->recv, own, args->count);
    }
    if (is_last)
        return 0;
    const struct ddp_p2p_move up = {.dst = above, .out = args->recv, .out_bytes = bytes};
    return ddp_p2p_exchange(comm, &up, err);
}

/* Every rank waits for all others, one after the other. */
static void chain_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_reduction reduction = ddp_reduction_of(ranks, shape->dtype, shape->op);
    cost->steps = 2.0 * (ranks - 1);
    cost->path_bytes =
        (ranks - 1.0) * (double)shape->count * (double)(reduction.acc_elem + reduction.elem);
}

const struct ddp_coll_alg ddp_alg_allreduce_chain = {
    .name = "chain",
    .coll = DDP_ALLREDUCE,
    .summary = "messages, down a chain of ranks and up again: 2(n-1) steps",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = chain_scratch_bytes,
    .run = chain_run,
    .path = chain_path,
};
