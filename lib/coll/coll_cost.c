/* The cost of a call. The cost of an algorithm with DDP_COST_COUNTED comes from running the
 * algorithm once per rank on a communicator that counts messages and moves no data. Algorithms that
 * use flags in shared memory cannot run on this communicator. Therefore cost_shared computes the
 * cost of "flat", "direct", "staged" and "self". */
#include "coll/coll_p2p.h"
#include "coll/coll_split.h"

static int count_send(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                      struct ddp_request *req, struct ddp_err *err)
{
    (void)dst, (void)tag, (void)buf, (void)req, (void)err;
    return ddp_coll_counts(comm, DDP_COST_MOVE * (double)bytes) ? 0 : DDP_EINTERNAL;
}

static int count_recv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                      struct ddp_request *req, struct ddp_err *err)
{
    (void)comm, (void)src, (void)tag, (void)buf, (void)bytes, (void)req, (void)err;
    return 0;
}

static int count_test(struct ddp_comm *comm, struct ddp_request *req, bool *done,
                      struct ddp_err *err)
{
    (void)comm, (void)req, (void)err;
    *done = true;
    return 0;
}

const struct ddp_backend ddp_backend_counting = {
    .name = "counting",
    .summary = "counts messages and memory traffic",
    .caps = DDP_CAP_P2P,
    .isend = count_send,
    .irecv = count_recv,
    .test = count_test,
};

/* Returns the arguments of a rank. No code accesses the arrays, so these addresses need no memory.
 * They only show whether the call is in place. */
static struct ddp_coll_args args_of(const struct ddp_coll_shape *shape, int rank)
{
    unsigned char *const a = (unsigned char *)((uintptr_t)1 << 44);
    unsigned char *const b = (unsigned char *)((uintptr_t)1 << 45);
    const size_t own = (size_t)rank * shape->count * ddp_dtype_size(shape->dtype);
    const bool send_inside = shape->coll == DDP_ALL_GATHER || shape->coll == DDP_GATHER;
    const bool recv_inside = shape->coll == DDP_REDUCE_SCATTER || shape->coll == DDP_SCATTER;
    return (struct ddp_coll_args){
        .coll = shape->coll,
        .send = !shape->in_place ? a
                : send_inside    ? b + own
                                 : b,
        .recv = shape->in_place && recv_inside ? b + own : b,
        .count = shape->count,
        .dtype = shape->dtype,
        .op = shape->op,
        .root = shape->root,
        .split = shape->split,
    };
}

/* Counts the messages and bytes of all ranks. With more than ALL ranks, counts only the first ENDS
 * and the last ENDS ranks. In rings and pairwise exchanges, the other ranks send as much as these
 * ranks, or a few bytes less. In a tree, another rank may send more, so the counts may be too
 * small. */
static void count(const struct ddp_coll_alg *alg, int ranks, const struct ddp_coll_shape *shape,
                  struct ddp_coll_cost *cost)
{
    enum { ALL = 256, ENDS = 8 };
    void *const scratch = (void *)((uintptr_t)1 << 46);
    const int left_out = ranks > ALL ? ranks - 2 * ENDS : 0;

    for (int i = 0; i < ranks - left_out; i++) {
        const int rank = i < ENDS ? i : i + left_out;
        struct ddp_comm comm = {
            .backend = &ddp_backend_counting,
            .state = &cost->memory_bytes,
            .rank = rank,
            .size = ranks,
            .rank_info = {.rank = DDP_FAULT_NOBODY},
        };
        const struct ddp_coll_args args = args_of(shape, rank);
        if (alg->run(&comm, &args, scratch, NULL) != 0)
            return;
        cost->messages = DDP_MAX(cost->messages, (double)comm.wire_messages);
        cost->sent_bytes = DDP_MAX(cost->sent_bytes, (double)comm.wire_bytes);
    }
    cost->memory_bytes *= (double)ranks / (ranks - left_out);
}

/* Returns the number of chunks of shape->count elements that all ranks read and write when they
 * copy or combine data into their results. In place, a rank does not copy its own chunk. */
static double chunks_taken(enum ddp_coll coll, double n, bool in_place)
{
    const double own = in_place ? 0 : 1;
    switch (coll) {
    case DDP_REDUCE_SCATTER:
    case DDP_REDUCE_SCATTER_V: /* if all parts are equal */
        return n * (n + 1);
    case DDP_REDUCE:
        return n + 1;
    case DDP_ALL_GATHER:
    case DDP_ALL_TO_ALL:
    case DDP_ALL_TO_ALL_V:
    case DDP_ALL_GATHER_V:
        return 2 * n * (n - 1 + own);
    case DDP_BROADCAST:
    case DDP_GATHER:
    case DDP_SCATTER:
        return 2 * (n - 1 + own);
    case DDP_BARRIER:
        return 0;
    default: /* send-recv, and all-reduce if each rank combines 1/n of the elements */
        return 2 * n;
    }
}

/* Returns the number of chunks that all ranks copy to shared memory. If `own` is true, this number
 * includes the chunks that ranks copy for themselves. */
static double chunks_published(enum ddp_coll coll, double n, bool own)
{
    const bool personal = coll == DDP_REDUCE_SCATTER || coll == DDP_ALL_TO_ALL ||
                          coll == DDP_ALL_TO_ALL_V || coll == DDP_REDUCE_SCATTER_V ||
                          coll == DDP_SCATTER;
    const double sources = coll == DDP_BROADCAST || coll == DDP_SCATTER ? 1
                           : coll == DDP_REDUCE || coll == DDP_GATHER   ? n - !own
                                                                        : n;
    return (personal ? n - !own : 1) * sources;
}

/* Returns the bytes that all ranks read and write in a call with a split table. Each rank reads and
 * writes every part that it receives. In a reduce-scatter-v, however, a rank combines the parts
 * that it receives and writes only one part. With "flat" all parts, and with "staged" the parts for
 * other ranks, are also copied to shared memory. */
static double split_memory_bytes(enum ddp_cost_model model, int ranks,
                                 const struct ddp_coll_shape *shape)
{
    double all, own, published = 0;
    ddp_split_sum(shape, ranks, &all, &own);
    const double written = ddp_coll_reduces(shape->coll) ? own : all;
    if (shape->coll == DDP_ALL_GATHER_V) /* one copy serves all ranks */
        published = model == DDP_COST_FLAT || model == DDP_COST_STAGED ? own : 0;
    else if (model == DDP_COST_FLAT || model == DDP_COST_STAGED)
        published = model == DDP_COST_FLAT ? all : all - own;
    return (all + written + 2 * published) * (double)ddp_dtype_size(shape->dtype);
}

/* With "flat" and "staged", ranks copy the data to shared memory, and other ranks read the copy.
 * With "direct", ranks read the data in the send buffers. All-reduce has formulas of its own for
 * flat and staged. With flat, every rank combines all data. With staged, each rank copies all
 * chunks except its own to shared memory, combines its own chunk into two places, and copies the
 * results of the other chunks. */
static void cost_shared(enum ddp_cost_model model, int ranks, const struct ddp_coll_shape *shape,
                        struct ddp_coll_cost *cost)
{
    const double chunk = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const double n = model == DDP_COST_SELF ? 1 : ranks;
    const bool allreduce = shape->coll == DDP_ALLREDUCE;
    double chunks = chunks_taken(shape->coll, n, shape->in_place);

    if (model == DDP_COST_FLAT) {
        cost->steps = 1;
        chunks = (allreduce ? n * (n + 1) : chunks) + 2 * chunks_published(shape->coll, n, true);
    } else if (model == DDP_COST_DIRECT) {
        cost->steps = 2;
    } else if (model == DDP_COST_STAGED && allreduce) {
        cost->steps = 2;
        chunks = ranks == 1 ? 2 : 5 * n - 2;
    } else if (model == DDP_COST_STAGED && ranks > 1) {
        cost->steps = 3;
        chunks += 2 * chunks_published(shape->coll, n, false);
    } else if (shape->in_place) { /* one rank */
        chunks = 0;
    }
    cost->memory_bytes = shape->coll == DDP_BARRIER ? 0 : chunks * chunk;
    if (shape->split != NULL)
        cost->memory_bytes = split_memory_bytes(model, ranks, shape);
}

void ddp_coll_cost_of(const struct ddp_coll_alg *alg, int ranks, const struct ddp_coll_shape *shape,
                      struct ddp_coll_cost *cost)
{
    *cost = (struct ddp_coll_cost){.modelled = alg->cost_model != DDP_COST_UNKNOWN};
    switch (alg->cost_model) {
    case DDP_COST_UNKNOWN:
        break;
    case DDP_COST_COUNTED:
        alg->path(ranks, shape, cost);
        if (!ddp_coll_is_idle(shape->coll, shape->count))
            count(alg, ranks, shape, cost);
        break;
    case DDP_COST_FORMULA:
        alg->path(ranks, shape, cost);
        break;
    default:
        cost_shared(alg->cost_model, ranks, shape, cost);
    }
}

void ddp_path_log(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    (void)shape;
    cost->steps = ddp_rounds(ranks);
}

void ddp_path_ring(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    (void)shape;
    cost->steps = ranks - 1;
}
