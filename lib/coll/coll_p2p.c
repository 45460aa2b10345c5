/* Exchanges of data as one message, or in fragments, where each received fragment is combined with
 * own data. See coll_p2p.h. */
#include "coll/coll_p2p.h"

int ddp_coll_needs_p2p(const struct ddp_comm *comm, const char *name, struct ddp_err *err)
{
    if (comm->size > 1 && (comm->backend->caps & DDP_CAP_P2P) == 0)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "algorithm '%s' needs messages, which backend '%s' cannot send", name,
                        comm->backend->name);
    return 0;
}

void ddp_coll_divide(const struct ddp_comm *comm, void *dst, const void *src, size_t count,
                     enum ddp_dtype dtype)
{
    const struct ddp_reduce reduce = {
        .dst = &dst,
        .dst_count = 1,
        .src = &src,
        .src_count = 1,
        .count = count,
        .dtype = dtype,
        .op = DDP_AVG,
        .divisor = comm->size,
    };
    if (count != 0)
        comm->device->reduce(&reduce);
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
    size_t elem, out_bytes, in_bytes, stride; /* stride: bytes between the two landing buffers */
    struct ddp_request send[2], recv[2];
};

/* Returns the size of fragment k of an array of `bytes` bytes. */
static size_t fragment_bytes(size_t bytes, size_t k)
{
    return DDP_MIN(DDP_FRAGMENT_BYTES, bytes - k * DDP_FRAGMENT_BYTES);
}

static void *landing_of(const struct combine_state *x, size_t k)
{
    return (unsigned char *)x->c->landing + (k % 2) * x->stride;
}

static int post_recv(struct combine_state *x, size_t k, struct ddp_err *err)
{
    return ddp_comm_irecv(x->comm, x->c->src, DDP_COLL_TAG, landing_of(x, k),
                          fragment_bytes(x->in_bytes, k), &x->recv[k % 2], err);
}

/* Sends fragment k. Its request was used for fragment k - 2, so wait for that send first. */
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

    DDP_TRY(ddp_comm_wait(x->comm, &x->recv[k % 2], 1, err));
    if (c->divide_own) {
        ddp_coll_divide(x->comm, sum, own, fragment_bytes(x->in_bytes, k) / x->elem, c->dtype);
        own = sum;
    }
    const struct ddp_reduce reduce = {
        .dst = &sum,
        .dst_count = 1,
        .src = (const void *[]){c->own_first ? own : landing_of(x, k),
                                c->own_first ? landing_of(x, k) : own},
        .src_count = 2,
        .count = fragment_bytes(x->in_bytes, k) / x->elem,
        .dtype = c->dtype,
        .op = c->op,
        .divisor = c->divisor,
    };
    x->comm->device->reduce(&reduce);
    return 0;
}

/* This cannot deadlock. In round k a rank waits first for its send of fragment k - 2 and then for
 * the arrival of fragment k. Consider the ranks in the earliest round k. Their targets are in round
 * k or later and have posted the receive of fragment k - 2, so the first wait ends. Their sources
 * then send fragment k, so the second wait ends. */
int ddp_p2p_combine(struct ddp_comm *comm, const struct ddp_p2p_combine *c, struct ddp_err *err)
{
    const size_t elem = ddp_dtype_size(c->dtype);
    struct combine_state x = {
        .comm = comm,
        .c = c,
        .elem = elem,
        .out_bytes = c->out_count * elem,
        .in_bytes = c->in_count * elem,
        .stride = DDP_MIN(DDP_FRAGMENT_BYTES, ddp_round_to_line(c->in_count * elem)),
    };
    const size_t out = ddp_fragment_count(x.out_bytes), in = ddp_fragment_count(x.in_bytes);

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

int ddp_p2p_send_fragments(struct ddp_comm *comm, int dst, const void *out, size_t count,
                           enum ddp_dtype dtype, struct ddp_err *err)
{
    const struct ddp_p2p_combine c = {.dst = dst, .out = out, .out_count = count, .dtype = dtype};
    return ddp_p2p_combine(comm, &c, err);
}

int ddp_p2p_fold_in(struct ddp_comm *comm, const struct ddp_coll_args *args, const void *own,
                    struct ddp_err *err)
{
    const int neighbour = comm->rank + 1;
    const struct ddp_p2p_move result = {
        .src = neighbour,
        .in = args->recv,
        .in_bytes = args->count * ddp_dtype_size(args->dtype),
    };
    DDP_TRY(ddp_p2p_send_fragments(comm, neighbour, own, args->count,
                                   ddp_acc_dtype(args->dtype, args->op), err));
    return ddp_p2p_exchange(comm, &result, err);
}

int ddp_p2p_fold_out(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    const struct ddp_p2p_move result = {
        .dst = comm->rank - 1,
        .out = args->recv,
        .out_bytes = args->count * ddp_dtype_size(args->dtype),
    };
    return ddp_p2p_exchange(comm, &result, err);
}
