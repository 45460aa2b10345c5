#include "comm/bootstrap.h"

#include <stdlib.h>

#include "base/mem.h"
#include "comm/backend.h"
#include "comm/control_tcp.h"
#include "launch/launcher.h"

static int choose(const struct ddp_comm *comm, const struct ddp_backend **out, struct ddp_err *err)
{
    struct ddp_launcher launcher;
    *out = ddp_backend_find("shm");
    if (comm->rank_info.segment != NULL)
        return 0;
    DDP_TRY(ddp_launcher_detect(&launcher, err));
    *out = launcher.over_tcp ? &ddp_control_tcp : ddp_backend_find("mpi");
    return 0;
}

int ddp_bootstrap_open(struct ddp_comm *comm, const struct ddp_comm_options *options,
                       struct ddp_err *err)
{
    const struct ddp_backend *backend;
    struct ddp_comm_options for_control = *options;
    struct ddp_comm *control;
    DDP_TRY(choose(comm, &backend, err));
    for_control.heap_bytes = 0;
    for_control.inside_host = true; /* DDPBENCH_SIMULATE_HOSTS does not apply to the side channel */
    DDP_TRY(ddp_comm_create(backend, &comm->rank_info, &for_control, &control, err));
    /* ddp_wait_expired calls on_expire before an abort, because the abort may end the process. An
     * abort of the TCP side channel does not end the process. ddp_wait_expired then returns the
     * error to its caller, which reports the error. on_expire would report the error a second time,
     * so it is removed. */
    if (backend == &ddp_control_tcp)
        comm->on_expire = NULL;
    comm->control = control;
    comm->flight = control->flight;
    return 0;
}

/* The array child->world_rank holds ranks of the world, but ddp_comm_group needs ranks of the
 * parent. */
int ddp_bootstrap_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    int *ranks;
    DDP_TRY(DDP_NEW(&ranks, (size_t)child->size, err));
    for (int i = 0; i < child->size; i++)
        ranks[i] = ddp_comm_rank_of(parent, child->world_rank[i]);
    const int rc = ddp_comm_group(parent->control, ranks, child->size, &child->control, err);
    free(ranks);
    return rc;
}

void ddp_bootstrap_close(struct ddp_comm *comm)
{
    ddp_comm_destroy(comm->control);
    comm->control = NULL;
}
