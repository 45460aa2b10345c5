/* All-reduce "rhd": recursive halving (a reduce-scatter), followed by recursive doubling (an
 * all-gather).
 *
 * The algorithm works for any number of ranks n. The largest power of two up to n, pow2, is the
 * number of ranks that run halving and doubling. The first n - pow2 pairs of ranks are *folded*
 * (pattern.h). The even rank of a pair sends its input to the odd rank at the start, runs neither
 * halving nor doubling, and receives the result at the end.
 *
 * *Halving*: at level 0 to log2(pow2)-1, partners at distance 2^level hold partial sums of the same
 * range. Each rank sends one half of the range to its partner, and combines the half that it keeps
 * with the half that it receives. From level to level, the ranges become shorter and the distance
 * of the partners grows, so most bytes are sent between ranks with near numbers. *Doubling*: the
 * levels run in reverse order, and partners exchange their complete ranges. Source: R. Thakur, R.
 * Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19
 * (2005), section 4.5.
 *
 * Only one rank computes the result of an element, so all ranks get the same bits. The lower rank's
 * partial sum is the first operand. Averages are divided at the last level of halving, except for
 * averages of narrow floats over more than 2 ranks. For these averages, each input is divided first
 * (struct ddp_reduction), which adds one rounding. Narrow floats are rounded once per level of
 * halving, and once more for folded pairs. Averages of integers of at most 32 bits are exact,
 * because partial sums are sent in a wider type (coll_p2p.h).
 *
 * Cost for S bytes on n ranks: 2 log2(pow2) steps, and 2 more if ranks are folded. S' is the size
 * of the array in the accumulator type. It equals S except for averages of integers of at most 32
 * bits. Halving sends (pow2-1)/pow2 S' bytes per rank in fragments of DDP_FRAGMENT_BYTES. Doubling
 * sends (pow2-1)/pow2 S bytes per rank, in one message per step. The odd rank of a folded pair
 * sends S bytes more. The even rank sends only S' bytes. */
#include "coll/coll_p2p.h"

#define LEVELS_MAX 31

/* The state of one call on this rank. */
struct rhd_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    struct ddp_reduction reduction;
    struct ddp_fold fold;
    int levels, new_rank;
    /* range[l]: the range that this rank holds before level l. range[levels]: the range that it
     * holds after halving. */
    struct ddp_range range[LEVELS_MAX + 1];
    const void *own; /* this rank's partial sums: at first its input, later `sum` */
    void *sum;       /* buffer for combined values: recv, or scratch if wider_acc is set */
};

/* Returns the size of the landing buffers (coll_p2p.h) for the longest array that a rank receives
 * and combines. If ranks are folded, this is the whole array. */
static size_t rhd_landing_bytes(int ranks, size_t bytes)
{
    const bool folds = ddp_fold_of(ranks).extra != 0;
    return ddp_p2p_landing_bytes(folds ? bytes : bytes / 2 + sizeof(double));
}

static size_t rhd_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, shape->dtype, shape->op);
    const size_t bytes = shape->count * reduction.acc_elem;
    if (comm->size == 1)
        return 0;
    return rhd_landing_bytes(comm->size, bytes) + (reduction.wider_acc ? bytes : 0);
}

static size_t range_count(const struct ddp_range *range)
{
    return range->end - range->begin;
}

/* Receives the range `in` of the partner's partial sums and combines it with the same range of this
 * rank's partial sums. Sends the range `out` of this rank's partial sums to the partner. */
static int combine(struct rhd_call *call, int partner, const struct ddp_range *out,
                   const struct ddp_range *in, bool last, struct ddp_err *err)
{
    const struct ddp_p2p_combine c = {
        .dst = partner,
        .out = ddp_at(call->own, out->begin, call->reduction.acc_elem),
        .out_count = range_count(out),
        .src = partner,
        .in_count = range_count(in),
        .own = ddp_at(call->own, in->begin, call->reduction.acc_elem),
        .sum = ddp_at(call->sum, in->begin, call->reduction.acc_elem),
        .own_first = call->comm->rank < partner,
        .last = last,
        .reduction = &call->reduction,
    };
    DDP_TRY(ddp_p2p_combine(call->comm, &c, err));
    call->own = call->sum;
    return 0;
}

static int run_halving(struct rhd_call *call, struct ddp_err *err)
{
    for (int level = 0; level < call->levels; level++) {
        const int partner = ddp_fold_real(call->fold, call->new_rank ^ (1 << level));
        struct ddp_range give;
        ddp_halve(call->range[level], call->new_rank, level, &call->range[level + 1], &give);
        DDP_TRY(
            combine(call, partner, &give, &call->range[level + 1], level == call->levels - 1, err));
    }
    return 0;
}

static int run_doubling(struct rhd_call *call, struct ddp_err *err)
{
    const size_t elem = ddp_dtype_size(call->args->dtype);

    for (int level = call->levels - 1; level >= 0; level--) {
        const int partner = ddp_fold_real(call->fold, call->new_rank ^ (1 << level));
        struct ddp_range mine, theirs;
        ddp_halve(call->range[level], call->new_rank, level, &mine, &theirs);
        const struct ddp_p2p_move move = {
            .dst = partner,
            .out = ddp_at(call->args->recv, mine.begin, elem),
            .out_bytes = range_count(&mine) * elem,
            .src = partner,
            .in = ddp_at(call->args->recv, theirs.begin, elem),
            .in_bytes = range_count(&theirs) * elem,
        };
        DDP_TRY(ddp_p2p_exchange(call->comm, &move, err));
    }
    return 0;
}

static int rhd_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                   struct ddp_err *err)
{
    const struct ddp_range all = {0, args->count}, nothing = {0, 0};
    struct rhd_call call = {
        .comm = comm,
        .args = args,
        .reduction = ddp_reduction_of(comm->size, args->dtype, args->op),
        .fold = ddp_fold_of(comm->size),
        .range = {all},
        .sum = args->recv,
    };
    const struct ddp_reduction *reduction = &call.reduction;
    const size_t acc_bytes = args->count * reduction->acc_elem;

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, ddp_coll_array_bytes(args), false);
        return 0;
    }
    call.reduction.landing = scratch;
    call.levels = ddp_rounds(call.fold.pow2);
    call.new_rank = ddp_fold_rank(call.fold, comm->rank);
    if (reduction->wider_acc)
        call.sum = ddp_at(scratch, rhd_landing_bytes(comm->size, acc_bytes), 1);
    call.own = ddp_reduction_input(comm, reduction, call.sum, args->send, args->count);
    if (call.new_rank < 0)
        return ddp_p2p_fold_in(comm, reduction, args, call.own, err);
    if (ddp_fold_holds(call.fold, comm->rank))
        DDP_TRY(combine(&call, comm->rank - 1, &nothing, &all, false, err));
    DDP_TRY(run_halving(&call, err));
    const struct ddp_range *own = &call.range[call.levels];
    ddp_reduction_output(comm, reduction, ddp_at(args->recv, own->begin, reduction->elem),
                         ddp_at(call.sum, own->begin, reduction->acc_elem), range_count(own));
    DDP_TRY(run_doubling(&call, err));
    return ddp_fold_holds(call.fold, comm->rank) ? ddp_p2p_fold_out(comm, args, err) : 0;
}

/* If ranks are folded, the slowest rank is the odd rank of a folded pair. It receives the even
 * rank's input, runs halving and doubling, and sends the result to the even rank. */
static void rhd_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_fold fold = ddp_fold_of(ranks);
    const struct ddp_reduction reduction = ddp_reduction_of(ranks, shape->dtype, shape->op);
    const double bytes = (double)shape->count * (double)reduction.elem;
    const double acc_bytes = (double)shape->count * (double)reduction.acc_elem;

    cost->steps = 2.0 * (ddp_rounds(fold.pow2) + (fold.extra != 0));
    if (fold.extra != 0)
        cost->path_bytes = (acc_bytes + bytes) * (1 + (fold.pow2 - 1.0) / fold.pow2);
}

const struct ddp_coll_alg ddp_alg_allreduce_rhd = {
    .name = "rhd",
    .coll = DDP_ALLREDUCE,
    .summary =
        "messages, recursive halving and doubling: 2 ceil(log2 n) steps, any number of ranks",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = rhd_scratch_bytes,
    .run = rhd_run,
    .path = rhd_path,
};
