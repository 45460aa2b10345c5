/* Exchanges of data as one message, or in fragments that are combined with the rank's own data on
 * arrival. See coll_p2p.h. */
#include "coll/coll_p2p.h"

#include "base/dtype_info.h"

int ddp_coll_needs_p2p(const struct ddp_comm *comm, const char *name, struct ddp_err *err)
{
    if (comm->size > 1 && (comm->backend->caps & DDP_CAP_P2P) == 0)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm '%s' needs messages, which backend '%s' cannot send", name,
                        comm->backend->name);
    return 0;
}

struct ddp_reduction ddp_reduction_of(int ranks, enum ddp_dtype dtype, enum ddp_op op)
{
    const bool average = op == DDP_AVG;
    const bool pre_scale = average && ddp_dtype_is_narrow(dtype) && ranks > 2;
    const enum ddp_dtype acc_dtype = average ? ddp_dtypes[dtype].mean : dtype;
    return (struct ddp_reduction){
        .dtype = dtype,
        .acc_dtype = acc_dtype,
        .op = op,
        .elem = ddp_dtype_size(dtype),
        .acc_elem = ddp_dtype_size(acc_dtype),
        .wider_acc = acc_dtype != dtype,
        .pre_scale = pre_scale,
        .divisor = average && !pre_scale ? ranks : 1,
    };
}

/* Calls the device's reduce(). With a counting communicator (coll_cost.c), counts the memory
 * traffic instead: reduce() reads every source and writes one array. */
static void reduce(const struct ddp_comm *comm, const struct ddp_reduction *reduction, void *dst,
                   const void *const *src, int src_count, size_t count, int divisor)
{
    const struct ddp_reduce call = {
        .dst = &dst,
        .dst_count = 1,
        .src = src,
        .src_count = src_count,
        .count = count,
        .dtype = reduction->acc_dtype,
        .op = reduction->op,
        .divisor = divisor,
    };
    const double bytes = (double)count * (double)reduction->acc_elem;
    if (count != 0 && !ddp_coll_counts(comm, (src_count + 1) * bytes))
        comm->device->reduce(&call);
}

void ddp_reduction_combine(const struct ddp_comm *comm, const struct ddp_reduction *reduction,
                           void *dst, const void *const *src, int src_count, size_t count,
                           bool last)
{
    reduce(comm, reduction, dst, src, src_count, count, last ? reduction->divisor : 1);
}

#define DDP_DTYPE(symbol, name, aliases, type, ...) typedef type element_##symbol;
#include "base/dtype_list.h"
#undef DDP_DTYPE

/* Converts the array `src` [count] of type `dtype` to the accumulator type. */
static void widen(void *dst, const void *src, size_t count, enum ddp_dtype dtype)
{
    switch (dtype) {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, ...)                            \
    case DDP_##symbol: {                                                                           \
        element_##mean *restrict to = dst;                                                         \
        const type *restrict from = src;                                                           \
        for (size_t i = 0; i < count; i++)                                                         \
            to[i] = from[i];                                                                       \
        break;                                                                                     \
    }
#include "base/dtype_list.h"
#undef DDP_DTYPE
    default:
        break;
    }
}

const void *ddp_reduction_input(const struct ddp_comm *comm, const struct ddp_reduction *reduction,
                                void *to, const void *src, size_t count)
{
    if (reduction->pre_scale)
        reduce(comm, reduction, to, &src, 1, count, comm->size);
    else if (!reduction->wider_acc)
        return src;
    else if (ddp_coll_counts(comm, (double)count * (double)(reduction->elem + reduction->acc_elem)))
        return to;
    else
        widen(to, src, count, reduction->dtype);
    return to;
}

/* The average of values of a type fits the type, so these conversions do not overflow. */
void ddp_reduction_output(const struct ddp_comm *comm, const struct ddp_reduction *reduction,
                          void *dst, const void *src, size_t count)
{
    if (!reduction->wider_acc ||
        ddp_coll_counts(comm, (double)count * (double)(reduction->elem + reduction->acc_elem)))
        return;
    switch (reduction->dtype) {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, ...)                            \
    case DDP_##symbol: {                                                                           \
        type *restrict to = dst;                                                                   \
        const element_##mean *restrict from = src;                                                 \
        for (size_t i = 0; i < count; i++)                                                         \
            to[i] = (type)from[i];                                                                 \
        break;                                                                                     \
    }
#include "base/dtype_list.h"
#undef DDP_DTYPE
    default:
        break;
    }
}

int ddp_p2p_exchange(struct ddp_comm *comm, const struct ddp_p2p_move *move, struct ddp_err *err)
{
    struct ddp_request req[2] = {{.active = false}, {.active = false}};

    if (move->in_bytes != 0)
        DDP_TRY(
            ddp_comm_irecv(comm, move->src, DDP_COLL_TAG, move->in, move->in_bytes, &req[0], err));
    if (move->out_bytes != 0)
        DDP_TRY(ddp_comm_isend(comm, move->dst, DDP_COLL_TAG, move->out, move->out_bytes, &req[1],
                               err));
    return ddp_comm_wait(comm, req, 2, err);
}

/* The state of a running ddp_p2p_combine. */
struct combine_state {
    struct ddp_comm *comm;
    const struct ddp_p2p_combine *c;
    size_t out_bytes, in_bytes, stride; /* stride: bytes between the two landing buffers */
    struct ddp_request send[2], recv[2];
};

/* Returns the size of fragment k of an array of `bytes` bytes. */
static size_t fragment_bytes(size_t bytes, size_t k)
{
    return DDP_MIN(DDP_FRAGMENT_BYTES, bytes - k * DDP_FRAGMENT_BYTES);
}

static void *landing_of(const struct combine_state *x, size_t k)
{
    return (unsigned char *)x->c->reduction->landing + (k % 2) * x->stride;
}

static int post_recv(struct combine_state *x, size_t k, struct ddp_err *err)
{
    return ddp_comm_irecv(x->comm, x->c->src, DDP_COLL_TAG, landing_of(x, k),
                          fragment_bytes(x->in_bytes, k), &x->recv[k % 2], err);
}

/* Sends fragment k. Fragment k - 2 used the same request, so the function first waits until
 * fragment k - 2 is sent. */
static int send_fragment(struct combine_state *x, size_t k, struct ddp_err *err)
{
    DDP_TRY(ddp_comm_wait(x->comm, &x->send[k % 2], 1, err));
    return ddp_comm_isend(x->comm, x->c->dst, DDP_COLL_TAG,
                          ddp_at(x->c->out, k, DDP_FRAGMENT_BYTES), fragment_bytes(x->out_bytes, k),
                          &x->send[k % 2], err);
}

static int combine_fragment(struct combine_state *x, size_t k, struct ddp_err *err)
{
    const struct ddp_p2p_combine *c = x->c;
    const void *own = ddp_at(c->own, k, DDP_FRAGMENT_BYTES);
    void *sum = ddp_at(c->sum, k, DDP_FRAGMENT_BYTES);

    const size_t count = fragment_bytes(x->in_bytes, k) / c->reduction->acc_elem;

    DDP_TRY(ddp_comm_wait(x->comm, &x->recv[k % 2], 1, err));
    if (c->divide_own)
        own = ddp_reduction_input(x->comm, c->reduction, sum, own, count);
    const void *const src[] = {c->own_first ? own : landing_of(x, k),
                               c->own_first ? landing_of(x, k) : own};
    ddp_reduction_combine(x->comm, c->reduction, sum, src, 2, count, c->last);
    return 0;
}

/* Counts the traffic of ddp_p2p_combine in one step. Counting each fragment would take seconds for
 * long messages of thousands of ranks. */
static void count_combine(struct ddp_comm *comm, const struct ddp_p2p_combine *c, size_t out_bytes,
                          size_t in_bytes)
{
    const bool divides = c->divide_own && c->reduction->pre_scale;
    const double per_byte = DDP_COST_COMBINE + (divides ? DDP_COST_COPY : 0);
    comm->wire_messages += ddp_fragment_count(out_bytes);
    comm->wire_bytes += out_bytes;
    (void)ddp_coll_counts(comm, DDP_COST_MOVE * (double)out_bytes + per_byte * (double)in_bytes);
}

/* ddp_p2p_combine cannot deadlock. In round k a rank waits first for its send of fragment k - 2 and
 * then for the arrival of fragment k. Consider the ranks in the earliest round k. Their targets are
 * in round k or later and have posted the receive of fragment k - 2, so the first wait ends. Their
 * sources are also in round k or later and therefore send fragment k, so the second wait ends. */
int ddp_p2p_combine(struct ddp_comm *comm, const struct ddp_p2p_combine *c, struct ddp_err *err)
{
    const size_t elem = c->reduction->acc_elem;
    struct combine_state x = {
        .comm = comm,
        .c = c,
        .out_bytes = c->out_count * elem,
        .in_bytes = c->in_count * elem,
        .stride = DDP_MIN(DDP_FRAGMENT_BYTES, ddp_round_to_line(c->in_count * elem)),
    };
    const size_t out = ddp_fragment_count(x.out_bytes), in = ddp_fragment_count(x.in_bytes);

    if (ddp_coll_counts(comm, 0)) {
        count_combine(comm, c, x.out_bytes, x.in_bytes);
        return 0;
    }
    for (size_t k = 0; k < DDP_MIN(in, (size_t)2); k++)
        DDP_TRY(post_recv(&x, k, err));
    for (size_t k = 0; k < DDP_MAX(in, out); k++) {
        if (k < out)
            DDP_TRY(send_fragment(&x, k, err));
        if (k < in)
            DDP_TRY(combine_fragment(&x, k, err));
        if (k + 2 < in)
            DDP_TRY(post_recv(&x, k + 2, err));
    }
    return ddp_comm_wait(comm, x.send, 2, err);
}

int ddp_p2p_send_fragments(struct ddp_comm *comm, const struct ddp_reduction *reduction, int dst,
                           const void *out, size_t count, struct ddp_err *err)
{
    const struct ddp_p2p_combine c = {
        .dst = dst, .out = out, .out_count = count, .reduction = reduction};
    return ddp_p2p_combine(comm, &c, err);
}

int ddp_p2p_fold_in(struct ddp_comm *comm, const struct ddp_reduction *reduction,
                    const struct ddp_coll_args *args, const void *own, struct ddp_err *err)
{
    const int neighbour = comm->rank + 1;
    const struct ddp_p2p_move result = {
        .src = neighbour, .in = args->recv, .in_bytes = ddp_coll_array_bytes(args)};
    DDP_TRY(ddp_p2p_send_fragments(comm, reduction, neighbour, own, args->count, err));
    return ddp_p2p_exchange(comm, &result, err);
}

int ddp_p2p_fold_out(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    const struct ddp_p2p_move result = {
        .dst = comm->rank - 1, .out = args->recv, .out_bytes = ddp_coll_array_bytes(args)};
    return ddp_p2p_exchange(comm, &result, err);
}
