/* Ids of groups. A group has the same id on all its ranks, and two groups almost certainly have
 * different ids. Ranks compute ids without messages. Reports on a hang use the ids to recognise a
 * group on all its ranks. */
#ifndef DDP_COMM_COMM_ID_H
#define DDP_COMM_COMM_ID_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of groups that the parent has made of one set of ranks. */
struct ddp_comm_made {
    uint64_t ranks_hash, count;
};

/* The groups that a communicator has made. All bytes zero: none. */
struct ddp_comm_ids {
    struct ddp_comm_made *made; /* [count] */
    size_t count;
};

/* Sets child->id (never 0) from the parent's id, the child's world_rank [size], and the number of
 * groups that the parent made of these ranks before. This number is the same on all members,
 * because every member was in all of these groups. Returns DDP_ENOMEM or 0. */
int ddp_comm_id_make(struct ddp_comm_ids *ids, const struct ddp_comm *parent,
                     struct ddp_comm *child, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_comm_ids_release(struct ddp_comm_ids *ids);

#ifdef __cplusplus
}
#endif
#endif
