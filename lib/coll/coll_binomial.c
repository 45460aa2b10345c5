/* Algorithm "binomial" of broadcast, reduce, gather and scatter. Messages move along the edges of a
 * binomial tree.
 *
 * The tree consists of virtual ranks (pattern.h). The root has virtual rank 0, and a subtree is a
 * range of consecutive virtual ranks. A call takes ceil(log2 n) steps on n ranks.
 *
 * A rank sends to its children one after another, because the farthest leaf would wait longer if
 * all messages were sent at once. The child with the largest subtree comes first. */
#include "coll/coll_p2p.h"

/* Broadcast. A rank receives the message from its parent and sends it to its children. */
static int broadcast_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                         struct ddp_err *err)
{
    (void)scratch;
    const size_t bytes = ddp_coll_array_bytes(args);
    const int n = comm->size, v = ddp_virtual_rank(comm->rank, args->root, n);

    if (v != 0) {
        const int parent = ddp_real_rank(ddp_binomial_parent(v), args->root, n);
        const struct ddp_p2p_move get = {.src = parent, .in = args->recv, .in_bytes = bytes};
        DDP_TRY(ddp_p2p_exchange(comm, &get, err));
    }
    for (int k = ddp_binomial_children(v, n) - 1; k >= 0; k--) {
        const int child = ddp_real_rank(v + (1 << k), args->root, n);
        const struct ddp_p2p_move give = {
            .dst = child, .out = v == 0 ? args->send : args->recv, .out_bytes = bytes};
        DDP_TRY(ddp_p2p_exchange(comm, &give, err));
    }
    if (v == 0)
        ddp_coll_copy(comm, args->recv, args->send, bytes, false);
    return 0;
}

/* Gather and scatter. In a gather, a rank sends the chunks of its subtree to its parent. In a
 * scatter, a rank receives these chunks from its parent. The root has all chunks in rank order in
 * its recv buffer (gather) or send buffer (scatter). If the subtree of a child of the root wraps
 * from the last rank to rank 0, the root and the child exchange the chunks of this subtree as two
 * messages. A rank between the root and the leaves holds the chunks of its subtree in scratch. A
 * leaf uses its send or recv buffer. */
static size_t subtree_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
{
    const int v = ddp_virtual_rank(comm->rank, shape->root, comm->size);
    const int span = ddp_binomial_span(v, comm->size);
    return v == 0 || span == 1 ? 0 : (size_t)span * shape->count * ddp_dtype_size(shape->dtype);
}

/* The messages between v and its parent, which hold the chunks of v's subtree. The second message
 * is empty unless the parent is the root and the subtree wraps. */
struct subtree {
    int peer;
    struct {
        void *data;
        size_t bytes;
    } part[2];
};

/* Returns the messages between rank v of the tree and its parent. `chunks` holds the chunks of v's
 * subtree. */
static struct subtree own_subtree(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                                  int v, const void *chunks)
{
    const int parent = ddp_binomial_parent(v);
    const size_t chunk = ddp_coll_array_bytes(args);
    const struct ddp_wrap wrap = ddp_wrap_of(v, args->root, comm->size);
    const size_t rest = parent == 0 ? (size_t)wrap.after : 0;
    const size_t together = (size_t)(wrap.before + wrap.after) - rest;
    return (struct subtree){
        .peer = ddp_real_rank(parent, args->root, comm->size),
        .part = {{ddp_at(chunks, 0, chunk), together * chunk},
                 {ddp_at(chunks, together, chunk), rest * chunk}},
    };
}

/* Returns the messages between this rank and its child v. `chunks` holds the chunks of this rank's
 * subtree, or all chunks if this rank is the root. */
static struct subtree child_subtree(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                                    int v, const void *chunks)
{
    const int parent = ddp_binomial_parent(v);
    const size_t chunk = ddp_coll_array_bytes(args);
    struct subtree subtree = own_subtree(comm, args, v, chunks);
    subtree.peer = ddp_real_rank(v, args->root, comm->size);
    subtree.part[0].data = ddp_at(chunks, (size_t)(parent == 0 ? subtree.peer : v - parent), chunk);
    subtree.part[1].data = ddp_at(chunks, 0, chunk);
    return subtree;
}

static int send_subtree(struct ddp_comm *comm, const struct subtree *subtree, struct ddp_err *err)
{
    for (int i = 0; i < 2; i++) {
        const struct ddp_p2p_move give = {.dst = subtree->peer,
                                          .out = subtree->part[i].data,
                                          .out_bytes = subtree->part[i].bytes};
        DDP_TRY(ddp_p2p_exchange(comm, &give, err));
    }
    return 0;
}

/* Posts the receives of a subtree, and adds their number to *posted. */
static int post_subtree(struct ddp_comm *comm, const struct subtree *subtree,
                        struct ddp_request *req, int *posted, struct ddp_err *err)
{
    for (int i = 0; i < 2; i++)
        if (subtree->part[i].bytes != 0)
            DDP_TRY(ddp_comm_irecv(comm, subtree->peer, DDP_COLL_TAG, subtree->part[i].data,
                                   subtree->part[i].bytes, &req[(*posted)++], err));
    return 0;
}

/* Receives the chunks of all children's subtrees at the same time. */
static int gather_children(struct ddp_comm *comm, const struct ddp_coll_args *args, int v,
                           void *chunks, struct ddp_err *err)
{
    const int children = ddp_binomial_children(v, comm->size);
    struct ddp_request req[64]; /* enough for 31 children; at most one subtree wraps */
    int posted = 0;

    for (int k = 0; k < children; k++) {
        const struct subtree subtree = child_subtree(comm, args, v + (1 << k), chunks);
        DDP_TRY(post_subtree(comm, &subtree, req, &posted, err));
    }
    return ddp_comm_wait(comm, req, posted, err);
}

static int gather_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                      struct ddp_err *err)
{
    const int v = ddp_virtual_rank(comm->rank, args->root, comm->size);
    const size_t chunk = ddp_coll_array_bytes(args);
    const bool leaf = ddp_binomial_span(v, comm->size) == 1;

    if (v == 0) {
        ddp_coll_copy(comm, ddp_at(args->recv, (size_t)comm->rank, chunk), args->send, chunk,
                      false);
        return gather_children(comm, args, v, args->recv, err);
    }
    const struct subtree own = own_subtree(comm, args, v, leaf ? args->send : scratch);
    if (!leaf) {
        ddp_coll_copy(comm, scratch, args->send, chunk, false);
        DDP_TRY(gather_children(comm, args, v, scratch, err));
    }
    return send_subtree(comm, &own, err);
}

/* The root is the slowest rank. It receives the chunks of all other ranks. */
static void gather_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const double chunk = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    cost->steps = ddp_rounds(ranks);
    cost->path_bytes = (ranks - 1) * chunk;
}

static int scatter_children(struct ddp_comm *comm, const struct ddp_coll_args *args, int v,
                            const void *chunks, struct ddp_err *err)
{
    for (int k = ddp_binomial_children(v, comm->size) - 1; k >= 0; k--) {
        const struct subtree subtree = child_subtree(comm, args, v + (1 << k), chunks);
        DDP_TRY(send_subtree(comm, &subtree, err));
    }
    return 0;
}

static int scatter_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
                       struct ddp_err *err)
{
    const int v = ddp_virtual_rank(comm->rank, args->root, comm->size);
    const size_t chunk = ddp_coll_array_bytes(args);
    const bool leaf = ddp_binomial_span(v, comm->size) == 1;
    struct ddp_request req[2];
    int posted = 0;

    if (v == 0) {
        DDP_TRY(scatter_children(comm, args, v, args->send, err));
        ddp_coll_copy(comm, args->recv, ddp_at(args->send, (size_t)comm->rank, chunk), chunk,
                      false);
        return 0;
    }
    const struct subtree own = own_subtree(comm, args, v, leaf ? args->recv : scratch);
    DDP_TRY(post_subtree(comm, &own, req, &posted, err));
    DDP_TRY(ddp_comm_wait(comm, req, posted, err));
    if (leaf)
        return 0;
    DDP_TRY(scatter_children(comm, args, v, scratch, err));
    ddp_coll_copy(comm, args->recv, scratch, chunk, false);
    return 0;
}

/* Reduce. A rank combines its input with its children's partial sums, the nearest child first, and
 * sends the sum to its parent. Values are therefore combined in the rank order root, root+1, ...,
 * root-1. Only the root uses recv. Narrow floats are rounded once per combine, at most ceil(log2 n)
 * times on the path of a value. Averages are computed as struct ddp_reduction describes. */

/* Returns the size of the landing buffers (coll_p2p.h), which come first in scratch. A rank without
 * children needs none. Partial sums that are not stored in recv follow the landing buffers in
 * scratch. */
static size_t landing_bytes_of(int v, int ranks, size_t bytes)
{
    return ddp_binomial_children(v, ranks) != 0 ? ddp_p2p_landing_bytes(bytes) : 0;
}

static size_t reduce_scratch_bytes(const struct ddp_comm *comm, const struct ddp_coll_shape *shape)
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

/* Combines the array *own with the children's partial sums into the array `sum`, and sets *own to
 * `sum`. On a leaf, *own does not change. */
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

static int reduce_run(struct ddp_comm *comm, const struct ddp_coll_args *args, void *scratch,
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

/* The root is the slowest rank. It receives from its children one after another. */
static void reduce_path(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_reduction reduction = ddp_reduction_of(ranks, shape->dtype, shape->op);
    cost->steps = ddp_rounds(ranks);
    cost->path_bytes = ddp_rounds(ranks) * (double)shape->count * (double)reduction.acc_elem;
}

#define BINOMIAL(symbol, kind, run_, path_, text, ...)                                             \
    const struct ddp_coll_alg ddp_alg_##symbol = {.name = "binomial",                              \
                                                  .coll = kind,                                    \
                                                  .summary = "messages " text,                     \
                                                  .needs = DDP_NEEDS_MESSAGES,                     \
                                                  .run = run_,                                     \
                                                  .path = path_,                                   \
                                                  __VA_ARGS__}
BINOMIAL(broadcast_binomial, DDP_BROADCAST, broadcast_run, ddp_path_log,
         "down a binomial tree: ceil(log2 n) steps; for small messages");
BINOMIAL(reduce_binomial, DDP_REDUCE, reduce_run, reduce_path,
         "up a binomial tree: ceil(log2 n) steps", .scratch_bytes = reduce_scratch_bytes);
BINOMIAL(gather_binomial, DDP_GATHER, gather_run, gather_path,
         "up a binomial tree, longer near the root: ceil(log2 n) steps",
         .scratch_bytes = subtree_scratch_bytes);
BINOMIAL(scatter_binomial, DDP_SCATTER, scatter_run, ddp_path_log,
         "down a binomial tree, shorter near the leaves: ceil(log2 n) steps",
         .scratch_bytes = subtree_scratch_bytes);
