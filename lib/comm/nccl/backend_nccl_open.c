/* Opens, splits and closes NCCL's own communicators. */
#include <stdlib.h>

#include "base/mem.h"
#include "comm/nccl/backend_nccl_impl.inc.h"

/* The arguments of ncclCommInitRankConfig and ncclCommSplit. */
struct open_args {
    const struct ddp_nccl *api;
    ncclComm_t *out;
    ncclComm_t parent; /* of a split */
    int rank, size;
    ncclUniqueId id;
    ncclConfig_t config;
};

static ncclConfig_t config_of(const struct ddp_nccl_state *s)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = !s->world->options.nonblocking;
    return config;
}

static ncclResult_t init_rank(void *arg)
{
    struct open_args *a = arg;
    return a->api->CommInitRankConfig(a->out, a->size, a->id, a->rank, &a->config);
}

static ncclResult_t split(void *arg)
{
    struct open_args *a = arg;
    return a->api->CommSplit(a->parent, 0, a->rank, a->out, &a->config);
}

int ddp_nccl_open(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_nccl *api = s->world->api;
    ncclUniqueId mine = {.internal = ""}, *all;
    int rc = DDP_NEW(&all, (size_t)comm->size, err);
    if (rc == 0 && comm->rank == 0) {
        const ncclResult_t made = api->GetUniqueId(&mine);
        if (made != ncclSuccess)
            rc = ddp_fail(err, DDP_EUNAVAIL, "ncclGetUniqueId: %s: %s", api->GetErrorString(made),
                          api->GetLastError(NULL));
    }
    DDP_TRY_GOTO(ddp_comm_agree(comm->control, rc, err), out);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(comm->control, &mine, all, sizeof mine, err), out);
    ddp_flight_phase(comm->flight, "ncclCommInitRankConfig");
    const struct open_args args = {.api = api,
                                   .out = &s->comm,
                                   .rank = comm->rank,
                                   .size = comm->size,
                                   .id = all[0],
                                   .config = config_of(s)};
    rc = ddp_nccl_call(comm, init_rank, &args, sizeof args, "ncclCommInitRankConfig", err);
out:
    free(all);
    return rc;
}

int ddp_nccl_split(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(child);
    const struct open_args args = {.api = s->world->api,
                                   .out = &s->comm,
                                   .parent = ddp_nccl_state_of(parent)->comm,
                                   .rank = child->rank,
                                   .config = config_of(s)};
    ddp_flight_phase(child->flight, "ncclCommSplit");
    /* ncclCommGetAsyncError of the parent reports "in progress" until NCCL's thread has set
     * s->comm. ddp_nccl_call waits until then. After that, ddp_nccl_settle can wait until the child
     * is ready. */
    DDP_TRY(ddp_nccl_call(parent, split, &args, sizeof args, "ncclCommSplit", err));
    return ddp_nccl_settle(child, ncclSuccess, "ncclCommSplit", err);
}

struct close_args {
    const struct ddp_nccl *api;
    ncclComm_t comm;
};

static ncclResult_t finalize(void *arg)
{
    const struct close_args *a = arg;
    return a->api->CommFinalize(a->comm);
}

/* All ranks must call ncclCommFinalize. After a failure another rank may never call it, so
 * ddp_nccl_close aborts the communicator instead. */
void ddp_nccl_close(struct ddp_comm *comm)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    struct ddp_err ignored = DDP_ERR_INIT;
    const struct close_args args = {s->world->api, s->comm};
    if (s->comm == NULL)
        return;
    if (s->world->failed ||
        ddp_nccl_call(comm, finalize, &args, sizeof args, "ncclCommFinalize", &ignored) != 0) {
        ddp_nccl_abort(comm);
        return;
    }
    (void)s->world->api->CommDestroy(s->comm);
    s->comm = NULL;
}
