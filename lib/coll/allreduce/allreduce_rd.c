/* All-reduce "rd": recursive doubling. In every step, partners exchange partial sums of the whole
 * message.
 *
 * The algorithm works for any number of ranks n. The largest power of two up to n, pow2, is the
 * number of ranks that run the levels below. The first n - pow2 pairs of ranks are *folded*
 * (pattern.h). The even rank of a pair sends its input to the odd rank at the start, runs no level,
 * and receives the result at the end. At level 0 to log2(pow2)-1, partners at distance 2^level
 * exchange their partial sums, and both partners combine the two partial sums. Compared with "rhd",
 * rd takes about half the steps and sends about log2(pow2)/2 times the bytes. rd is therefore for
 * small messages. Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective
 * communication operations in MPICH, IJHPCA 19 (2005), section 4.5.
 *
 * Levels alternate between two buffers, *result* and *spare*. Each level reads one buffer and
 * writes the other, so that it does not overwrite data that is still being sent. The last level
 * writes to result.
 *
 * Both partners combine the same two partial sums, the lower rank's first, so all ranks get the
 * same bits. Narrow floats are rounded once per level, and once more for folded pairs. Averages are
 * divided at the last level, except for averages of narrow floats over more than 2 ranks. For these
 * averages, each input is divided first (struct ddp_reduction), which adds one rounding. Averages
 * of integers of at most 32 bits are exact, because partial sums are sent in a wider type
 * (coll_p2p.h).
 *
 * Cost for S bytes on n ranks: log2(pow2) steps, and 2 more if ranks are folded. S' is the size of
 * the message in the accumulator type. It equals S except for averages of integers of at most 32
 * bits. A rank sends log2(pow2) S' bytes in fragments of DDP_FRAGMENT_BYTES. The odd rank of a
 * folded pair sends S bytes more. The even rank sends only S' bytes. */
#include "coll/coll_p2p.h"

/* The state of one call on this rank. */
struct rd_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    struct ddp_reduction reduction;
    struct ddp_fold fold;
    int levels, new_rank;
    void *spare, *result;
    const void *own; /* this rank's input at first, then its latest partial sums */
};

/* Scratch holds the landing buffers (coll_p2p.h) and then the buffer `spare`. For averages of
 * integers of at most 32 bits, the buffer `result` follows. */
static size_t rd_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, shape->dtype, shape->op);
    const size_t bytes = shape->count * reduction.acc_elem;
    if (comm->size == 1)
        return 0;
    return ddp_p2p_landing_bytes(bytes) + ddp_round_to_line(bytes) +
           (reduction.wider_acc ? bytes : 0);
}

/* Returns the buffer that a level combines into. For level -1, returns the buffer that level 0 does
 * not write. */
static void *target_of(const struct rd_call *call, int level)
{
    return (call->levels - 1 - level) % 2 == 0 ? call->result : call->spare;
}

static int combine(struct rd_call *call, int partner, size_t out_count, void *sum, bool last,
                   struct ddp_err *err)
{
    const struct ddp_p2p_combine c = {
        .dst = partner,
        .out = call->own,
        .out_count = out_count,
        .src = partner,
        .in_count = call->args->count,
        .own = call->own,
        .sum = sum,
        .own_first = call->comm->rank < partner,
        .last = last,
        .reduction = &call->reduction,
    };
    DDP_TRY(ddp_p2p_combine(call->comm, &c, err));
    call->own = sum;
    return 0;
}

/* Sets call->own to the input of the first combine. Copies the input if level 0 would overwrite
 * it. */
static void prepare_input(struct rd_call *call)
{
    const struct ddp_coll_args *args = call->args;
    void *first = target_of(call, -1);

    call->own = ddp_reduction_input(call->comm, &call->reduction, first, args->send, args->count);
    if (call->own == target_of(call, 0) && call->new_rank >= 0 &&
        !ddp_fold_holds(call->fold, call->comm->rank)) {
        ddp_coll_copy(call->comm, first, args->send, ddp_coll_array_bytes(args), false);
        call->own = first;
    }
}

static int rd_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                  struct ddp_err *err)
{
    struct rd_call call = {
        .comm = comm,
        .args = args,
        .reduction = ddp_reduction_of(comm->size, args->dtype, args->op),
        .fold = ddp_fold_of(comm->size),
        .result = args->recv,
    };
    const size_t acc_bytes = args->count * call.reduction.acc_elem;

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, ddp_coll_array_bytes(args), false);
        return 0;
    }
    call.reduction.landing = scratch;
    call.spare = ddp_at(scratch, ddp_p2p_landing_bytes(acc_bytes), 1);
    if (call.reduction.wider_acc)
        call.result = ddp_at(call.spare, ddp_round_to_line(acc_bytes), 1);
    call.levels = ddp_rounds(call.fold.pow2);
    call.new_rank = ddp_fold_rank(call.fold, comm->rank);
    prepare_input(&call);
    if (call.new_rank < 0)
        return ddp_p2p_fold_in(comm, &call.reduction, args, call.own, err);
    if (ddp_fold_holds(call.fold, comm->rank))
        DDP_TRY(combine(&call, comm->rank - 1, 0, target_of(&call, -1), false, err));
    for (int level = 0; level < call.levels; level++) {
        const int partner = ddp_fold_real(call.fold, call.new_rank ^ (1 << level));
        DDP_TRY(combine(&call, partner, args->count, target_of(&call, level),
                        level == call.levels - 1, err));
    }
    ddp_reduction_output(comm, &call.reduction, args->recv, call.result, args->count);
    return ddp_fold_holds(call.fold, comm->rank) ? ddp_p2p_fold_out(comm, args, err) : 0;
}

/* If ranks are folded, the slowest rank is the odd rank of a folded pair. It receives the even
 * rank's input, runs all levels, and sends the result to the even rank. */
static void rd_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_fold fold = ddp_fold_of(ranks);
    const struct ddp_reduction reduction = ddp_reduction_of(ranks, shape->dtype, shape->op);
    const double count = (double)shape->count;
    const int levels = ddp_rounds(fold.pow2);

    cost->steps = levels + 2.0 * (fold.extra != 0);
    if (fold.extra != 0)
        cost->path_bytes =
            count * ((1.0 + levels) * (double)reduction.acc_elem + (double)reduction.elem);
}

const struct ddp_coll_alg ddp_alg_allreduce_rd = {
    .name = "rd",
    .coll = DDP_ALLREDUCE,
    .summary =
        "messages, recursive doubling: ceil(log2 n) steps, 1 more unless n is a power of 2; for "
        "small messages",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = rd_scratch_bytes,
    .run = rd_run,
    .path = rd_path,
};
