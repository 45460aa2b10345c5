/* Reduce "binomial": partial sums move up a binomial tree.
 *
 * The tree consists of virtual ranks, counted from the root (pattern.h). A rank combines its input
 * with its children's partial sums, the nearest child first. It sends the sum to its parent. Values
 * are therefore combined in the rank order root, root+1, ..., root-1.
 *
 * Other ranks than the root do not use recv. An average is divided once, in the root's last
 * combine. 16-bit floats are rounded once per combine, at most ceil(log2 n) times on the path of a
 * value. With more than 2 ranks, an average of 16-bit floats divides each input first
 * (ddp_pre_scales), which rounds once more. Averages of integers are exact, because partial sums
 * are sent in a wider type (coll_acc.h).
 *
 * Cost for S bytes on n ranks: ceil(log2 n) steps. S' is the size in the accumulator type, which is
 * S except for averages of integers. Every rank except the root sends S' bytes in fragments of
 * DDP_FRAGMENT_BYTES. Memory traffic (DDP_COST_MOVE in coll_p2p.h): S' bytes move and are combined
 * n-1 times. */
#include "coll/coll_p2p.h"
#include "coll/coll_shm.h"

static int binomial_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                             struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "binomial", err);
}

/* Returns the size of the landing buffers (coll_p2p.h), which come first in scratch. A rank without
 * children needs none. The partial sums follow if recv cannot hold them. */
static size_t landing_bytes_of(int v, int ranks, size_t bytes)
{
    return ddp_binomial_children(v, ranks) != 0 ? ddp_p2p_landing_bytes(bytes) : 0;
}

static size_t binomial_scratch_bytes(const struct ddp_comm *comm,
                                     const struct ddp_coll_shape *shape)
{
    const int v = ddp_virtual_rank(comm->rank, shape->root, comm->size);
    const bool wider_acc = ddp_has_wider_acc(shape->dtype, shape->op);
    const size_t bytes = shape->count * ddp_dtype_size(ddp_acc_dtype(shape->dtype, shape->op));
    const bool leaf = ddp_binomial_children(v, comm->size) == 0;
    const bool pre_scale = ddp_pre_scales(shape->dtype, shape->op, comm->size);

    if (comm->size == 1)
        return 0;
    const bool copies = wider_acc || (v != 0 && (!leaf || pre_scale));
    return landing_bytes_of(v, comm->size, bytes) + (copies ? bytes : 0);
}

/* Combines the children's partial sums with *own into sum, and sets *own to sum. On a leaf, *own
 * does not change. */
static int combine_children(struct ddp_comm *comm, const struct ddp_coll_args *args, int v,
                            const void **own, void *sum, void *landing, struct ddp_err *err)
{
    const int n = comm->size, children = ddp_binomial_children(v, n);
    const bool pre_scale = ddp_pre_scales(args->dtype, args->op, n);

    for (int k = 0; k < children; k++) {
        const bool complete = v == 0 && k == children - 1;
        const struct ddp_p2p_combine c = {
            .src = ddp_real_rank(v + (1 << k), args->root, n),
            .in_count = args->count,
            .own = *own,
            .sum = sum,
            .own_first = true,
            .dtype = ddp_acc_dtype(args->dtype, args->op),
            .op = args->op,
            .divisor = complete && !pre_scale ? ddp_coll_divisor(comm, args->op) : 1,
            .landing = landing,
        };
        DDP_TRY(ddp_p2p_combine(comm, &c, err));
        *own = sum;
    }
    return 0;
}

static int binomial_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                        struct ddp_err *err)
{
    const int n = comm->size, v = ddp_virtual_rank(comm->rank, args->root, n);
    const bool wider_acc = ddp_has_wider_acc(args->dtype, args->op);
    const enum ddp_dtype wire_dtype = ddp_acc_dtype(args->dtype, args->op);
    const void *own = args->send;

    if (n == 1) {
        ddp_coll_copy(comm, args->recv, args->send, args->count * ddp_dtype_size(args->dtype));
        return 0;
    }
    void *spare =
        ddp_at(scratch, landing_bytes_of(v, n, args->count * ddp_dtype_size(wire_dtype)), 1);
    void *sum = v == 0 && !wider_acc ? args->recv : spare;
    if (wider_acc) {
        ddp_to_acc(spare, args->send, args->count, args->dtype);
        own = spare;
    } else if (ddp_pre_scales(args->dtype, args->op, n)) {
        ddp_coll_divide(comm, sum, args->send, args->count, args->dtype);
        own = sum;
    }
    DDP_TRY(combine_children(comm, args, v, &own, sum, scratch, err));
    if (v != 0)
        return ddp_p2p_send_fragments(comm, ddp_real_rank(ddp_binomial_parent(v), args->root, n),
                                      own, args->count, wire_dtype, err);
    if (wider_acc)
        ddp_from_acc(args->recv, sum, args->count, args->dtype);
    return 0;
}

static void binomial_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const size_t acc_elem = ddp_dtype_size(ddp_acc_dtype(shape->dtype, shape->op));
    const double bytes = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const double acc_bytes = (double)shape->count * (double)acc_elem;
    struct ddp_p2p_count c = {0, 0};

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = ddp_rounds(ranks)};
    if (ranks == 1) {
        cost->memory_bytes = shape->in_place ? 0 : DDP_COST_COPY * bytes;
        return;
    }
    ddp_count_fragments(&c, shape->count * acc_elem);
    ddp_cost_rank(cost, &c);
    cost->path_bytes =
        ddp_rounds(ranks) * acc_bytes; /* the root receives from its children one after another */
    cost->memory_bytes = (ranks - 1) * (DDP_COST_MOVE + DDP_COST_COMBINE) * acc_bytes;
    if (ddp_has_wider_acc(shape->dtype,
                          shape->op)) /* all ranks widen their input, the root narrows the result */
        cost->memory_bytes += (ranks + 1) * (bytes + acc_bytes);
    else if (ddp_pre_scales(shape->dtype, shape->op, ranks)) /* all ranks divide their input */
        cost->memory_bytes += ranks * DDP_COST_COPY * bytes;
}

const struct ddp_coll_alg ddp_alg_reduce_binomial = {
    .name = "binomial",
    .coll = DDP_REDUCE,
    .summary = "messages up a binomial tree: log2(n) steps",
    .supports = binomial_supports,
    .scratch_bytes = binomial_scratch_bytes,
    .run = binomial_run,
    .cost = binomial_cost,
};
