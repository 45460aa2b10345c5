/* A fake NCCL: the functions that backend nccl calls, over a shared file, on fake_gpu.h's streams.
 * It copies the non-blocking communicators of NCCL 2.28.9. There ncclGroupEndInternal
 * (src/group.cc) marks the communicator as in progress, starts a thread that does the work, and
 * returns ncclInProgress; the functions that call it return different values:
 *
 *   ncclCommSplit (src/init.cc) and ncclCommWindowRegister (src/dev_runtime.cc) return ncclSuccess,
 *     because NCCLCHECK(ncclGroupEndInternal()) drops ncclInProgress;
 *   ncclCommInitRankConfig, ncclCommFinalize (src/init.cc) and the collectives (ncclEnqueueCheck in
 *     src/enqueue.cc) return what ncclCommGetAsyncError says, so ncclInProgress;
 *   ncclGroupEnd (src/group.cc) returns ncclInProgress;
 *   ncclCommRegister, ncclCommDeregister (src/register/register.cc), ncclCommWindowDeregister and
 *     ncclMemAlloc start no thread: what they return is final.
 *
 * The fake starts no thread either. Only ncclCommGetAsyncError lets the work go on, so a caller
 * that does not ask never gets its result.
 *
 *   FAKE_NCCL_VERSION=N     the value of ncclGetVersion
 *   FAKE_NCCL_FAULT=WHAT    rank 1: init-hangs, init-fails, split-hangs, split-fails, window-hangs,
 *                           window-fails, op-hangs, op-fails, wrong, dies; the last four at its
 *                           FAKE_NCCL_AT-th operation (default 3)
 *   FAKE_NCCL_BUSY=1        calls inside a group return ncclInProgress
 *
 * Two ranks of one host (NCCL_HOSTID) on one GPU are refused, as NCCL refuses them. */
#include <fcntl.h>
#include <nccl.h>
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

static struct operation group; /* between ncclGroupStart and ncclGroupEnd */
static cudaStream_t group_stream;
static int grouped;

static void reduce(const struct operation *o, size_t first)
{
    unsigned char *out = fake_gpu_host(o->recv);
    const struct ncclComm *c = o->comm;
    const double share = o->op == ncclAvg ? rounded(1.0 / c->size, o->dtype) : 1;
    for (size_t i = 0; i < o->count; i++) {
        double v = rounded(get(c->all[0].area, first + i, o->dtype) * share, o->dtype);
        for (int r = 1; r < c->size; r++) {
            const double more = get(c->all[r].area, first + i, o->dtype) * share;
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
    memset(me->sent, 0, sizeof me->sent);
    for (int i = 0; i < o->move_count; i++) {
        if (!o->moves[i].sends)
            continue;
        me->sent[o->moves[i].peer] = at + 1;
        memcpy(me->area + at, fake_gpu_host(o->moves[i].from), o->moves[i].bytes);
        at += o->moves[i].bytes;
    }
    if (o->what != MOVE && (o->what != BROADCAST || c->rank == o->root))
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
            reduce(o, 0);
        break;
    case REDUCE_SCATTER:
        reduce(o, (size_t)c->rank * o->count);
        break;
    case ALL_GATHER:
        for (int r = 0; r < c->size; r++)
            memcpy(out + (size_t)r * part, c->all[r].area, part);
        break;
    case BROADCAST:
        memmove(out, c->all[o->root].area, part);
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
    if (c->aborted)
        return 1;
    if (o->seq == 0)
        o->seq = ++c->seq;
    if (c->fault && o->seq >= (uint64_t)c->at) {
        if (strcmp(c->fault, "dies") == 0)
            raise(SIGKILL);
        if (strcmp(c->fault, "op-fails") == 0)
            c->state = ncclRemoteError;
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
    deliver(o);
    atomic_store(&c->all[c->rank].done, o->seq);
    return 1;
}

/* ncclEnqueueCheck (src/enqueue.cc): the thread puts the operation on the stream. */
static ncclResult_t put(const struct operation *o, cudaStream_t stream)
{
    struct ncclComm *c = o->comm;
    const ncclResult_t ready = ensure_ready(c);
    if (ready != ncclSuccess)
        return ready;
    c->launch = *o;
    c->stream = stream;
    begin(c, LAUNCH);
    return c->state;
}

static void finish_launch(struct ncclComm *c)
{
    fake_gpu_put(c->stream, progress, &c->launch, sizeof c->launch);
    end(c, ncclSuccess);
}

ncclResult_t ncclGetVersion(int *version)
{
    const char *text = getenv("FAKE_NCCL_VERSION");
    *version = text ? (int)strtol(text, NULL, 10) : NCCL_VERSION_CODE;
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
    return config->blocking != 0 ? ncclInvalidArgument : join(comm, nranks, id.internal, rank);
}

/* All ranks of comm must call this. Until they have, the parent is in progress and there is no
 * child, and yet the call succeeds. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                           ncclConfig_t *config)
{
    char path[NCCL_UNIQUE_ID_BYTES];
    const ncclResult_t ready = ensure_ready(comm);
    if (config->blocking != 0 || color != 0 || key != comm->rank || ready != ncclSuccess)
        return ready != ncclSuccess ? ready : ncclInvalidArgument;
    *newcomm = NULL;
    name_split(comm, atomic_load(&comm->all[comm->rank].splits) + 1, path, sizeof path);
    if (comm->rank == 0 && make_file(path) != ncclSuccess)
        return ncclSystemError;
    atomic_fetch_add(&comm->all[comm->rank].splits, 1);
    comm->split = newcomm;
    begin(comm, SPLIT);
    return ncclSuccess;
}

static void (*const finish[])(struct ncclComm *) = {
    [INIT] = finish_init,     [SPLIT] = finish_split,       [WINDOW] = finish_window,
    [LAUNCH] = finish_launch, [FINALIZE] = finish_finalize,
};

/* The first answer after a call is always that it is in progress. CommCheck refuses NULL. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    if (!c || !state)
        return ncclInvalidArgument;
    *state = c->state;
    if (c->job != IDLE)
        finish[c->job](c);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    const ncclResult_t ready = ensure_ready(c);
    if (ready != ncclSuccess)
        return ready;
    begin(c, FINALIZE);
    return c->state;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    if (c->job != IDLE)
        return ncclInvalidArgument;
    munmap(c->all, RANKS * sizeof *c->all);
    free(c);
    return ncclSuccess;
}

/* Operations in progress end when their stream reaches them. NCCL's thread has ended, and writes no
 * variable of the caller any more. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    c->aborted = true;
    c->job = IDLE;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
    *ptr = fake_gpu_alloc(size);
    return *ptr ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclMemFree(void *ptr)
{
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    (void)comm;
    (void)size;
    *handle = buff;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    (void)comm;
    return handle ? ncclSuccess : ncclInvalidArgument;
}

/* All ranks of comm must call this; like ncclCommSplit it succeeds before there is a window.
 * Without symmetric memory (NCCL_P2P_DISABLE) there is none at all: this is as 2.29 and 2.30 do it.
 */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                                    int flags)
{
    *win = NULL;
    if (!buff || size == 0 || flags != NCCL_WIN_COLL_SYMMETRIC)
        return ncclInvalidArgument;
    if (getenv("NCCL_P2P_DISABLE"))
        return ncclSuccess;
    const ncclResult_t ready = ensure_ready(comm);
    if (ready != ncclSuccess)
        return ready;
    comm->window = win;
    comm->buffer = buff;
    atomic_fetch_add(&comm->all[comm->rank].windows, 1);
    begin(comm, WINDOW);
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    return comm && win ? ncclSuccess : ncclInvalidArgument;
}

#define ARRAYS .send = sendbuff, .recv = recvbuff, .count = count, .dtype = datatype, .comm = comm

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    return put(&(struct operation){.what = REDUCE, .op = op, .root = -1, ARRAYS}, stream);
}

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
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
    return getenv("FAKE_NCCL_BUSY") ? ncclInProgress : ncclSuccess;
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
