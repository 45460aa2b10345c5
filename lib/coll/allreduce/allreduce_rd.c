/* All-reduce "rd": recursive doubling, in which every step exchanges the whole message.
 *
 * The algorithm works for any number of ranks n. The largest power of two up to n, pow2, is the
 * number of ranks that take part. The first n - pow2 pairs of ranks are *folded* (pattern.h). The
 * even rank of a pair sends its input to the odd rank at the start. It receives the result at the
 * end. At level 0 to log2(pow2)-1, partners at distance 2^level exchange their partial sums, and
 * both partners combine the two partial sums. Compared with "rhd", this takes about half the steps
 * and sends at least log2(pow2)/2 times the bytes. rd is therefore for small messages. Source: R.
 * Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH,
 * IJHPCA 19 (2005), section 4.5.
 *
 * Levels alternate between two buffers, *result* and *spare*. Each level combines from one buffer
 * into the other, so that it does not overwrite data that is still being sent. The last level
 * writes to result.
 *
 * Both partners combine the same two partial sums, the lower rank's first, so all ranks get the
 * same bits. An average is divided once, at the last level. 16-bit floats are rounded once per
 * level, and once more for folded pairs. With more than 2 ranks, an average of 16-bit floats
 * divides each input first (ddp_pre_scales), which rounds once more. Averages of integers are
 * exact, because partial sums are sent in a wider type (coll_acc.h).
 *
 * Cost for S bytes on n ranks: log2(pow2) steps, and 2 more if ranks are folded. S' is the size in
 * the accumulator type, which is S except for averages of integers. A rank sends log2(pow2) S'
 * bytes in fragments of DDP_FRAGMENT_BYTES. The odd rank of a folded pair sends S bytes more. The
 * even rank sends only S' bytes. */
#include "coll/coll_p2p.h"
#include "coll/coll_shm.h"

/* The state of one call on this rank. */
struct rd_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    struct ddp_fold fold;
    int levels, new_rank, divisor;
    enum ddp_dtype wire_dtype;
    void *landing, *spare, *result;
    const void *own; /* this rank's input at first, then its latest partial sums */
};

static int rd_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                       struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "rd", err);
}

/* Scratch holds the landing buffers (coll_p2p.h) and then spare. For averages of integers, result
 * follows. */
static size_t rd_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const size_t bytes = shape->count * ddp_dtype_size(ddp_acc_dtype(shape->dtype, shape->op));
    if (comm->size == 1)
        return 0;
    return ddp_p2p_landing_bytes(bytes) + ddp_round_to_line(bytes) +
           (ddp_has_wider_acc(shape->dtype, shape->op) ? bytes : 0);
}

/* Returns the buffer that a level combines into. For level -1, returns the buffer that level 0 does
 * not write. */
static void *target_of(const struct rd_call *call, int level)
{
    return (call->levels - 1 - level) % 2 == 0 ? call->result : call->spare;
}

static int combine(struct rd_call *call, int partner, size_t out_count, void *sum, int divisor,
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
        .dtype = call->wire_dtype,
        .op = call->args->op,
        .divisor = divisor,
        .landing = call->landing,
    };
    DDP_TRY(ddp_p2p_combine(call->comm, &c, err));
    call->own = sum;
    return 0;
}

/* Sets call->own to the input of the first combine. Converts or divides the input if necessary.
 * Copies it if level 0 would overwrite it. */
static void prepare_input(struct rd_call *call)
{
    const struct ddp_coll_args *args = call->args;
    void *first = target_of(call, -1);

    call->own = args->send;
    if (ddp_has_wider_acc(args->dtype, args->op)) {
        ddp_to_acc(first, args->send, args->count, args->dtype);
        call->own = first;
    } else if (ddp_pre_scales(args->dtype, args->op, call->comm->size)) {
        ddp_coll_divide(call->comm, first, args->send, args->count, args->dtype);
        call->own = first;
        call->divisor = 1;
    } else if (args->send == target_of(call, 0) && call->new_rank >= 0 &&
               !ddp_fold_holds(call->fold, call->comm->rank)) {
        ddp_coll_copy(call->comm, first, args->send, args->count * ddp_dtype_size(args->dtype));
        call->own = first;
    }
}

static int rd_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                  struct ddp_err *err)
{
    const size_t elem = ddp_dtype_size(args->dtype);
    const enum ddp_dtype wire_dtype = ddp_acc_dtype(args->dtype, args->op);
    const size_t acc_bytes = args->count * ddp_dtype_size(wire_dtype);
    const bool wider_acc = ddp_has_wider_acc(args->dtype, args->op);
    struct rd_call call = {
        .comm = comm,
        .args = args,
        .fold = ddp_fold_of(comm->size),
        .divisor = ddp_coll_divisor(comm, args->op),
        .wire_dtype = wire_dtype,
        .landing = scratch,
        .spare = ddp_at(scratch, ddp_p2p_landing_bytes(acc_bytes), 1),
        .result = args->recv,
    };

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, args->count * elem);
        return 0;
    }
    if (wider_acc)
        call.result = ddp_at(call.spare, ddp_round_to_line(acc_bytes), 1);
    call.levels = ddp_rounds(call.fold.pow2);
    call.new_rank = ddp_fold_rank(call.fold, comm->rank);
    prepare_input(&call);
    if (call.new_rank < 0)
        return ddp_p2p_fold_in(comm, args, call.own, err);
    if (ddp_fold_holds(call.fold, comm->rank))
        DDP_TRY(combine(&call, comm->rank - 1, 0, target_of(&call, -1), 1, err));
    for (int level = 0; level < call.levels; level++) {
        const int partner = ddp_fold_real(call.fold, call.new_rank ^ (1 << level));
        const int divisor = level == call.levels - 1 ? call.divisor : 1;
        DDP_TRY(combine(&call, partner, args->count, target_of(&call, level), divisor, err));
    }
    if (wider_acc)
        ddp_from_acc(args->recv, call.result, args->count, args->dtype);
    return ddp_fold_holds(call.fold, comm->rank) ? ddp_p2p_fold_out(comm, args, err) : 0;
}

/* Memory traffic (DDP_COST_MOVE in coll_p2p.h): pow2 ranks move and combine S' bytes at each level.
 * Each of the `extra` folded pairs moves and combines S' bytes at the start and moves S bytes at
 * the end. In place, a rank copies its input first if the number of levels is odd. */
static void rd_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_fold fold = ddp_fold_of(ranks);
    const int levels = ddp_rounds(fold.pow2);
    const size_t bytes = shape->count * ddp_dtype_size(shape->dtype);
    const size_t acc_bytes = shape->count * ddp_dtype_size(ddp_acc_dtype(shape->dtype, shape->op));
    const double both = (double)bytes + (double)acc_bytes;

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = levels + 2.0 * (fold.extra != 0)};
    for (int r = 0; r < ranks; r++) {
        struct ddp_p2p_count c = {0, 0};
        for (int level = 0; level < (ddp_fold_rank(fold, r) < 0 ? 1 : levels); level++)
            ddp_count_fragments(&c, acc_bytes);
        if (ddp_fold_holds(fold, r))
            ddp_count_message(&c, bytes);
        ddp_cost_rank(cost, &c);
    }
    if (fold.extra != 0) /* the start of folding, the levels, the end of folding */
        cost->path_bytes = (1.0 + levels) * (double)acc_bytes + (double)bytes;
    cost->memory_bytes =
        (fold.pow2 * levels + fold.extra) * (DDP_COST_MOVE + DDP_COST_COMBINE) * (double)acc_bytes +
        fold.extra * DDP_COST_MOVE * (double)bytes;
    if (ranks == 1)
        cost->memory_bytes = shape->in_place ? 0 : DDP_COST_COPY * (double)bytes;
    else if (ddp_has_wider_acc(
                 shape->dtype,
                 shape->op)) /* all ranks widen the input, pow2 ranks narrow the result */
        cost->memory_bytes += (ranks + fold.pow2) * both;
    else if (ddp_pre_scales(shape->dtype, shape->op, ranks)) /* all ranks divide their input */
        cost->memory_bytes += ranks * DDP_COST_COPY * (double)bytes;
    else if (shape->in_place && levels % 2 == 1)
        cost->memory_bytes += (fold.pow2 - fold.extra) * DDP_COST_COPY * (double)bytes;
}

const struct ddp_coll_alg ddp_alg_allreduce_rd = {
    .name = "rd",
    .coll = DDP_ALLREDUCE,
    .summary = "messages, recursive doubling: log2(n) steps; for small messages",
    .supports = rd_supports,
    .scratch_bytes = rd_scratch_bytes,
    .run = rd_run,
    .cost = rd_cost,
};
