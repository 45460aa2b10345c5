/* All-to-all, all-to-all-v, all-gather-v and reduce-scatter-v "pairwise": in each step a rank sends
 * to at most one rank and receives from at most one rank. After all steps the rank has exchanged
 * data with all ranks.
 *
 * Out of place, in step s rank r sends one chunk to rank r + s and receives one chunk from rank r -
 * s (modulo n). Each chunk is one message. In place, two partners swap their chunks in each step
 * (ddp_mirror_partner in pattern.h). They swap in fragments. A rank copies its fragment to scratch
 * and sends the copy, because the partner's fragment overwrites the original.
 *
 * Cost for chunks of S bytes on n ranks: n-1 steps. In place the call takes n steps, because each
 * rank is idle in one step. A rank sends (n-1) S bytes in n-1 messages, or in fragments of
 * DDP_FRAGMENT_BYTES in place. Memory traffic: messages move n(n-1) chunks (DDP_COST_MOVE in
 * coll_p2p.h). Out of place, each rank also copies its own chunk. In place, each rank copies every
 * chunk that it sends.
 *
 * The collectives with a split run out of place. All-to-all-v and all-gather-v send one message for
 * each part that is not empty. All-gather-v needs no ring, because every rank can send its part to
 * all ranks. Reduce-scatter-v sends parts in fragments, and a rank combines its part in the rank
 * order r, r-1, ..., r+1. A ring would send as many bytes, and a large part would pass through the
 * ranks one after another. Narrow floats are rounded once per combine. Averages are computed as
 * struct ddp_reduction describes. */
#include <stdlib.h>

#include "coll/coll_p2p.h"
#include "coll/coll_split.h"

static size_t pairwise_scratch_bytes(const struct ddp_comm *comm,
                                     const struct ddp_coll_shape *shape)
{
    const size_t chunk = shape->count * ddp_dtype_size(shape->dtype);
    return comm->size > 1 && shape->in_place ? DDP_MIN(chunk, DDP_FRAGMENT_BYTES) : 0;
}

/* Swaps the array `chunk` [bytes] with the partner's chunk. `saved`: scratch for one fragment. */
static int swap_chunk(struct ddp_comm *comm, int partner, void *chunk, size_t bytes, void *saved,
                      struct ddp_err *err)
{
    for (size_t at = 0; at < bytes; at += DDP_FRAGMENT_BYTES) {
        void *fragment = ddp_at(chunk, at, 1);
        const size_t fragment_bytes = DDP_MIN(DDP_FRAGMENT_BYTES, bytes - at);
        const struct ddp_p2p_move move = {partner, saved,    fragment_bytes,
                                          partner, fragment, fragment_bytes};
        ddp_coll_copy(comm, saved, fragment, fragment_bytes, false);
        DDP_TRY(ddp_p2p_exchange(comm, &move, err));
    }
    return 0;
}

static int run_mirror(struct ddp_comm *comm, const struct ddp_coll_args *args, void *saved,
                      struct ddp_err *err)
{
    const size_t chunk = ddp_coll_array_bytes(args);

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
    const size_t chunk = ddp_coll_array_bytes(args);

    if (args->send == args->recv)
        return run_mirror(comm, args, scratch, err);
    ddp_coll_copy(comm, ddp_at(args->recv, (size_t)me, chunk),
                  ddp_at(args->send, (size_t)me, chunk), chunk, false);
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

static void pairwise_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    cost->steps = ranks == 1 ? 0 : ranks - 1 + shape->in_place;
}

const struct ddp_coll_alg ddp_alg_all_to_all_pairwise = {
    .name = "pairwise",
    .coll = DDP_ALL_TO_ALL,
    .summary = "messages, one target rank in each step: n-1 steps (n in place), any memory",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = pairwise_scratch_bytes,
    .run = pairwise_run,
    .path = pairwise_path,
};

/* Runs all-to-all-v and all-gather-v. The offsets are updated from step to step, so a call takes no
 * scratch. */
static int split_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                     struct ddp_err *err)
{
    (void)scratch;
    const int n = comm->size, me = comm->rank;
    const size_t elem = ddp_dtype_size(args->dtype);
    const bool is_shared = args->coll == DDP_ALL_GATHER_V; /* all ranks get the same part */
    size_t send_at = ddp_split_send_at(args, n, me, me), recv_at = 0, received = 0;

    for (int r = 0; r < n; r++) {
        recv_at = r == me ? received : recv_at;
        received += ddp_split_part(args, n, r, me);
    }
    ddp_coll_copy(comm, ddp_at(args->recv, recv_at, elem), ddp_at(args->send, send_at, elem),
                  ddp_split_part(args, n, me, me) * elem, false);
    for (int step = 1; step < n; step++) {
        const int after = ddp_rank_at(me, step, n), before = ddp_rank_at(me, -step, n);
        const size_t in = ddp_split_part(args, n, before, me);
        send_at = after == 0 || is_shared ? 0 : send_at + ddp_split_part(args, n, me, after - 1);
        recv_at = (before == n - 1 ? received : recv_at) - in;
        const struct ddp_p2p_move move = {
            .dst = after,
            .out = ddp_at(args->send, send_at, elem),
            .out_bytes = ddp_split_part(args, n, me, after) * elem,
            .src = before,
            .in = ddp_at(args->recv, recv_at, elem),
            .in_bytes = in * elem,
        };
        DDP_TRY(ddp_p2p_exchange(comm, &move, err));
    }
    return 0;
}

/* The layout of scratch for reduce-scatter-v: the landing buffers (coll_p2p.h), and then the whole
 * send array in the accumulator type, if inputs are converted or divided. Returns the bytes of the
 * landing buffers. */
static size_t landing_bytes(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                            const struct ddp_reduction *reduction)
{
    return ddp_p2p_landing_bytes(ddp_split_part(args, comm->size, comm->rank, comm->rank) *
                                 reduction->acc_elem);
}

static size_t sum_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const struct ddp_coll_args args = ddp_split_args(shape);
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, shape->dtype, shape->op);
    const size_t all = ddp_split_send_at(&args, comm->size, comm->rank, comm->size);

    return landing_bytes(comm, &args, &reduction) +
           (reduction.wider_acc || reduction.pre_scale ? all * reduction.acc_elem : 0);
}

/* Runs reduce-scatter-v. In step s rank r sends its input of part r + s to rank r + s, and combines
 * its own part with the input of rank r - s. */
static int sum_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                   struct ddp_err *err)
{
    const int n = comm->size, me = comm->rank;
    struct ddp_reduction reduction = ddp_reduction_of(n, args->dtype, args->op);
    const size_t elem = reduction.acc_elem, own_count = ddp_split_part(args, n, me, me);
    size_t send_at = ddp_split_send_at(args, n, me, me);

    if (n == 1) {
        ddp_coll_copy(comm, args->recv, args->send, own_count * reduction.elem, false);
        return 0;
    }
    const void *input = ddp_reduction_input(
        comm, &reduction, ddp_at(scratch, landing_bytes(comm, args, &reduction), 1), args->send,
        ddp_split_send_at(args, n, me, n));
    void *own = ddp_at(input, send_at, elem);
    void *sum = reduction.wider_acc ? own : args->recv;

    reduction.landing = scratch;
    for (int step = 1; step < n; step++) {
        const int after = ddp_rank_at(me, step, n);
        send_at = after == 0 ? 0 : send_at + ddp_split_part(args, n, me, after - 1);
        const struct ddp_p2p_combine c = {
            .dst = after,
            .out = ddp_at(input, send_at, elem),
            .out_count = ddp_split_part(args, n, me, after),
            .src = ddp_rank_at(me, -step, n),
            .in_count = own_count,
            .own = step == 1 ? own : sum,
            .sum = sum,
            .own_first = true,
            .last = step == n - 1,
            .reduction = &reduction,
        };
        DDP_TRY(ddp_p2p_combine(comm, &c, err));
    }
    ddp_reduction_output(comm, &reduction, args->recv, sum, own_count);
    return 0;
}

/* Returns the bytes on the longest path through the ranks. A rank begins a step when its previous
 * step has ended. A message begins when both ranks are in the step. `end` [2][ranks] is a work
 * array: for each rank, it holds the bytes on the rank's longest path up to the end of a step, for
 * the current step and for the step before. elem: bytes of an element in a message. */
static double split_path_bytes(int ranks, const struct ddp_coll_args *args, double elem,
                               double *end)
{
    double *now = end, *last = end + ranks, longest = 0;

    for (int step = 1; step < ranks; step++) {
        double *const swapped = last;
        last = now;
        now = swapped;
        for (int r = 0; r < ranks; r++) {
            const int after = ddp_rank_at(r, step, ranks), before = ddp_rank_at(r, -step, ranks);
            const size_t out = ddp_split_part(args, ranks, r, after);
            const size_t in = ddp_split_part(args, ranks, before, r);
            now[r] = last[r];
            if (out > 0)
                now[r] = DDP_MAX(now[r], DDP_MAX(last[r], last[after]) + (double)out * elem);
            if (in > 0)
                now[r] = DDP_MAX(now[r], DDP_MAX(last[r], last[before]) + (double)in * elem);
            longest = DDP_MAX(longest, now[r]);
        }
    }
    return longest;
}

/* Without a split table, or if memory is exhausted, path_bytes stays 0, and the cost model uses
 * sent_bytes instead. */
static void split_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_coll_args args = ddp_split_args(shape);
    const size_t elem = ddp_coll_reduces(shape->coll)
                            ? ddp_reduction_of(ranks, shape->dtype, shape->op).acc_elem
                            : ddp_dtype_size(shape->dtype);
    double *end = shape->split != NULL ? ddp_calloc(2 * (size_t)ranks, sizeof *end) : NULL;

    cost->steps = ranks - 1;
    if (end != NULL)
        cost->path_bytes = split_path_bytes(ranks, &args, (double)elem, end);
    free(end);
}

#define PAIRWISE_V(symbol, kind, run_, ...)                                                        \
    const struct ddp_coll_alg ddp_alg_##symbol = {                                                 \
        .name = "pairwise",                                                                        \
        .coll = kind,                                                                              \
        .summary = "messages, one target rank in each step: n-1 steps, any memory",                \
        .needs = DDP_NEEDS_MESSAGES,                                                               \
        .run = run_,                                                                               \
        .path = split_path,                                                                        \
        __VA_ARGS__}
PAIRWISE_V(all_to_all_v_pairwise, DDP_ALL_TO_ALL_V, split_run);
PAIRWISE_V(all_gather_v_pairwise, DDP_ALL_GATHER_V, split_run);
PAIRWISE_V(reduce_scatter_v_pairwise, DDP_REDUCE_SCATTER_V, sum_run,
           .scratch_bytes = sum_scratch_bytes);
