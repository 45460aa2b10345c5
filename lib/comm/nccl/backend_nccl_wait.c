/* Waits for NCCL. The thread of a rank does not wait for other ranks inside NCCL. A call on a
 * non-blocking communicator returns at once. A call on a blocking communicator runs in a thread of
 * its own if it may wait for other ranks. Every wait is a loop in this file that also checks the
 * abort word, the side channel and the deadline. NCCL cannot replace these checks, because only its
 * network transports detect a dead peer, and no transport detects a stopped peer. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "comm/nccl/backend_nccl_impl.inc.h"
#include "comm/waiter.h"

/* Number of polls between two checks of the side channel and of NCCL's error state. */
#define CHECK_EVERY 512

void ddp_nccl_drop_graph(struct ddp_nccl_state *s)
{
    struct ddp_graph *none = NULL, *graph;
    __atomic_exchange(&s->graph, &none, &graph, __ATOMIC_ACQ_REL);
    if (graph != NULL)
        s->world->device->streams->graph_destroy(graph);
}

/* ncclCommAbort also ends the GPU kernels of collectives, which would otherwise wait for their
 * peers for ever. ncclCommAbort waits for the stream, so this function first releases a held
 * stream. Two threads may call this function, but only one of them aborts. */
void ddp_nccl_abort(struct ddp_comm *comm)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    s->world->failed = true;
    s->world->device->streams->release(s->stream);
    if (s->world->stuck)
        return;
    ddp_nccl_drop_graph(s);
    ncclComm_t none = NULL, nccl;
    __atomic_exchange(&s->comm, &none, &nccl, __ATOMIC_ACQ_REL);
    if (nccl != NULL)
        (void)s->world->api->CommAbort(nccl);
}

static int fail(struct ddp_comm *comm, ncclResult_t result, const char *function,
                struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_nccl *api = s->world->api;
    const char *last = api->GetLastError(s->comm);
    char clean[300];
    ddp_printable(last != NULL ? last : "", clean, sizeof clean);
    const bool ours = result == ncclInvalidArgument;
    const int code = result == ncclRemoteError ? DDP_ELOST : ours ? DDP_EINTERNAL : DDP_EUNAVAIL;
    ddp_fail(err, code, "%s failed: %s%s%s", function, api->GetErrorString(result),
             clean[0] != '\0' ? ": " : "", clean);
    if (result == ncclInvalidUsage) /* for example if NCCL_ALGO allows no algorithm */
        ddp_hint(err, "check the variables NCCL_* of this run, such as NCCL_ALGO and NCCL_PROTO; "
                      "NCCL_DEBUG=INFO shows NCCL's own messages");
    else if (code != DDP_ELOST)
        ddp_hint(err, "set NCCL_DEBUG=INFO to see NCCL's own messages");
    ddp_nccl_abort(comm);
    return code;
}

/* Returns the communicator through which this rank detects lost ranks while waiting for the GPU. */
static struct ddp_comm *side_channel_of(struct ddp_comm *comm)
{
    return comm->control != NULL ? comm->control : comm;
}

/* Runs one step of a wait and checks for lost ranks. */
static int look(struct ddp_comm *comm, struct ddp_waiter *w, struct ddp_err *err)
{
    struct ddp_comm *control = side_channel_of(comm);
    int rc = ddp_wait_step(w, comm, -1, err);
    if (rc == 0 && w->polls % CHECK_EVERY == 0 && control->backend->look != NULL)
        rc = control->backend->look(control, err);
    return rc;
}

/* Does the same as look(), and aborts the NCCL communicator on failure. */
static int step(struct ddp_comm *comm, struct ddp_waiter *w, struct ddp_err *err)
{
    const int rc = look(comm, w, err);
    if (rc != 0)
        ddp_nccl_abort(comm);
    return rc;
}

/* A call that runs in a thread of its own. The rank's thread and this thread both use the struct,
 * and the thread that finishes last frees the struct. */
struct call {
    struct ddp_nccl_world *world;
    ncclResult_t (*run)(void *arg);
    ncclResult_t result;
    _Atomic(bool) done;
    _Atomic(int) users;
    max_align_t arg[];
};

static void call_release(struct call *c)
{
    if (atomic_fetch_sub(&c->users, 1) == 1)
        free(c);
}

static void *run_call(void *arg)
{
    struct call *c = arg;
    struct ddp_err ignored = DDP_ERR_INIT;
    /* If the GPU cannot be selected, the call of NCCL reports the error. */
    (void)!c->world->device->select(c->world->index, &ignored);
    c->result = c->run(c->arg);
    atomic_store_explicit(&c->done, true, memory_order_release);
    call_release(c);
    return NULL;
}

/* Starts the thread of a call. The thread blocks all signals, so that other threads handle them. */
static int start_call(struct call *c, struct ddp_err *err)
{
    sigset_t all, old;
    pthread_t thread;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int rc = pthread_create(&thread, &attr, run_call, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return rc == 0 ? 0 : ddp_fail_errno(err, DDP_EUNAVAIL, rc, "cannot start a thread for NCCL");
}

static int call_in_thread(struct ddp_comm *comm, struct call *c, const char *function,
                          struct ddp_err *err)
{
    struct ddp_waiter w;
    int rc = start_call(c, err);
    if (rc != 0) {
        free(c);
        ddp_nccl_abort(comm);
        return rc;
    }
    ddp_waiter_init(&w, side_channel_of(comm));
    w.sleeps_in_waits = true; /* the thread of the call may need this core */
    while (rc == 0 && !atomic_load_explicit(&c->done, memory_order_acquire))
        rc = look(comm, &w, err);
    const ncclResult_t result = rc == 0 ? c->result : ncclInternalError;
    if (rc != 0) {
        c->world->stuck = true;
        ddp_nccl_abort(comm);
    }
    call_release(c);
    return rc != 0 ? rc : ddp_nccl_settle(comm, result, function, err);
}

int ddp_nccl_call(struct ddp_comm *comm, ncclResult_t (*run)(void *arg), const void *arg,
                  size_t bytes, const char *function, struct ddp_err *err)
{
    struct ddp_nccl_world *world = ddp_nccl_state_of(comm)->world;
    struct call *c = ddp_calloc(1, sizeof *c + bytes);
    if (c == NULL) {
        ddp_nccl_abort(comm);
        return ddp_fail_memory(err, 1, sizeof *c + bytes, __func__);
    }
    *c = (struct call){.world = world, .run = run, .users = 2};
    memcpy(c->arg, arg, bytes);
    if (!world->options.nonblocking)
        return call_in_thread(comm, c, function, err);
    const int rc = ddp_nccl_settle(comm, run(c->arg), function, err);
    free(c);
    return rc;
}

int ddp_nccl_settle(struct ddp_comm *comm, ncclResult_t result, const char *function,
                    struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    struct ddp_waiter w;
    if (result == ncclSuccess) /* a thread of NCCL may still work, as after ncclCommSplit */
        result = ncclInProgress;
    ddp_waiter_init(&w, side_channel_of(comm));
    while (result == ncclInProgress) {
        ncclResult_t asked = s->world->api->CommGetAsyncError(s->comm, &result);
        if (asked != ncclSuccess)
            return fail(comm, asked, "ncclCommGetAsyncError", err);
        if (result == ncclInProgress)
            DDP_TRY(step(comm, &w, err));
    }
    return result == ncclSuccess ? 0 : fail(comm, result, function, err);
}

int ddp_nccl_wait(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_stream_ops *ops = s->world->device->streams;
    struct ddp_waiter w;
    int done = ops->query(s->stream, err);
    if (done > 0)
        return 0;
    ddp_waiter_init(&w, side_channel_of(comm));
    for (; done == 0; done = ops->query(s->stream, err)) {
        ncclResult_t state = ncclSuccess;
        DDP_TRY(step(comm, &w, err));
        if (w.polls % CHECK_EVERY != 0)
            continue;
        const ncclResult_t asked = s->world->api->CommGetAsyncError(s->comm, &state);
        if (asked != ncclSuccess)
            return fail(comm, asked, "ncclCommGetAsyncError", err);
        if (state != ncclSuccess && state != ncclInProgress)
            return fail(comm, state, "a collective", err);
    }
    if (done < 0)
        ddp_nccl_abort(comm);
    return done < 0 ? done : 0;
}
