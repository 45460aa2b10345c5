/* Placements of the sums of dense gradients, as in MXNet's KVStore. A placement says which ranks
 * add up which part of the gradients. To add a placement, write it in aggregate.c and add it to
 * both arrays in ddp_aggregates().
 *
 *   allreduce    one all-reduce of the whole array
 *   local        reduce to rank 0, then broadcast
 *   device       each tensor (key) is reduced at one rank, its owner, and broadcast from there.
 *                Keys are assigned from the largest to the smallest. Each key goes to the rank
 *                that owns the fewest elements so far
 *   dist-device  reduce within each host, then to owners as in `device`, but among the leaders of
 *                the hosts. Keys of 1e6 elements and more are cut evenly over all leaders. Then
 *                broadcast within each host
 *
 * The two halves of an all-reduce are also written as placements, which --aggregate does not offer
 * (ddp_aggregate_scatter, ddp_aggregate_gather).
 *
 * A placement is a list of collectives on groups of ranks. The list is planned once and run in
 * every step. All ranks end with bit-identical sums. Placements add in different orders, so the
 * results of two placements may differ in rounding. Source: MXNet 1.x, kvstore_local.h, comm.h
 * (CommDevice::InitBuffersAndComm), kvstore_dist.h (EncodeDefaultKey,
 * MXNET_KVSTORE_BIGARRAY_BOUND). */
#ifndef DDP_EXCHANGE_AGGREGATE_H
#define DDP_EXCHANGE_AGGREGATE_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_AGGREGATE_BIG_KEY 1000000 /* Elements; as in MXNet. */

/* Finds an algorithm of all-reduce by its name. If name is NULL or "auto", sets *out to NULL, which
 * means that ddp_coll_plan_init chooses. Returns DDP_EUSAGE if the name is unknown. */
int ddp_allreduce_find(const char *name, const struct ddp_coll_alg **out,
                       struct ddp_err *err) DDP_MUST_CHECK;

/* Groups of ranks by host (comm/hosts.h). */
struct ddp_host_groups {
    /* host: the ranks of this host. leaders: the group of the lowest ranks of all hosts. `leaders`
     * is NULL on ranks outside this group, and on all ranks if there is only one host. */
    struct ddp_comm *host, *leaders;
};
/* Opens the groups. Collective over comm. */
int ddp_host_groups_open(struct ddp_comm *comm, struct ddp_host_groups *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_host_groups_close(struct ddp_host_groups *groups); /* Accepts a zeroed struct. */

/* Arguments of ddp_aggregation_create. */
struct ddp_aggregate_setup {
    struct ddp_comm *comm;
    float *data; /* Array to sum, [n]. */
    size_t n;
    /* Offset and length of each key (tensor) in data, ascending, [key_count]. */
    const size_t *offsets, *counts;
    int key_count;
    const struct ddp_host_groups *hosts; /* Borrowed. Only if needs_hosts. */
    /* Algorithm of every all-reduce, reduce-scatter and all-gather. NULL: auto. */
    const char *algorithm;
};

struct ddp_aggregation; /* The planned collectives of one placement for one array. */

struct ddp_aggregate {
    const char *name, *summary;
    bool needs_hosts;
    /* Adds the collectives of the placement to `a`. */
    int (*plan)(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                struct ddp_err *err);
};

/* Returns all placements, with allreduce first. The array ends with NULL. */
const struct ddp_aggregate *const *ddp_aggregates(void);

/* Reduce-scatter and all-gather of data in place. setup->n must be a multiple of the number of
 * ranks P. The array is cut into P chunks of equal size. After a scatter, chunk r of rank r has the
 * sums over the ranks, and the other chunks are unchanged. A gather copies chunk r of rank r to all
 * ranks. */
extern const struct ddp_aggregate ddp_aggregate_scatter, ddp_aggregate_gather;

/* Plans the collectives of a placement. Not collective. Returns DDP_EUSAGE if the algorithm is
 * unknown or if the reduce-scatter or the all-gather of the placement has no algorithm of this
 * name. Returns DDP_EUNAVAIL if the algorithm does not support this communicator or array, and
 * DDP_ENOMEM if memory runs out. */
int ddp_aggregation_create(const struct ddp_aggregate *how, const struct ddp_aggregate_setup *setup,
                           struct ddp_aggregation **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_aggregation_destroy(struct ddp_aggregation *a);
/* Runs the planned collectives. Collective. Does not allocate, except in backend shm for a message
 * that arrives before its receive is posted. */
int ddp_aggregation_run(struct ddp_aggregation *a, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the bytes that other ranks received from this rank since create. The bytes of algorithms
 * that send messages are counted. *counted becomes true if all algorithms of the plan send
 * messages. For an algorithm that sends no messages, the number of bytes is modelled. All-reduce:
 * 2(P-1)/P of the array. Reduce-scatter and all-gather: (P-1)/P of the array. Reduce: the array, or
 * 0 at the root. Broadcast: P-1 times the array at the root, else 0. */
double ddp_aggregation_wire_bytes(const struct ddp_aggregation *a, bool *counted);

/* Assigns `count` keys to owners, from the largest key to the smallest. Each key goes to the owner
 * that has the fewest elements so far, or to the lowest of several such owners. owner [count]
 * receives the result, which is the same on all ranks. */
void ddp_aggregate_owners(const size_t *counts, int count, int owners, int *owner);

#ifdef __cplusplus
}
#endif
#endif
