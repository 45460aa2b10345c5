/* All-reduce "tree": fragments move up and down one binary tree at the same time.
 *
 * Rank 0 is the root, and the children of rank v are 2v+1 and 2v+2 (pattern.h). The message is cut
 * into *fragments*. *Up*: a rank combines a fragment of its input with its children's partial sums,
 * in the order own input, first child, second child. It sends the sum to its parent. The sum at the
 * root is complete. *Down*: a rank receives the complete fragment from its parent and sends it to
 * its children.
 *
 * The fragments form a pipeline. In step k, a rank at depth d does up(k) and then down(k - 2d). If
 * all ranks run at the same speed, a rank does step k one step before its parent does. When the
 * rank needs the result of fragment k - 2d, the fragment has therefore gone up to the root, and the
 * result has come down to the rank's parent. Messages move in both directions at the same time.
 * Source: the pipelined tree of P. Sanders, J. Speck, J. L. Traff, Two-tree algorithms for full
 * bandwidth broadcast, reduction and scan, Parallel Computing 35 (2009), section 2, with one tree.
 *
 * Only the root computes the result, so all ranks get the same bits. Averages are divided at the
 * root, except for averages of narrow floats over more than 2 ranks. For these averages, each input
 * is divided first (struct ddp_reduction), which adds one rounding. Narrow floats are rounded once
 * per combine (of up to three values), at most floor(log2 n) times on the path of a value. Averages
 * of integers of at most 32 bits are exact, because partial sums are sent in a wider type
 * (coll_p2p.h).
 *
 * Cost for S bytes in m fragments on n ranks, where depth = floor(log2 n): 2 depth + m - 1 steps.
 * S' is the size of the message in the accumulator type. It equals S except for averages of
 * integers of at most 32 bits. A rank sends S' bytes to its parent and S bytes to each child, each
 * in m messages. Memory traffic: messages move S' + S bytes n-1 times (DDP_COST_MOVE in
 * coll_p2p.h). A rank with children also reads its own and its children's S' bytes, and writes S'
 * bytes. */
#include "coll/coll_p2p.h"

/* Bytes of a fragment in the accumulator type. The size is chosen for shared memory, although Open
 * MPI is faster with larger fragments (results/notes/collectives.md). */
#define FRAGMENT_BYTES ((size_t)64 << 10)
/* Number of sends to the parent that may be in progress. It must exceed the largest lag. The lag of
 * a rank is twice its depth, and at most 60. */
#define UP_OPEN 64
/* Number of sends to a child that may be in progress. */
#define DOWN_OPEN 4

/* The state of one call on this rank. */
struct tree_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    struct ddp_reduction reduction;
    /* `fragment`: elements of every fragment except the last. `fragments`: number of fragments.
     * `lag`: twice the rank's depth in the tree. */
    size_t elem, acc_elem, fragment, fragments;
    int parent, first_child, children, lag;
    /* `sum` [count]: partial sums in the accumulator type, stored in recv, or in scratch if
     * reduction.wider_acc is set. `landing`: two buffers for each child. */
    unsigned char *sum, *landing;
    /* up_recv[child] and down_recv each hold one request for even fragments and one for odd
     * fragments. */
    struct ddp_request up_recv[2][2], up_send[UP_OPEN];
    struct ddp_request down_recv[2], down_send[2][DOWN_OPEN];
};

/* Returns the number of elements of every fragment except the last. */
static size_t fragment_elements(const struct ddp_reduction *reduction)
{
    return FRAGMENT_BYTES / reduction->acc_elem;
}

static size_t fragment_count_of(size_t count, const struct ddp_reduction *reduction)
{
    const size_t fragment = fragment_elements(reduction);
    return count / fragment + (count % fragment != 0);
}

/* Scratch holds two *landing buffers* for each child, which receive fragments. For averages of
 * integers of at most 32 bits, the message in the accumulator type follows. */
static size_t tree_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const int children = ddp_binary_children(comm->rank, comm->size);
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, shape->dtype, shape->op);
    if (comm->size == 1)
        return 0;
    return 2 * (size_t)children * FRAGMENT_BYTES +
           (reduction.wider_acc ? shape->count * reduction.acc_elem : 0);
}

static size_t elements(const struct tree_call *call, size_t k)
{
    return DDP_MIN(call->fragment, call->args->count - k * call->fragment);
}

static void *landing_of(const struct tree_call *call, int child, size_t k)
{
    return call->landing + ((size_t)child * 2 + k % 2) * FRAGMENT_BYTES;
}

static int post_up(struct tree_call *call, int child, size_t k, struct ddp_err *err)
{
    return ddp_comm_irecv(call->comm, call->first_child + child, DDP_COLL_TAG,
                          landing_of(call, child, k), elements(call, k) * call->acc_elem,
                          &call->up_recv[child][k % 2], err);
}

/* Combines fragment k of this rank (`own`) and of its children into `sum`. */
static int combine(struct tree_call *call, size_t k, const void *own, void *sum,
                   struct ddp_err *err)
{
    const void *src[3] = {own};

    for (int child = 0; child < call->children; child++) {
        DDP_TRY(ddp_comm_wait(call->comm, &call->up_recv[child][k % 2], 1, err));
        src[1 + child] = landing_of(call, child, k);
    }
    ddp_reduction_combine(call->comm, &call->reduction, sum, src, 1 + call->children,
                          elements(call, k), call->parent < 0);
    for (int child = 0; child < call->children && k + 2 < call->fragments; child++)
        DDP_TRY(post_up(call, child, k + 2, err));
    return 0;
}

static int up(struct tree_call *call, size_t k, struct ddp_err *err)
{
    const size_t at = k * call->fragment, count = elements(call, k);
    void *sum = ddp_at(call->sum, at, call->acc_elem);
    const void *own = ddp_reduction_input(call->comm, &call->reduction, sum,
                                          ddp_at(call->args->send, at, call->elem), count);

    if (call->children != 0) {
        DDP_TRY(combine(call, k, own, sum, err));
        own = sum;
    }
    /* The last send with this request is done, because post_down has waited for this send. */
    if (call->parent >= 0)
        return ddp_comm_isend(call->comm, call->parent, DDP_COLL_TAG, own, count * call->acc_elem,
                              &call->up_send[k % UP_OPEN], err);
    ddp_reduction_output(call->comm, &call->reduction, ddp_at(call->args->recv, at, call->elem),
                         sum, count);
    return 0;
}

/* Posts the receive of the complete fragment k. Waits first until the partial sum in this part of
 * recv has been sent, because the result overwrites it. */
static int post_down(struct tree_call *call, size_t k, struct ddp_err *err)
{
    DDP_TRY(ddp_comm_wait(call->comm, &call->up_send[k % UP_OPEN], 1, err));
    return ddp_comm_irecv(call->comm, call->parent, DDP_COLL_TAG,
                          ddp_at(call->args->recv, k * call->fragment, call->elem),
                          elements(call, k) * call->elem, &call->down_recv[k % 2], err);
}

/* Posts the receive of fragment k + 1 before it waits for fragment k. The early receive is safe,
 * because a rank with a parent has a lag of at least 2 and has therefore sent its own fragment k +
 * 1 to the parent already. */
static int down(struct tree_call *call, size_t k, struct ddp_err *err)
{
    if (call->parent >= 0) {
        if (k == 0)
            DDP_TRY(post_down(call, k, err));
        if (k + 1 < call->fragments)
            DDP_TRY(post_down(call, k + 1, err));
        DDP_TRY(ddp_comm_wait(call->comm, &call->down_recv[k % 2], 1, err));
    }
    for (int child = 0; child < call->children; child++) {
        struct ddp_request *req = &call->down_send[child][k % DOWN_OPEN];
        DDP_TRY(ddp_comm_wait(call->comm, req, 1, err));
        DDP_TRY(ddp_comm_isend(call->comm, call->first_child + child, DDP_COLL_TAG,
                               ddp_at(call->args->recv, k * call->fragment, call->elem),
                               elements(call, k) * call->elem, req, err));
    }
    return 0;
}

/* The pipeline cannot deadlock. Suppose that some ranks wait forever, and let t be the earliest
 * step in which a rank does. Consider a rank at depth d that waits forever in step t. In up(t) a
 * rank waits only until its children have done up(t). A leaf waits for no rank, so up(t) ends on
 * all ranks, level by level. In down(t - 2d) the rank waits for a fragment that its parent sends in
 * step t - 2. The rank also waits for its earlier sends. Its parent and children post the receives
 * of these sends before step t. Steps before t end on all ranks, so the rank does not wait
 * forever. */
static int pipeline(struct tree_call *call, struct ddp_err *err)
{
    for (int child = 0; child < call->children; child++)
        for (size_t k = 0; k < DDP_MIN(call->fragments, (size_t)2); k++)
            DDP_TRY(post_up(call, child, k, err));
    for (size_t t = 0; t < call->fragments + (size_t)call->lag; t++) {
        if (t < call->fragments)
            DDP_TRY(up(call, t, err));
        if (t >= (size_t)call->lag)
            DDP_TRY(down(call, t - (size_t)call->lag, err));
    }
    for (int child = 0; child < call->children; child++)
        DDP_TRY(ddp_comm_wait(call->comm, call->down_send[child], DOWN_OPEN, err));
    return 0;
}

static int tree_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                    struct ddp_err *err)
{
    const struct ddp_reduction reduction = ddp_reduction_of(comm->size, args->dtype, args->op);
    struct tree_call call = {
        .comm = comm,
        .args = args,
        .reduction = reduction,
        .elem = reduction.elem,
        .acc_elem = reduction.acc_elem,
        .fragment = fragment_elements(&reduction),
        .fragments = fragment_count_of(args->count, &reduction),
        .parent = ddp_binary_parent(comm->rank),
        .first_child = 2 * comm->rank + 1,
        .children = ddp_binary_children(comm->rank, comm->size),
        .lag = 2 * ddp_binary_depth(comm->rank + 1),
        .sum = args->recv,
        .landing = scratch,
    };

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, ddp_coll_array_bytes(args), false);
        return 0;
    }
    if (reduction.wider_acc)
        call.sum = call.landing + 2 * (size_t)call.children * FRAGMENT_BYTES;
    return pipeline(&call, err);
}

/* If there are at least 5 ranks, the slowest rank is rank 1, which has a parent and two children.
 * In each step it receives two partial sums, one after the other, and then sends two results. If
 * the message is a single fragment, it moves in only one direction at a time. */
static void tree_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_reduction reduction = ddp_reduction_of(ranks, shape->dtype, shape->op);
    const double fragments = DDP_MAX((double)fragment_count_of(shape->count, &reduction), 1);
    const double bytes = (double)shape->count * (double)reduction.elem;
    const double acc_bytes = (double)shape->count * (double)reduction.acc_elem;
    const double fan = DDP_MIN(ranks - 1, 2);

    if (ranks == 1)
        return;
    cost->steps = 2 * ddp_binary_depth(ranks) + fragments - 1;
    cost->path_bytes =
        (acc_bytes + bytes) / 2 / fragments * cost->steps * (ranks < 5 || fragments <= 1 ? fan : 4);
}

const struct ddp_coll_alg ddp_alg_allreduce_tree = {
    .name = "tree",
    .coll = DDP_ALLREDUCE,
    .summary =
        "messages up and down a binary tree at the same time, in fragments: few steps, pipelined",
    .needs = DDP_NEEDS_MESSAGES,
    .scratch_bytes = tree_scratch_bytes,
    .run = tree_run,
    .path = tree_path,
};
