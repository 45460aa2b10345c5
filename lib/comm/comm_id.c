#include "comm/comm_id.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

int ddp_comm_id_make(struct ddp_comm_ids *ids, const struct ddp_comm *parent,
                     struct ddp_comm *child, struct ddp_err *err)
{
    uint64_t hash = (uint64_t)child->size;
    for (int r = 0; r < child->size; r++)
        hash = ddp_mix64(hash ^ (uint64_t)child->world_rank[r]) + 1;
    size_t i = 0;
    while (i < ids->count && ids->made[i].ranks_hash != hash)
        i++;
    if (i == ids->count) {
        struct ddp_comm_made *more = ddp_realloc_array(ids->made, i + 1, sizeof *more);
        if (more == NULL)
            return ddp_fail(err, DDP_ENOMEM, "no memory for a communicator");
        more[i] = (struct ddp_comm_made){.ranks_hash = hash};
        ids->made = more;
        ids->count++;
    }
    child->id = ddp_mix64(hash ^ ddp_mix64(parent->id + ++ids->made[i].count)) | 1;
    return 0;
}

void ddp_comm_ids_release(struct ddp_comm_ids *ids)
{
    free(ids->made);
    *ids = (struct ddp_comm_ids){.made = NULL};
}
