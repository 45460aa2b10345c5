/* A fake NCCL: the functions that backend nccl calls, over a shared file, on fake_gpu.h's streams.
 * It copies what NCCL 2.28.9 does with blocking and non-blocking communicators:
 *
 *   call or rule                               in NCCL's source
 *   on a non-blocking communicator a thread    ncclGroupEndInternal, groupLaunchNonBlocking
 *     does the work of a call                    (src/group.cc)
 *   a call before the last one is done is      ncclCommEnsureReady (src/init.cc)
 *     ncclInvalidArgument
 *   ncclCommSplit and ncclCommWindowRegister   src/init.cc, src/dev_runtime.cc:
 *     return ncclSuccess while the thread        NCCLCHECK(ncclGroupEndInternal()) drops
 *     works                                      ncclInProgress
 *   ncclCommInitRankConfig, ncclCommFinalize   src/init.cc, ncclEnqueueCheck (src/enqueue.cc):
 *     and collectives return ncclInProgress      the value of ncclCommGetAsyncError
 *   ncclGroupEnd returns ncclInProgress;       src/group.cc
 *     groups belong to a thread
 *   ncclCommGetAsyncError(NULL) is             CommCheck (src/misc/argcheck.cc)
 *     ncclInvalidArgument
 *   the first operation connects all ranks,    ncclCollPreconnectFunc, ncclP2PPreconnectFunc
 *     so on a blocking communicator it waits     (src/group.cc)
 *   ncclCommRegister is local, and belongs to  ncclRegister (src/register/register.cc),
 *     one communicator                           comm->regCache
 *   ncclCommWindowRegister waits for all       ncclDevrWindowRegisterInGroup
 *     ranks; memory is aligned to 4096 bytes     (src/dev_runtime.cc)
 *   without symmetric memory there is no       ncclCommWindowRegister (src/dev_runtime.cc)
 *     window, and the call succeeds              of 2.29
 *   abort, finalize and destroy wait until     commDestroySync (src/init.cc),
 *     graphs with operations are destroyed       comm->localPersistentRefs
 *   an abort ends the kernels of operations    setCommAbortFlags (src/init.cc)
 *   NCCL_ALGO that allows no algorithm is      topoGetAlgoInfo (src/enqueue.cc) since 2.24;
 *     ncclInvalidUsage                           here NCCL_ALGO=none
 *
 *   FAKE_NCCL_VERSION=N     the value of ncclGetVersion. Before 22800 ncclCommWindowRegister
 *                           returns ncclInProgress. old/libnccl.so.2 lacks the functions of windows
 *                           (before 2.27).
 *   FAKE_NCCL_FAULT=WHAT    rank 1: init-hangs, init-fails, split-hangs, split-fails, window-hangs,
 *                           window-fails, connect-hangs, op-hangs, op-fails, wrong, dies; the last
 *                           four at its FAKE_NCCL_AT-th operation (default 3)
 *   FAKE_NCCL_INIT_US=N     the last rank needs N us to open a communicator
 *   FAKE_NCCL_HOST_US=N     the host needs N us to put an operation on the stream
 *   FAKE_NCCL_GPU_US=N      the GPU needs N us for an operation after all ranks have begun it
 *   FAKE_NCCL_BUSY=1        calls inside a group return ncclInProgress
 *   FAKE_NCCL_LOG=FILE      a line for each operation: the rank, the ranks of the communicator,
 *                           "blocking" or "nonblocking", "registered" or "unregistered" if the
 *                           operation uses memory of ncclMemAlloc, and "queued" or "alone": whether
 *                           an earlier operation of the communicator is not done
 *
 * Two ranks of one host (NCCL_HOSTID) on one GPU are refused, as NCCL refuses them. */
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nccl/fake_gpu.h"
#include "nccl/fake_nccl_comm.h"
#include "nccl/fake_values.h"

static _Thread_local struct operation group; /* between ncclGroupStart and ncclGroupEnd */
static _Thread_local cudaStream_t group_stream;
static _Thread_local int grouped;
static struct region allocated[1024]; /* by ncclMemAlloc */
static pthread_mutex_t allocated_lock = PTHREAD_MUTEX_INITIALIZER;

/* Combines elements [first, first + count) of the ranks' areas. */
static void reduce(const struct operation *o, size_t first, size_t count, void *recv)
{
    unsigned char *out = fake_gpu_host(recv);
    const struct ncclComm *c = o->comm;
    const long double share = o->op == ncclAvg ? rounded(1.0L / c->size, o->dtype) : 1;
    for (size_t i = 0; i < count; i++) {
        long double v = rounded(get(c->all[0].area, first + i, o->dtype) * share, o->dtype);
        for (int r = 1; r < c->size; r++) {
            const long double more = get(c->all[r].area, first + i, o->dtype) * share;
            v = rounded(combine(v, rounded(more, o->dtype), o->op), o->dtype);
        }
        set(out, i, o->dtype, v);
    }
}

static void publish(struct operation *o)
{
    struct ncclComm *c = o->comm;
    struct shown *me = &c->all[c->rank];
    const size_t part = o->count * size_of(o->dtype);
    size_t at = 0;
    if (part * (size_t)(o->what == REDUCE_SCATTER ? c->size : 1) > AREA)
        abort(); /* the message is too large for the fake */
    memset(me->sent, 0, sizeof me->sent);
    for (int i = 0; i < o->move_count; i++) {
        if (!o->moves[i].sends)
            continue;
        if (at + o->moves[i].bytes > AREA)
            abort();
        me->sent[o->moves[i].peer] = at + 1;
        memcpy(me->area + at, fake_gpu_host(o->moves[i].from), o->moves[i].bytes);
        at += o->moves[i].bytes;
    }
    if (o->count > 0 && (o->what != BROADCAST || c->rank == o->root))
        memcpy(me->area, fake_gpu_host(o->send),
               o->what == REDUCE_SCATTER ? part * (size_t)c->size : part);
    atomic_store(&me->published, o->seq);
}

static void deliver(const struct operation *o)
{
    struct ncclComm *c = o->comm;
    const size_t part = o->count * size_of(o->dtype);
    unsigned char *out = fake_gpu_host(o->recv);
    switch (o->what) {
    case REDUCE:
        if (o->root < 0 || o->root == c->rank)
            reduce(o, 0, o->count, o->recv);
        break;
    case REDUCE_SCATTER:
        reduce(o, (size_t)c->rank * o->count, o->count, o->recv);
        break;
    case ALL_GATHER:
        for (int r = 0; r < c->size; r++)
            memcpy(out + (size_t)r * part, c->all[r].area, part);
        break;
    case BROADCAST:
        memmove(out, c->all[o->root].area, part);
        break;
    case REDUCE_PARTS: /* each rank's area has the same parts at the same offsets */
        for (int i = 0; i < o->move_count; i++)
            if (o->moves[i].peer == c->rank)
                reduce(o, (c->all[c->rank].sent[c->rank] - 1) / size_of(o->dtype),
                       o->moves[i].bytes / size_of(o->dtype), o->moves[i].to);
        break;
    case MOVE:
        for (int i = 0; i < o->move_count; i++) {
            const struct move *m = &o->moves[i];
            if (!m->sends)
                memcpy(fake_gpu_host(m->to),
                       c->all[m->peer].area + c->all[m->peer].sent[c->rank] - 1, m->bytes);
        }
        break;
    }
    if (c->fault && strcmp(c->fault, "wrong") == 0 && c->seq >= (uint64_t)c->at && part > 0 &&
        o->what != MOVE)
        out[0] ^= 1;
}

static int progress(void *arg)
{
    struct operation *o = arg;
    struct ncclComm *c = o->comm;
    if (atomic_load(&c->aborted))
        return 1;
    if (o->seq == 0)
        o->seq = ++c->seq;
    if (c->fault && o->seq >= (uint64_t)c->at) {
        if (strcmp(c->fault, "dies") == 0)
            raise(SIGKILL);
        if (strcmp(c->fault, "op-fails") == 0)
            atomic_store(&c->state, (int)ncclRemoteError);
        if (strcmp(c->fault, "op-hangs") == 0 || strcmp(c->fault, "op-fails") == 0)
            return 0;
    }
    for (int r = 0; !o->published && r < c->size; r++)
        if (atomic_load(&c->all[r].done) < o->seq - 1)
            return 0;
    if (!o->published)
        publish(o);
    o->published = true;
    for (int r = 0; r < c->size; r++)
        if (atomic_load(&c->all[r].published) < o->seq)
            return 0;
    if (o->done_ns == 0)
        o->done_ns = now_ns() + delay_ns("FAKE_NCCL_GPU_US");
    if (now_ns() < o->done_ns)
        return 0;
    deliver(o);
    atomic_store(&c->all[c->rank].done, o->seq);
    return 1;
}

static int version(void)
{
    const char *text = getenv("FAKE_NCCL_VERSION");
    return text ? (int)strtol(text, NULL, 10) : NCCL_VERSION_CODE;
}

/* True if ptr lies in memory of ncclMemAlloc, and is not registered with the communicator. */
static bool is_unregistered(struct ncclComm *c, const void *ptr)
{
    pthread_mutex_lock(&allocated_lock);
    const bool known = find_region(allocated, sizeof allocated / sizeof *allocated, ptr) != NULL;
    pthread_mutex_unlock(&allocated_lock);
    return known && !find_region(c->registered, REGIONS, ptr);
}

/* Writes a line to FAKE_NCCL_LOG. */
static void log_operation(struct ncclComm *c, const struct operation *o)
{
    const char *path = getenv("FAKE_NCCL_LOG");
    char line[120];
    bool unregistered = is_unregistered(c, o->send) || is_unregistered(c, o->recv);
    for (int i = 0; i < o->move_count; i++)
        unregistered = unregistered ||
                       is_unregistered(c, o->moves[i].sends ? o->moves[i].from : o->moves[i].to);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    const bool queued = atomic_load(&c->all[c->rank].done) < c->put;
    const int n =
        snprintf(line, sizeof line, "rank %d of %d %s %s %s\n", c->rank, c->size,
                 c->blocking ? "blocking" : "nonblocking",
                 unregistered ? "unregistered" : "registered", queued ? "queued" : "alone");
    if (write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

static void drop_from_graph(void *arg)
{
    const struct operation *o = arg;
    atomic_fetch_sub(&o->comm->graphs, 1);
}

/* Connects the ranks at the first operation, then puts the operation on the stream. */
static ncclResult_t launch_work(struct ncclComm *c)
{
    if (!atomic_load(&c->connected)) {
        if (faulty(c, "connect-hangs"))
            return ncclInProgress;
        atomic_store(&c->all[c->rank].connects, 1);
        if (!all_reached(c, offsetof(struct shown, connects)))
            return ncclInProgress;
        atomic_store(&c->connected, true);
    }
    log_operation(c, &c->launch);
    pause_ns(delay_ns("FAKE_NCCL_HOST_US"));
    if (fake_gpu_captures(c->stream))
        atomic_fetch_add(&c->graphs, 1);
    else
        c->put++;
    fake_gpu_put_dropped(c->stream, progress, drop_from_graph, &c->launch, sizeof c->launch);
    return ncclSuccess;
}

static bool is_aligned(const void *ptr, size_t bytes)
{
    return (uintptr_t)ptr % bytes == 0;
}

static ncclResult_t put(const struct operation *o, cudaStream_t stream)
{
    struct ncclComm *c = o->comm;
    const ncclResult_t ready = ensure_ready(c);
    const char *algorithms = getenv("NCCL_ALGO");
    if (ready != ncclSuccess)
        return ready;
    if (version() >= 22400 && algorithms && strcmp(algorithms, "none") == 0)
        return ncclInvalidUsage;
    if (o->what != MOVE && o->what != REDUCE_PARTS &&
        (!is_aligned(o->send, size_of(o->dtype)) || !is_aligned(o->recv, size_of(o->dtype))))
        return ncclInvalidArgument;
    c->launch = *o;
    c->stream = stream;
    return begin(c, launch_work);
}

ncclResult_t ncclGetVersion(int *out)
{
    *out = version();
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int made;
    memset(id, 0, sizeof *id);
    const char *folder = getenv("TMPDIR");
    snprintf(id->internal, sizeof id->internal, "%s/fake-nccl-%d-%d", folder ? folder : "/tmp",
             (int)getpid(), made++);
    return make_file(id->internal);
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited" : "fake error";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    const ncclResult_t joined = join(comm, nranks, id.internal, rank, config->blocking != 0);
    return joined != ncclSuccess ? joined : begin(*comm, init_work);
}

/* All ranks of comm must call this. On a non-blocking communicator the parent is in progress until
 * they have, there is no child, and yet the call succeeds. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                           ncclConfig_t *config)
{
    char path[NCCL_UNIQUE_ID_BYTES];
    const ncclResult_t ready = ensure_ready(comm);
    if (color != 0 || key != comm->rank || ready != ncclSuccess)
        return ready != ncclSuccess ? ready : ncclInvalidArgument;
    *newcomm = NULL;
    name_split(comm, atomic_load(&comm->all[comm->rank].splits) + 1, path, sizeof path);
    if (comm->rank == 0 && make_file(path) != ncclSuccess)
        return ncclSystemError;
    atomic_fetch_add(&comm->all[comm->rank].splits, 1);
    comm->split = newcomm;
    comm->child_blocking = config->blocking != 0;
    const ncclResult_t begun = begin(comm, split_work);
    return begun == ncclInProgress ? ncclSuccess : begun;
}

/* CommCheck refuses NULL. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    if (!c || !state)
        return ncclInvalidArgument;
    if (atomic_load(&c->state) == (int)ncclInProgress)
        pause_ns(POLL_NS); /* leaves the core to the threads that do the work */
    *state = (ncclResult_t)atomic_load(&c->state);
    return ncclSuccess;
}

/* All ranks of the communicator must call this. */
ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    const ncclResult_t ready = ensure_ready(c);
    if (ready != ncclSuccess)
        return ready;
    atomic_store(&c->all[c->rank].finalizes, 1);
    return begin(c, finalize_work);
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    if (ensure_ready(c) != ncclSuccess)
        return ncclInvalidArgument;
    wait_for_graphs(c, "ncclCommDestroy");
    munmap(c->all, RANKS * sizeof *c->all);
    free(c);
    return ncclSuccess;
}

/* Operations in progress end when their stream reaches them. The memory of the communicator stays,
 * because the streams and a thread in a blocking call may still use it. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    atomic_store(&c->aborted, true);
    join_thread(c);
    wait_for_graphs(c, "ncclCommAbort");
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
    *ptr = fake_gpu_alloc(size);
    if (!*ptr)
        return ncclUnhandledCudaError;
    pthread_mutex_lock(&allocated_lock);
    const ncclResult_t added =
        add_region(allocated, sizeof allocated / sizeof *allocated, (struct region){*ptr, size});
    pthread_mutex_unlock(&allocated_lock);
    return added;
}

ncclResult_t ncclMemFree(void *ptr)
{
    pthread_mutex_lock(&allocated_lock);
    struct region *r = find_region(allocated, sizeof allocated / sizeof *allocated, ptr);
    if (r)
        r->ptr = NULL;
    pthread_mutex_unlock(&allocated_lock);
    fake_gpu_free(ptr);
    return r ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    const ncclResult_t ready = ensure_ready(comm);
    if (ready != ncclSuccess)
        return ready;
    *handle = buff;
    return add_region(comm->registered, REGIONS, (struct region){buff, size});
}

static ncclResult_t deregister(ncclComm_t comm, const void *ptr)
{
    struct region *r = comm ? find_region(comm->registered, REGIONS, ptr) : NULL;
    if (!r || r->ptr != ptr)
        return ncclInvalidUsage;
    r->ptr = NULL;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return deregister(comm, handle);
}

/* All ranks of comm must call this; like ncclCommSplit it succeeds before there is a window. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                                    int flags)
{
    *win = NULL;
    if (!buff || size == 0 || flags != NCCL_WIN_COLL_SYMMETRIC ||
        !is_aligned(buff, NCCL_WIN_REQUIRED_ALIGNMENT))
        return ncclInvalidArgument;
    if (getenv("NCCL_P2P_DISABLE"))
        return ncclSuccess;
    const ncclResult_t ready = ensure_ready(comm);
    if (ready != ncclSuccess)
        return ready;
    comm->window = win;
    comm->region = (struct region){buff, size};
    atomic_fetch_add(&comm->all[comm->rank].windows, 1);
    const ncclResult_t begun = begin(comm, window_work);
    return begun == ncclInProgress && version() >= 22800 ? ncclSuccess : begun;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    return deregister(comm, (const void *)win);
}

#define ARRAYS .send = sendbuff, .recv = recvbuff, .count = count, .dtype = datatype, .comm = comm

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    return put(&(struct operation){.what = REDUCE, .op = op, .root = -1, ARRAYS}, stream);
}

static ncclResult_t add_move(struct move m, ncclComm_t comm, cudaStream_t stream);

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    if (grouped > 0) {
        const struct move m = {.sends = true,
                               .peer = root,
                               .from = sendbuff,
                               .to = recvbuff,
                               .bytes = count * size_of(datatype)};
        if (!is_aligned(sendbuff, size_of(datatype)))
            return ncclInvalidArgument;
        group.what = REDUCE_PARTS;
        group.op = op;
        group.dtype = datatype;
        return add_move(m, comm, stream);
    }
    return put(&(struct operation){.what = REDUCE, .op = op, .root = root, ARRAYS}, stream);
}

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    return put(&(struct operation){.what = BROADCAST, .root = root, ARRAYS}, stream);
}

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t count,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    return put(&(struct operation){.what = REDUCE_SCATTER, .op = op, ARRAYS}, stream);
}

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    return put(&(struct operation){.what = ALL_GATHER, ARRAYS}, stream);
}

static ncclResult_t add_move(struct move m, ncclComm_t comm, cudaStream_t stream)
{
    const ncclResult_t ready = ensure_ready(comm);
    if (ready != ncclSuccess)
        return ready;
    if (grouped == 0 || group.move_count == MOVES)
        return ncclInvalidUsage;
    group.comm = comm;
    group.moves[group.move_count++] = m;
    group_stream = stream;
    return getenv("FAKE_NCCL_BUSY") && !comm->blocking ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    const struct move m = {
        .sends = true, .peer = peer, .from = sendbuff, .bytes = count * size_of(datatype)};
    return add_move(m, comm, stream);
}

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    const struct move m = {.peer = peer, .to = recvbuff, .bytes = count * size_of(datatype)};
    return add_move(m, comm, stream);
}

ncclResult_t ncclGroupStart(void); /* the header leaves their arguments open */
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupStart(void)
{
    grouped++;
    group = (struct operation){.what = MOVE};
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (--grouped > 0 || group.move_count == 0)
        return ncclSuccess;
    return put(&group, group_stream);
}
