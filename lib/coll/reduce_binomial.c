/* Reduce "binomial": partial sums move up a binomial tree.
 *
 * The tree consists of virtual ranks, counted from the root (pattern.h). A rank combines its input
 * with its children's partial sums, the nearest child first. It sends the sum to its parent. Values
 * are therefore combined in the rank order root, root+1, ..., root-1.
 *
 * Other ranks than the root do not use recv. An average is divided once, in the root's last
 * combine. 16-bit floats are rounded once per combine, at most ceil(log2 n) times on the path of a
 * value. With more than 2 ranks, an average of 16-bit floats divides each input first
 * (struct ddp_reduction), which rounds once more. Averages of integers are exact, because partial
 * sums are sent in a wider type (coll_p2p.h).
 *
 * Cost for S bytes on n ranks: ceil(log2 n) steps. S' is the size in the accumulator type, which is
 * S except for averages of integers. Every rank except the root sends S' bytes in fragments of
 * DDP_FRAGMENT_BYTES. Memory traffic (DDP_COST_MOVE in coll_p2p.h): S' bytes move and are combined
 * n-1 times. */
#include "coll/coll_p2p.h"

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
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, shape->dtype, shape->op);
    const size_t bytes = shape->count * reduction.acc_elem;
    const bool leaf = ddp_binomial_children(v, comm->size) == 0;

    if (comm->size == 1)
        return 0;
    const bool copies = reduction.wider_acc || (v != 0 && (!leaf || reduction.pre_scale));
    return landing_bytes_of(v, comm->size, bytes) + (copies ? bytes : 0);
}

/* Combines the children's partial sums with *own into sum, and sets *own to sum. On a leaf, *own
 * does not change. */
static int combine_children(struct ddp_comm *comm, const struct ddp_coll_args *args,
                            const struct ddp_reduction *reduction, int v, const void **own,
                            void *sum, struct ddp_err *err)
{
    const int n = comm->size, children = ddp_binomial_children(v, n);

    for (int k = 0; k < children; k++) {
        const struct ddp_p2p_combine c = {
            .src = ddp_real_rank(v + (1 << k), args->root, n),
            .in_count = args->count,
            .own = *own,
            .sum = sum,
            .own_first = true,
            .last = v == 0 && k == children - 1,
            .reduction = reduction,
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
    struct ddp_reduction reduction = ddp_reduction_of(n, args->dtype, args->op);

    if (n == 1) {
        ddp_coll_copy(comm, args->recv, args->send, ddp_coll_array_bytes(args), false);
        return 0;
    }
    reduction.landing = scratch;
    void *spare = ddp_at(scratch, landing_bytes_of(v, n, args->count * reduction.acc_elem), 1);
    void *sum = v == 0 && !reduction.wider_acc ? args->recv : spare;
    const void *own = ddp_reduction_input(comm, &reduction, sum, args->send, args->count);
    DDP_TRY(combine_children(comm, args, &reduction, v, &own, sum, err));
    if (v != 0) {
        const int parent = ddp_real_rank(ddp_binomial_parent(v), args->root, n);
        return ddp_p2p_send_fragments(comm, &reduction, parent, own, args->count, err);
    }
    ddp_reduction_output(comm, &reduction, args->recv, sum, args->count);
    return 0;
}

/* The root receives from its children one after another. */
static void binomial_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_reduction reduction = ddp_reduction_of(ranks, shape->dtype, shape->op);
    cost->steps = ddp_rounds(ranks);
    cost->path_bytes = ddp_rounds(ranks) * (double)shape->count * (double)reduction.acc_elem;
}

const struct ddp_coll_alg ddp_alg_reduce_binomial = {
    .name = "binomial",
    .coll = DDP_REDUCE,
    .summary = "messages up a binomial tree: log2(n) steps",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = binomial_scratch_bytes,
    .run = binomial_run,
    .path = binomial_path,
};
