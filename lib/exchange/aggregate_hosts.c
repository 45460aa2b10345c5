/* Opens and closes the groups of ranks by host (struct ddp_host_groups). */
#include <stdlib.h>

#include "base/mem.h"
#include "comm/hosts.h"
#include "comm/shm/comm_shm.h"
#include "exchange/aggregate.h"

/* Opens a group for the thread that owns `comm`. The group uses the flight recorder and the spin
 * setting of comm. */
static int open_group(struct ddp_comm *comm, const int *ranks, int n, struct ddp_comm **out,
                      struct ddp_err *err)
{
    DDP_TRY(ddp_comm_group(comm, ranks, n, out, err));
    (*out)->flight = comm->flight;
    if (comm->shm != NULL && (*out)->shm != NULL)
        (*out)->shm->spin = comm->shm->spin;
    return 0;
}

/* Opens the groups. members [comm->size] is scratch memory. */
static int open_groups(struct ddp_comm *comm, int *members, struct ddp_host_groups *groups,
                       struct ddp_err *err)
{
    const struct ddp_hosts *hosts = comm->hosts;
    int n = 0;
    for (int r = 0; r < comm->size; r++)
        if (hosts == NULL || hosts->of[r] == hosts->mine)
            members[n++] = r;
    const bool leads = members[0] == comm->rank;
    DDP_TRY(open_group(comm, members, n, &groups->host, err));
    if (!leads || hosts == NULL || hosts->count == 1)
        return 0;
    return open_group(comm, hosts->leader, hosts->count, &groups->leaders, err);
}

int ddp_host_groups_open(struct ddp_comm *comm, struct ddp_host_groups *out, struct ddp_err *err)
{
    struct ddp_host_groups groups = {0};
    int *members = ddp_calloc((size_t)comm->size, sizeof *members);
    if (members == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the hosts of %d ranks", comm->size);
    const int rc = open_groups(comm, members, &groups, err);
    free(members);
    if (rc != 0)
        ddp_host_groups_close(&groups);
    else
        *out = groups;
    return rc;
}

void ddp_host_groups_close(struct ddp_host_groups *groups)
{
    ddp_comm_destroy(groups->leaders);
    ddp_comm_destroy(groups->host);
    *groups = (struct ddp_host_groups){0};
}
