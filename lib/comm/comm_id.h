/* Ids of groups: a word that is the same on all ranks of a group and, as good as certainly, differs
 * from every other group's; made without a word between the ranks. For comm.c; recorders use it to
 * compare what ranks do. */
#ifndef DDP_COMM_COMM_ID_H
#define DDP_COMM_COMM_ID_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many groups of these very ranks there were. */
struct ddp_comm_made {
    uint64_t ranks_hash, count;
};

/* What a communicator remembers of the groups it made. All zero bytes is an empty one. */
struct ddp_comm_ids {
    struct ddp_comm_made *made; /* [count] */
    size_t count;
};

/* Sets child->id (never 0) from the parent's, child's world_rank [size], and how many groups of
 * these ranks the parent made before: every one of them was in each. DDP_ENOMEM. */
int ddp_comm_id_make(struct ddp_comm_ids *ids, const struct ddp_comm *parent,
                     struct ddp_comm *child, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_comm_ids_release(struct ddp_comm_ids *ids);

#ifdef __cplusplus
}
#endif
#endif
