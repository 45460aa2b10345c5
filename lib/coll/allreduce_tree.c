/* All-reduce "tree": up and down one binary tree at once, in segments.
 *
 * Rank 0 is the root, rank v's children are 2v+1 and 2v+2 (pattern.h). The message is cut into
 * *segments*. *Up*: a rank combines a segment of its input with its children's partial sums, in the
 * order own, first child, second child, and sends it to its parent; the root's is complete. *Down*:
 * a rank gets the complete segment from its parent and sends it to its children.
 * Software pipeline: a rank at depth d does up(k), down(k - 2d): by then segment k - 2d has been
 * to the root and back, if all ranks go on alike. So both directions are always busy, and a message
 * takes about as long as its segments, plus twice the depth.
 * Source: the pipelined tree of P. Sanders, J. Speck, J. L. Traff, Two-tree algorithms for full
 * bandwidth broadcast, reduction and scan, Parallel Computing 35 (2009), section 2, with one tree.
 *
 * An element is computed by one chain of ranks and completed at the root, so all ranks get the same
 * bits. avg divides once, at the root. 16-bit floats are rounded once per combine (of up to three
 * values), at most depth times on the way of a value; their averages divide each input first (more
 * than 2 ranks), which rounds once more, so no partial sum exceeds the inputs. Averages of integers
 * are exact: they go up in a wider type (coll_wide.h).
 *
 * Cost, S bytes, n ranks, m segments, depth = floor(log2 n), S' = S but for averages of integers:
 * 2 depth + m - 1 steps; a rank sends S' up and S to each child, each in m messages: inner ranks
 * S' + 2S. Memory, all ranks: n-1 times S' + S moves; inner ranks read own and their children's S',
 * and write it. */
#include "coll/coll_p2p.h"
#include "coll/coll_shm.h"

/* Bytes of a segment as it goes up. 2 ranks on 2 cores, in place, medians in microseconds:
 *                       16 KiB  32    64    128   256
 *   shm, 1 MiB          174     143   146   147   173
 *   shm, 64 MiB         12100   11500 12700 12100 14200
 *   Open MPI, 1 MiB     236     198   175   163   164
 *   Open MPI, 64 MiB    21600   16700 14100 12400 12200 */
#define SEGMENT_BYTES ((size_t)64 << 10)
/* Sends up that may be open: more than the largest lag, twice a depth below 31. */
#define UP_OPEN 64
/* Sends down to a child that may be open. */
#define DOWN_OPEN 4

/* One call. segment: elements of all but the last. sum: [count] of the travelling type, where
 * partial sums are made: recv, or scratch when averages of integers are widened.
 * up_recv, landing: of each child, by turns. down_recv: of even and odd segments. */
struct tree_call {
    struct ddp_comm *comm;
    const struct ddp_coll_args *args;
    enum ddp_dtype travels;
    size_t elem, wide_elem, segment, segments;
    bool wide, divides_first;
    int parent, first_child, children, lag, divisor;
    unsigned char *sum, *landing;
    struct ddp_request up_recv[2][2], up_send[UP_OPEN];
    struct ddp_request down_recv[2], down_send[2][DOWN_OPEN];
};

static int tree_supports(const struct ddp_comm *comm, const struct ddp_coll_shape *shape,
                         struct ddp_err *err)
{
    (void)shape;
    return ddp_coll_needs_p2p(comm, "tree", err);
}

static size_t segment_elements(enum ddp_dtype dtype, enum ddp_op op)
{
    return SEGMENT_BYTES / ddp_dtype_size(ddp_wide_dtype(dtype, op));
}

static size_t segment_count_of(size_t count, enum ddp_dtype dtype, enum ddp_op op)
{
    const size_t segment = segment_elements(dtype, op);
    return count / segment + (count % segment != 0);
}

/* Two landing places a child; then the widened message. */
static size_t tree_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const int children = ddp_binary_children(comm->rank, comm->size);
    const size_t wide_elem = ddp_dtype_size(ddp_wide_dtype(shape->dtype, shape->op));
    if (comm->size == 1)
        return 0;
    return 2 * (size_t)children * SEGMENT_BYTES +
           (ddp_is_wide(shape->dtype, shape->op) ? shape->count * wide_elem : 0);
}

static size_t elements(const struct tree_call *call, size_t k)
{
    return DDP_MIN(call->segment, call->args->count - k * call->segment);
}

static void *landing_of(const struct tree_call *call, int child, size_t k)
{
    return call->landing + ((size_t)child * 2 + k % 2) * SEGMENT_BYTES;
}

static int post_up(struct tree_call *call, int child, size_t k, struct ddp_err *err)
{
    return ddp_comm_irecv(call->comm, call->first_child + child, DDP_COLL_TAG,
                          landing_of(call, child, k), elements(call, k) * call->wide_elem,
                          &call->up_recv[child][k % 2], err);
}

/* Own segment k with the children's, into sum. */
static int combine(struct tree_call *call, size_t k, const void *own, void *sum,
                   struct ddp_err *err)
{
    const void *src[3] = {own};

    for (int child = 0; child < call->children; child++) {
        DDP_TRY(ddp_comm_wait(call->comm, &call->up_recv[child][k % 2], 1, err));
        src[1 + child] = landing_of(call, child, k);
    }
    const struct ddp_reduce reduce = {
        .dst = &sum,
        .dst_count = 1,
        .src = src,
        .src_count = 1 + call->children,
        .count = elements(call, k),
        .dtype = call->travels,
        .op = call->args->op,
        .divisor = call->parent < 0 ? call->divisor : 1,
    };
    call->comm->device->reduce(&reduce);
    for (int child = 0; child < call->children && k + 2 < call->segments; child++)
        DDP_TRY(post_up(call, child, k + 2, err));
    return 0;
}

static int up(struct tree_call *call, size_t k, struct ddp_err *err)
{
    const size_t at = k * call->segment, count = elements(call, k);
    const void *own = ddp_at(call->args->send, at, call->elem);
    void *sum = ddp_at(call->sum, at, call->wide_elem);

    if (call->wide) {
        ddp_widen(sum, own, count, call->args->dtype);
        own = sum;
    } else if (call->divides_first) {
        ddp_coll_divide(call->comm, sum, own, count, call->args->dtype);
        own = sum;
    }
    if (call->children != 0) {
        DDP_TRY(combine(call, k, own, sum, err));
        own = sum;
    }
    if (call->parent >= 0) /* the request's last send was waited for in post_down */
        return ddp_comm_isend(call->comm, call->parent, DDP_COLL_TAG, own, count * call->wide_elem,
                              &call->up_send[k % UP_OPEN], err);
    if (call->wide)
        ddp_narrow(ddp_at(call->args->recv, at, call->elem), sum, count, call->args->dtype);
    return 0;
}

/* What went up from there must have gone before the result takes its place in recv. */
static int post_down(struct tree_call *call, size_t k, struct ddp_err *err)
{
    DDP_TRY(ddp_comm_wait(call->comm, &call->up_send[k % UP_OPEN], 1, err));
    return ddp_comm_irecv(call->comm, call->parent, DDP_COLL_TAG,
                          ddp_at(call->args->recv, k * call->segment, call->elem),
                          elements(call, k) * call->elem, &call->down_recv[k % 2], err);
}

/* The next receive is posted before this one is waited for: the lag of a rank with a parent is at
 * least 2, so segment k + 1 has gone up. */
static int down(struct tree_call *call, size_t k, struct ddp_err *err)
{
    if (call->parent >= 0) {
        if (k == 0)
            DDP_TRY(post_down(call, k, err));
        if (k + 1 < call->segments)
            DDP_TRY(post_down(call, k + 1, err));
        DDP_TRY(ddp_comm_wait(call->comm, &call->down_recv[k % 2], 1, err));
    }
    for (int child = 0; child < call->children; child++) {
        struct ddp_request *req = &call->down_send[child][k % DOWN_OPEN];
        DDP_TRY(ddp_comm_wait(call->comm, req, 1, err));
        DDP_TRY(ddp_comm_isend(call->comm, call->first_child + child, DDP_COLL_TAG,
                               ddp_at(call->args->recv, k * call->segment, call->elem),
                               elements(call, k) * call->elem, req, err));
    }
    return 0;
}

/* Never a deadlock: look at a rank that waits in the earliest step, t. Its children have done
 * up(t), or are at step t and wait only below themselves; its parent, at depth d - 1, sent what
 * down(t - 2d) waits for in its own step t - 2. */
static int pipeline(struct tree_call *call, struct ddp_err *err)
{
    for (int child = 0; child < call->children; child++)
        for (size_t k = 0; k < DDP_MIN(call->segments, (size_t)2); k++)
            DDP_TRY(post_up(call, child, k, err));
    for (size_t t = 0; t < call->segments + (size_t)call->lag; t++) {
        if (t < call->segments)
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
    struct tree_call call = {
        .comm = comm,
        .args = args,
        .travels = ddp_wide_dtype(args->dtype, args->op),
        .elem = ddp_dtype_size(args->dtype),
        .segment = segment_elements(args->dtype, args->op),
        .segments = segment_count_of(args->count, args->dtype, args->op),
        .wide = ddp_is_wide(args->dtype, args->op),
        .parent = ddp_binary_parent(comm->rank),
        .first_child = 2 * comm->rank + 1,
        .children = ddp_binary_children(comm->rank, comm->size),
        .divides_first = ddp_divides_first(args->dtype, args->op, comm->size),
        .lag = 2 * ddp_binary_depth(comm->rank + 1),
        .sum = args->recv,
        .landing = scratch,
    };

    if (comm->size == 1) {
        ddp_coll_copy(comm, args->recv, args->send, args->count * call.elem);
        return 0;
    }
    call.divisor = call.divides_first ? 1 : ddp_coll_divisor(comm, args->op);
    call.wide_elem = ddp_dtype_size(call.travels);
    if (call.wide)
        call.sum = call.landing + 2 * (size_t)call.children * SEGMENT_BYTES;
    return pipeline(&call, err);
}

static void tree_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double segments = (double)segment_count_of(shape->count, shape->dtype, shape->op);
    const size_t wide_elem = ddp_dtype_size(ddp_wide_dtype(shape->dtype, shape->op));
    const double bytes = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const double wide_bytes = (double)shape->count * (double)wide_elem;

    *cost = (struct ddp_coll_cost){.modelled = true};
    if (ranks == 1) {
        cost->memory_bytes = shape->in_place ? 0 : DDP_COST_COPY * bytes;
        return;
    }
    cost->steps = 2 * ddp_binary_depth(ranks) + DDP_MAX(segments, 1) - 1;
    /* A step takes as long as rank 1's. From 5 ranks up that has a parent and two children: it
     * waits for two sums, then gives two results. One segment alone is on its way up, or down. */
    const double fan = DDP_MIN(ranks - 1, 2);
    cost->path_bytes = (wide_bytes + bytes) / 2 / DDP_MAX(segments, 1) * cost->steps *
                       (ranks < 5 || segments <= 1 ? fan : 4);
    cost->memory_bytes = (ranks - 1) * DDP_COST_MOVE * (wide_bytes + bytes);
    for (int v = 0; v < ranks; v++) {
        const int children = ddp_binary_children(v, ranks), links = (v != 0) + children;
        const struct ddp_p2p_count c = {links * segments,
                                        (v != 0 ? wide_bytes : 0) + children * bytes};
        ddp_cost_rank(cost, &c);
        cost->memory_bytes += children != 0 ? (children + 2) * wide_bytes : 0;
    }
    if (ddp_is_wide(shape->dtype, shape->op)) /* every rank widens, the root narrows */
        cost->memory_bytes += (ranks + 1) * (bytes + wide_bytes);
    else if (ddp_divides_first(shape->dtype, shape->op, ranks)) /* every rank divides all */
        cost->memory_bytes += ranks * DDP_COST_COPY * bytes;
}

const struct ddp_coll_alg ddp_alg_allreduce_tree = {
    .name = "tree",
    .coll = DDP_ALLREDUCE,
    .summary = "messages up and down a binary tree at once, in segments: few steps, pipelined",
    .supports = tree_supports,
    .scratch_bytes = tree_scratch_bytes,
    .run = tree_run,
    .cost = tree_cost,
};
