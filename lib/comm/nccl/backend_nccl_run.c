/* NCCL's collectives. A collective that NCCL lacks is made of sends and receives in one NCCL group,
 * as in nccl-tests. A barrier is an all-reduce of one f32, as in PyTorch. Each call returns when
 * the GPU has the result. */
#include <string.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "comm/nccl/backend_nccl_impl.inc.h"

static const ncclDataType_t dtypes[DDP_DTYPE_COUNT] = {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl) [DDP_##symbol] = nccl,
#include "base/dtype_list.h"
#undef DDP_DTYPE
};

static const ncclRedOp_t ops[DDP_OP_COUNT] = {
    [DDP_SUM] = ncclSum, [DDP_AVG] = ncclAvg, [DDP_PROD] = ncclProd,
    [DDP_MIN] = ncclMin, [DDP_MAX] = ncclMax,
};

int ddp_nccl_supports(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                      struct ddp_err *err)
{
    (void)comm;
    if (dtypes[args->dtype] == ncclNumTypes)
        return ddp_fail(err, DDP_EUNAVAIL, "NCCL has no type %s", ddp_dtype_name(args->dtype));
    if (ddp_coll_reduces(args->coll) && args->op == DDP_AVG && ddp_dtype_is_integer(args->dtype))
        return ddp_fail(err, DDP_EUNAVAIL,
                        "NCCL sums averages of %s in that type, so the sums could overflow",
                        ddp_dtype_name(args->dtype));
    return 0;
}

/* The arguments of one call. */
struct call {
    struct ddp_comm *comm;
    const struct ddp_nccl *api;
    ncclComm_t nccl;
    cudaStream_t stream;
    const unsigned char *send;
    unsigned char *recv;
    size_t count, part; /* elements of one rank, and their bytes */
    ncclDataType_t dtype;
    int root;
};

/* The sends and receives of one rank in a collective that NCCL lacks. */
struct moves {
    bool sends, receives;
    /* The rank to send to and the rank to receive from; -1: all ranks. */
    int to, from;
    /* send_parts, recv_parts: whether the send or receive buffer has one chunk per peer. */
    bool send_parts, recv_parts;
};

/* Returns whether NCCL accepted a call inside an NCCL group. On a non-blocking communicator the
 * call may also return ncclInProgress. ncclGroupEnd then reports the outcome. */
static bool taken(ncclResult_t rc)
{
    return rc == ncclSuccess || rc == ncclInProgress;
}

static ncclResult_t move_one(const struct call *c, const struct moves *m, int peer)
{
    ncclResult_t rc = ncclSuccess;
    const unsigned char *send = c->send + (m->send_parts ? (size_t)peer * c->part : 0);
    unsigned char *recv = c->recv + (m->recv_parts ? (size_t)peer * c->part : 0);
    const bool sends = m->sends && (m->to < 0 || m->to == peer);
    const bool receives = m->receives && (m->from < 0 || m->from == peer);
    if (peer == c->comm->rank && sends && receives && send == recv)
        return ncclSuccess; /* in place: nothing to copy */
    if (sends)
        rc = c->api->Send(send, c->count, c->dtype, peer, c->nccl, c->stream);
    if (taken(rc) && receives)
        rc = c->api->Recv(recv, c->count, c->dtype, peer, c->nccl, c->stream);
    return rc;
}

static ncclResult_t move(const struct call *c, const struct moves *m)
{
    ncclResult_t rc = c->api->GroupStart();
    if (!taken(rc))
        return rc;
    for (int peer = 0; peer < c->comm->size && taken(rc); peer++)
        rc = move_one(c, m, peer);
    const ncclResult_t ended = c->api->GroupEnd(); /* must also be called after a failure */
    return taken(rc) ? ended : rc;
}

static ncclResult_t put(const struct call *c, const struct ddp_coll_args *args)
{
    const int me = c->comm->rank, n = c->comm->size;
    const ncclRedOp_t op = ops[args->op];
    const bool leads = me == c->root;
    switch (args->coll) {
    case DDP_ALLREDUCE:
        return c->api->AllReduce(c->send, c->recv, c->count, c->dtype, op, c->nccl, c->stream);
    case DDP_REDUCE:
        return c->api->Reduce(c->send, c->recv, c->count, c->dtype, op, c->root, c->nccl,
                              c->stream);
    case DDP_REDUCE_SCATTER:
        return c->api->ReduceScatter(c->send, c->recv, c->count, c->dtype, op, c->nccl, c->stream);
    case DDP_ALL_GATHER:
        return c->api->AllGather(c->send, c->recv, c->count, c->dtype, c->nccl, c->stream);
    case DDP_BROADCAST:
        return c->api->Broadcast(leads ? c->send : c->recv, c->recv, c->count, c->dtype, c->root,
                                 c->nccl, c->stream);
    case DDP_ALL_TO_ALL:
        return move(c, &(struct moves){true, true, -1, -1, true, true});
    case DDP_GATHER:
        return move(c, &(struct moves){true, leads, c->root, -1, false, true});
    case DDP_SCATTER:
        return move(c, &(struct moves){leads, true, -1, c->root, true, false});
    case DDP_SEND_RECV:
        return move(c, &(struct moves){true, true, (me + 1) % n, (me + n - 1) % n, false, false});
    default:
        return ncclInvalidArgument;
    }
}

static int grow_scratch(struct ddp_nccl_state *s, size_t bytes, struct ddp_err *err)
{
    const struct ddp_device *device = s->world->device;
    if (bytes <= s->scratch_bytes)
        return 0;
    device->free(s->scratch, s->scratch_bytes);
    s->scratch = device->alloc(bytes);
    s->scratch_bytes = s->scratch != NULL ? bytes : 0;
    return s->scratch != NULL
               ? 0
               : ddp_fail(err, DDP_ENOMEM, "the GPU has no memory for %zu bytes of scratch", bytes);
}

/* Puts the operation on the stream. */
static int enqueue(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_stream_ops *streams = s->world->device->streams;
    struct ddp_coll_args todo = *args;
    struct call c = {
        .comm = comm,
        .api = s->world->api,
        .nccl = s->comm,
        .stream = streams->native(s->stream),
        .send = args->send,
        .recv = args->recv,
        .count = args->count,
        .part = args->count * ddp_dtype_size(args->dtype),
        .dtype = dtypes[args->dtype],
        .root = args->root,
    };
    if (args->coll == DDP_BARRIER) {
        todo.coll = DDP_ALLREDUCE;
        todo.op = DDP_SUM;
        c.send = c.recv = s->word;
        c.count = 1;
        c.dtype = ncclFloat32;
    } else if (args->coll == DDP_ALL_TO_ALL && c.send == c.recv) {
        /* In an in-place call, received data would overwrite chunks that are not sent yet.
         * Therefore send from a copy. */
        const size_t bytes = c.part * (size_t)comm->size;
        DDP_TRY(grow_scratch(s, bytes, err));
        streams->copy(s->stream, s->scratch, c.send, bytes);
        c.send = s->scratch;
    }
    if (c.count == 0)
        return 0;
    return ddp_nccl_settle(comm, put(&c, &todo), ddp_coll_name(args->coll), err);
}

static bool same_args(const struct ddp_coll_args *a, const struct ddp_coll_args *b)
{
    return a->coll == b->coll && a->send == b->send && a->recv == b->recv && a->count == b->count &&
           a->dtype == b->dtype && a->op == b->op && a->root == b->root;
}

/* Captures the operation as a graph. The capture happens at the second call with the same
 * arguments, because the first call opens connections, which cannot be captured. */
static int capture(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_stream_ops *streams = s->world->device->streams;
    struct ddp_graph *unused = NULL;
    DDP_TRY(streams->capture_begin(s->stream, err));
    const int rc = enqueue(comm, args, err);
    if (rc == 0)
        return streams->capture_end(s->stream, &s->graph, err);
    if (streams->capture_end(s->stream, &unused, NULL) == 0)
        streams->graph_destroy(unused);
    return rc;
}

/* Sets s->graph to the graph of these arguments, or to NULL at their first call. */
static int prepare_graph(struct ddp_comm *comm, const struct ddp_coll_args *args,
                         struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    if (!same_args(args, &s->graph_args)) {
        s->world->device->streams->graph_destroy(s->graph);
        s->graph = NULL;
        s->ran_args = false;
        s->graph_args = *args;
    }
    if (s->graph == NULL && s->ran_args)
        DDP_TRY(capture(comm, args, err));
    s->ran_args = true;
    return 0;
}

/* Selects this rank's GPU in the calling thread, because a new thread uses GPU 0. */
static int select_gpu(struct ddp_nccl_state *s, struct ddp_err *err)
{
    const pthread_t me = pthread_self();
    if (s->selected && pthread_equal(s->thread, me))
        return 0;
    DDP_TRY(s->world->device->select(s->world->index, err));
    s->thread = me;
    s->selected = true;
    return 0;
}

int ddp_nccl_run(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_device *device = s->world->device;
    if (s->comm == NULL || s->world->failed)
        return ddp_fail(err, DDP_ELOST, "the communicator was aborted after a failure");
    DDP_TRY(select_gpu(s, err));
    if (s->world->options.graph)
        DDP_TRY(prepare_graph(comm, args, err));
    device->streams->event_record(s->begin, s->stream);
    if (s->graph != NULL)
        device->streams->graph_launch(s->graph, s->stream);
    else
        DDP_TRY(enqueue(comm, args, err));
    device->streams->event_record(s->end, s->stream);
    s->timed = true;
    return ddp_nccl_wait(comm, err);
}

double ddp_nccl_device_ns(struct ddp_comm *comm)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    double ns = -1;
    if (!s->timed || s->world->failed ||
        s->world->device->streams->event_elapsed(s->begin, s->end, &ns, NULL) != 0)
        return -1;
    return ns;
}

int ddp_nccl_messages(struct ddp_comm *comm, const struct ddp_comm_message *message, int n,
                      struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_nccl *api = s->world->api;
    cudaStream_t stream = s->world->device->streams->native(s->stream);
    if (s->comm == NULL || s->world->failed)
        return ddp_fail(err, DDP_ELOST, "the communicator was aborted after a failure");
    DDP_TRY(select_gpu(s, err));
    ncclResult_t rc = api->GroupStart(), ended;
    for (int i = 0; i < n && taken(rc); i++) {
        const struct ddp_comm_message *m = &message[i];
        if (m->send_bytes > 0)
            rc = api->Send(m->send, m->send_bytes, ncclUint8, m->peer, s->comm, stream);
        if (taken(rc) && m->recv_bytes > 0)
            rc = api->Recv(m->recv, m->recv_bytes, ncclUint8, m->peer, s->comm, stream);
    }
    ended = api->GroupEnd(); /* must also be called after a failure */
    DDP_TRY(ddp_nccl_settle(comm, taken(rc) ? ended : rc, "messages", err));
    return ddp_nccl_wait(comm, err);
}
