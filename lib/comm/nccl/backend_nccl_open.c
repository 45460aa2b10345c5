/* Opens, splits and closes NCCL's own communicators. */
#include <stdlib.h>

#include "base/mem.h"
#include "comm/nccl/backend_nccl_impl.inc.h"

int ddp_nccl_open(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_nccl *api = s->world->api;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
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
    config.blocking = 0;
    ddp_flight_phase(comm->flight, "ncclCommInitRankConfig");
    ncclResult_t made = api->CommInitRankConfig(&s->comm, comm->size, all[0], comm->rank, &config);
    rc = ddp_nccl_settle(comm, made, "ncclCommInitRankConfig", err);
out:
    free(all);
    return rc;
}

int ddp_nccl_split(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(child);
    const struct ddp_nccl *api = s->world->api;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ddp_flight_phase(child->flight, "ncclCommSplit");
    const ncclResult_t made =
        api->CommSplit(ddp_nccl_state_of(parent)->comm, 0, child->rank, &s->comm, &config);
    /* ncclCommGetAsyncError of the parent reports "in progress" until NCCL's thread has set
     * s->comm. */
    DDP_TRY(ddp_nccl_settle(parent, made, "ncclCommSplit", err));
    return ddp_nccl_settle(child, made, "ncclCommSplit", err);
}

/* All ranks must call ncclCommFinalize. After a failure another rank may never call it, so the
 * communicator is aborted instead. */
void ddp_nccl_close(struct ddp_comm *comm)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    const struct ddp_nccl *api = s->world->api;
    struct ddp_err ignored = DDP_ERR_INIT;
    if (s->comm == NULL)
        return;
    if (s->world->failed ||
        ddp_nccl_settle(comm, api->CommFinalize(s->comm), "ncclCommFinalize", &ignored) != 0) {
        ddp_nccl_abort(comm);
        return;
    }
    (void)api->CommDestroy(s->comm);
    s->comm = NULL;
}
