/* NCCL's collectives. A collective that NCCL lacks is made of sends and receives in one NCCL group,
 * as in nccl-tests. A barrier is an all-reduce of one f32, as in PyTorch. A call returns when the
 * GPU has the result. If comm->deferred is set, a call returns when the operation is on the
 * stream. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/nccl/backend_nccl_impl.inc.h"

/* NCCL reduces floats of 8 bits only on GPUs of this compute capability or a later one. */
#define FP8_CAPABILITY 90

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
    const bool is_fp8 =
        ddp_dtypes[args->dtype].kind == DDP_FLOAT && ddp_dtypes[args->dtype].size == 1;
    /* Before the ranks start, a communicator has no state. */
    const struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const int capability = s != NULL ? s->world->capability : ddp_nccl_first_capability();
    if (dtypes[args->dtype] == ncclNumTypes)
        return ddp_fail(err, DDP_EUNAVAIL, "NCCL has no type %s", ddp_dtype_name(args->dtype));
    if (ddp_coll_reduces(args->coll) && is_fp8 && capability < FP8_CAPABILITY)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "NCCL combines %s only on GPUs of compute capability 9.0 (H100) and later",
                        ddp_dtype_name(args->dtype));
    if (ddp_coll_reduces(args->coll) && args->op == DDP_AVG && ddp_dtype_is_integer(args->dtype))
        return ddp_fail(
            err, DDP_EUNAVAIL,
            "an average of %s could overflow, because NCCL adds the values in that type",
            ddp_dtype_name(args->dtype));
    return 0;
}

/* The arguments of one call of NCCL. */
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

/* Runs an all-to-all-v or an all-gather-v. A part that is empty has no send and no receive. */
static ncclResult_t move_split(const struct call *c, const struct ddp_coll_args *args)
{
    const size_t elem = ddp_dtype_size(args->dtype);
    const int me = c->comm->rank, n = c->comm->size;
    size_t sent = 0, received = 0;
    ncclResult_t rc = c->api->GroupStart();
    if (!taken(rc))
        return rc;
    for (int peer = 0; peer < n && taken(rc); peer++) {
        const size_t out = ddp_split_part(args, n, me, peer);
        const size_t in = ddp_split_part(args, n, peer, me);
        if (out > 0)
            rc = c->api->Send(c->send + sent * elem, out, c->dtype, peer, c->nccl, c->stream);
        if (taken(rc) && in > 0)
            rc = c->api->Recv(c->recv + received * elem, in, c->dtype, peer, c->nccl, c->stream);
        sent += args->coll == DDP_ALL_TO_ALL_V ? out : 0; /* else all ranks get the same part */
        received += in;
    }
    const ncclResult_t ended = c->api->GroupEnd(); /* must also be called after a failure */
    return taken(rc) ? ended : rc;
}

/* Runs a reduce-scatter-v: reduces each part that is not empty to the rank that gets the part. */
static ncclResult_t reduce_split(const struct call *c, const struct ddp_coll_args *args)
{
    const size_t elem = ddp_dtype_size(args->dtype);
    const int me = c->comm->rank, n = c->comm->size;
    size_t at = 0;
    ncclResult_t rc = c->api->GroupStart();
    if (!taken(rc))
        return rc;
    for (int root = 0; root < n && taken(rc); root++) {
        const size_t part = ddp_split_part(args, n, me, root);
        if (part > 0)
            rc = c->api->Reduce(c->send + at * elem, c->recv, part, c->dtype, ops[args->op], root,
                                c->nccl, c->stream);
        at += part;
    }
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
    case DDP_ALL_TO_ALL_V:
    case DDP_ALL_GATHER_V:
        return move_split(c, args);
    case DDP_REDUCE_SCATTER_V:
        return reduce_split(c, args);
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

/* The arguments of put(). */
struct put_args {
    struct call call;
    struct ddp_coll_args todo;
};

static ncclResult_t put_any(void *arg)
{
    const struct put_args *a = arg;
    return put(&a->call, &a->todo);
}

static bool same_shape(const struct ddp_coll_args *a, const struct ddp_coll_args *b)
{
    return a->coll == b->coll && a->count == b->count && a->dtype == b->dtype && a->op == b->op &&
           a->root == b->root && a->split_hash == b->split_hash;
}

/* Returns whether an operation of this shape has run, and moves the shape to the front. */
static bool was_seen(struct ddp_nccl_state *s, const struct ddp_coll_args *args)
{
    size_t i = 0;
    while (i < s->seen_count && !same_shape(&s->seen[i], args))
        i++;
    if (i == s->seen_count)
        return false;
    const struct ddp_coll_args found = s->seen[i];
    memmove(s->seen + 1, s->seen, i * sizeof *s->seen);
    s->seen[0] = found;
    return true;
}

/* Stores a shape in s->seen. If memory is exhausted, the shape counts as new at its next call. */
static void note_seen(struct ddp_nccl_state *s, const struct ddp_coll_args *args)
{
    struct ddp_coll_args *more = ddp_realloc_array(s->seen, s->seen_count + 1, sizeof *more);
    if (more == NULL)
        return;
    s->seen = more;
    more[s->seen_count++] = *args;
}

/* Puts the operation on the stream. The first operation that needs a connection makes this
 * connection and waits for the other rank. Later operations of the same shape do not wait. */
static int enqueue(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_stream_ops *streams = s->world->device->streams;
    struct put_args a = {.todo = *args};
    a.call = (struct call){
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
        a.todo.coll = DDP_ALLREDUCE;
        a.todo.op = DDP_SUM;
        a.call.send = a.call.recv = s->word;
        a.call.count = 1;
        a.call.dtype = ncclFloat32;
    } else if (args->coll == DDP_ALL_TO_ALL && args->send == args->recv) {
        /* In an in-place call, received data would overwrite chunks that are not sent yet.
         * Therefore send from a copy. */
        const size_t bytes = a.call.part * (size_t)comm->size;
        DDP_TRY(grow_scratch(s, bytes, err));
        streams->copy(s->stream, s->scratch, a.call.send, bytes);
        a.call.send = s->scratch;
    }
    if (a.call.count == 0)
        return 0;
    const char *name = ddp_coll_name(args->coll);
    if (was_seen(s, args))
        return ddp_nccl_settle(comm, put(&a.call, &a.todo), name, err);
    /* If ddp_nccl_call gives up, its thread remains inside NCCL, and nothing is aborted
     * (world->stuck). A later call that frees GPU memory would then wait for the earlier operations
     * on the stream. Therefore wait for these operations first, while an abort can still end
     * them. */
    if (comm->deferred)
        DDP_TRY(ddp_nccl_wait(comm, err));
    DDP_TRY(ddp_nccl_call(comm, put_any, &a, sizeof a, name, err));
    note_seen(s, args);
    return 0;
}

static bool same_args(const struct ddp_coll_args *a, const struct ddp_coll_args *b)
{
    return same_shape(a, b) && a->send == b->send && a->recv == b->recv;
}

/* Captures the operation as a graph. */
static int capture(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_stream_ops *streams = s->world->device->streams;
    struct ddp_graph *unused = NULL;
    s->graph_args = *args;
    DDP_TRY(streams->capture_begin(s->stream, err));
    const int rc = enqueue(comm, args, err);
    if (rc == 0)
        return streams->capture_end(s->stream, &s->graph, err);
    if (streams->capture_end(s->stream, &unused, NULL) == 0)
        streams->graph_destroy(unused);
    return rc;
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

static int check_usable(struct ddp_nccl_state *s, struct ddp_err *err)
{
    if (s->comm == NULL || s->world->failed)
        return ddp_fail(err, DDP_ELOST, "the communicator was aborted after a failure");
    return select_gpu(s, err);
}

/* Runs an operation without a graph and then captures it. The first run of an operation opens
 * connections, and a capture must not open connections. The capture follows at once, so that later
 * calls only launch the graph. */
static int run_and_capture(struct ddp_comm *comm, const struct ddp_coll_args *args,
                           struct ddp_err *err)
{
    ddp_nccl_drop_graph(ddp_nccl_state_of(comm));
    DDP_TRY(enqueue(comm, args, err));
    DDP_TRY(ddp_nccl_wait(comm, err));
    return capture(comm, args, err);
}

/* True if the next call with these arguments launches s->graph. */
static bool has_graph(const struct ddp_nccl_state *s, const struct ddp_coll_args *args)
{
    return s->graph != NULL && same_args(args, &s->graph_args);
}

static int launch(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    if (!s->world->options.graph)
        return enqueue(comm, args, err);
    s->world->device->streams->graph_launch(s->graph, s->stream);
    return 0;
}

int ddp_nccl_run(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    DDP_TRY(check_usable(s, err));
    if (s->world->options.graph && !has_graph(s, args))
        return run_and_capture(comm, args, err);
    DDP_TRY(launch(comm, args, err));
    return comm->deferred ? 0 : ddp_nccl_wait(comm, err);
}

int ddp_nccl_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    const struct ddp_coll_args args = {.coll = DDP_BARRIER};
    DDP_TRY(check_usable(ddp_nccl_state_of(comm), err));
    DDP_TRY(enqueue(comm, &args, err));
    return ddp_nccl_wait(comm, err);
}

static int launch_all(struct ddp_comm *comm, const struct ddp_coll_args *args, int64_t count,
                      struct ddp_err *err)
{
    for (int64_t i = 0; i < count; i++)
        DDP_TRY(launch(comm, args, err));
    return 0;
}

/* Holds the stream while it launches `count` operations, so that the time between the events does
 * not include the time in which the host puts work on the stream. All ranks release their streams
 * after a barrier. */
static int run_held(struct ddp_comm *comm, const struct ddp_coll_args *args, int64_t count,
                    double *device_ns, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_stream_ops *streams = s->world->device->streams;
    double ns = -1;
    streams->hold(s->stream);
    streams->event_record(s->begin, s->stream);
    int rc = launch_all(comm, args, count, err);
    streams->event_record(s->end, s->stream);
    if (rc == 0)
        rc = ddp_comm_barrier(comm, err);
    streams->release(s->stream);
    if (rc != 0) {
        ddp_nccl_abort(comm);
        return rc;
    }
    DDP_TRY(ddp_nccl_wait(comm, err));
    if (streams->event_elapsed(s->begin, s->end, &ns, NULL) != 0)
        ns = -1;
    *device_ns = ns < 0 ? -1 : ns / (double)count;
    return 0;
}

int ddp_nccl_run_many(struct ddp_comm *comm, const struct ddp_coll_args *args, int64_t count,
                      double *device_ns, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    DDP_TRY(check_usable(s, err));
    /* The first operation waits for other ranks, and in graph mode for the stream, so run it before
     * the stream is held. */
    if (s->world->options.graph ? !has_graph(s, args) : !was_seen(s, args)) {
        DDP_TRY(ddp_nccl_run(comm, args, err));
        count -= device_ns == NULL;
    }
    if (device_ns != NULL)
        return run_held(comm, args, DDP_MIN(count, DDP_NATIVE_HELD_MOST), device_ns, err);
    DDP_TRY(launch_all(comm, args, count, err));
    return ddp_nccl_wait(comm, err);
}

/* The arguments of ddp_nccl_messages. */
struct messages_args {
    const struct ddp_nccl *api;
    ncclComm_t comm;
    cudaStream_t stream;
    const struct ddp_comm_message *message;
    int n;
};

static ncclResult_t put_messages(void *arg)
{
    const struct messages_args *a = arg;
    ncclResult_t rc = a->api->GroupStart();
    for (int i = 0; i < a->n && taken(rc); i++) {
        const struct ddp_comm_message *m = &a->message[i];
        if (m->send_bytes > 0)
            rc = a->api->Send(m->send, m->send_bytes, ncclUint8, m->peer, a->comm, a->stream);
        if (taken(rc) && m->recv_bytes > 0)
            rc = a->api->Recv(m->recv, m->recv_bytes, ncclUint8, m->peer, a->comm, a->stream);
    }
    const ncclResult_t ended = a->api->GroupEnd(); /* must also be called after a failure */
    return taken(rc) ? ended : rc;
}

/* Marks the messages in s->met, and returns whether all of them were marked before. Returns false
 * if there is no memory for the marks. */
static bool have_met(struct ddp_comm *comm, const struct ddp_comm_message *message, int n)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    bool all = true;
    if (s->met == NULL && (s->met = ddp_calloc((size_t)comm->size, 1)) == NULL)
        return false;
    for (int i = 0; i < n; i++) {
        const unsigned char way =
            (unsigned char)((message[i].send_bytes > 0) | (message[i].recv_bytes > 0) << 1);
        all = all && (s->met[message[i].peer] & way) == way;
        s->met[message[i].peer] |= way;
    }
    return all;
}

/* The first message between two ranks connects them, so NCCL may wait for the peer. */
int ddp_nccl_messages(struct ddp_comm *comm, const struct ddp_comm_message *message, int n,
                      struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    DDP_TRY(check_usable(s, err));
    struct messages_args a = {
        .api = s->world->api,
        .comm = s->comm,
        .stream = s->world->device->streams->native(s->stream),
        .message = message,
        .n = n,
    };
    if (have_met(comm, message, n))
        DDP_TRY(ddp_nccl_settle(comm, put_messages(&a), "messages", err));
    else
        DDP_TRY(ddp_nccl_call(comm, put_messages, &a, sizeof a, "messages", err));
    return ddp_nccl_wait(comm, err);
}
