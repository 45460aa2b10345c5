/* Waits for NCCL. The NCCL communicators are non-blocking, so no NCCL call waits inside the
 * library. Every wait is a loop in this file that also checks the abort word, the side channel and
 * the deadline. NCCL cannot replace these checks, because only its network transports detect a dead
 * peer, and none detects a stopped one. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "comm/nccl/backend_nccl_impl.inc.h"
#include "comm/waiter.h"

/* Number of polls between two checks of the side channel and of NCCL's error state. */
#define CHECK_EVERY 512

/* CommAbort also ends the GPU kernels of collectives, which would otherwise wait for their peers
 * for ever. */
void ddp_nccl_abort(struct ddp_comm *comm)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    s->world->failed = true;
    if (s->comm != NULL)
        (void)s->world->api->CommAbort(s->comm);
    s->comm = NULL;
}

static int fail(struct ddp_comm *comm, ncclResult_t result, const char *function,
                struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_nccl *api = s->world->api;
    const char *last = api->GetLastError(s->comm);
    char clean[300];
    ddp_printable(last != NULL ? last : "", clean, sizeof clean);
    const bool ours = result == ncclInvalidArgument || result == ncclInvalidUsage;
    const int code = result == ncclRemoteError ? DDP_ELOST : ours ? DDP_EINTERNAL : DDP_EUNAVAIL;
    ddp_fail(err, code, "%s failed: %s%s%s", function, api->GetErrorString(result),
             clean[0] != '\0' ? ": " : "", clean);
    if (code != DDP_ELOST)
        ddp_hint(err, "set NCCL_DEBUG=INFO to see NCCL's own messages");
    ddp_nccl_abort(comm);
    return code;
}

/* Returns the communicator through which this rank detects lost ranks while waiting for the GPU. */
static struct ddp_comm *side_channel_of(struct ddp_comm *comm)
{
    return comm->control != NULL ? comm->control : comm;
}

/* Runs one step of a wait and checks for lost ranks. Aborts the NCCL communicator on failure. */
static int step(struct ddp_comm *comm, struct ddp_waiter *w, struct ddp_err *err)
{
    struct ddp_comm *control = side_channel_of(comm);
    int rc = ddp_wait_step(w, comm, -1, err);
    if (rc == 0 && w->polls % CHECK_EVERY == 0 && control->backend->look != NULL)
        rc = control->backend->look(control, err);
    if (rc != 0)
        ddp_nccl_abort(comm);
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
