/* Placement of the sums of dense gradients, after MXNet's KVStore. All placements give the same sum
 * on all ranks, by different collectives. To add one, write it in aggregate.c with one line in its
 * table.
 *
 *   allreduce    every rank sums a share
 *   local        reduce to rank 0, then broadcast
 *   device       each tensor (key) is reduced at its owner and broadcast from there. Keys are
 *                assigned by size: the largest first, each to the rank that owns the least
 *   dist-device  reduce within each host, then assign keys to owners among the hosts. Keys of
 *                1e6 elements and more are cut evenly over all hosts
 *
 * A placement is a list of collectives on groups, planned once and run in every step. All ranks end
 * with bit-identical sums. Placements add in different orders, so their results differ in rounding.
 * Averaging and compression happen elsewhere. Source: MXNet 1.x, kvstore_local.h, comm.h
 * (CommDevice::InitBuffersAndComm), kvstore_dist.h (EncodeDefaultKey,
 * MXNET_KVSTORE_BIGARRAY_BOUND). */
#ifndef DDP_EXCHANGE_AGGREGATE_H
#define DDP_EXCHANGE_AGGREGATE_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_AGGREGATE_BIG_KEY 1000000 /* elements; MXNET_KVSTORE_BIGARRAY_BOUND */

/* Groups of ranks by host (comm/hosts.h). */
struct ddp_host_groups {
    /* host: the ranks of this host. leaders: the lowest rank of each host; NULL on other ranks and
     * if there is only one host. */
    struct ddp_comm *host, *leaders;
};
/* Opens the groups. Collective over comm. Uses one channel of the backend, and a second one on
 * ranks that join `leaders`. */
int ddp_host_groups_open(struct ddp_comm *comm, struct ddp_host_groups *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_host_groups_close(struct ddp_host_groups *groups); /* Accepts a zeroed struct. */

/* Arguments of ddp_aggregation_create. */
struct ddp_aggregate_setup {
    struct ddp_comm *comm;
    float *data; /* Array to sum, [n]. */
    size_t n;
    /* Keys: ranges [offset, offset + count) of data in ascending order, [key_count]. */
    const size_t *offsets, *counts;
    int key_count;
    const struct ddp_host_groups *hosts; /* Borrowed; for placements with needs_hosts. */
    const char *algorithm;               /* Algorithm of every all-reduce. NULL: auto. */
};

struct ddp_aggregation; /* The planned collectives of one placement for one array. */

struct ddp_aggregate {
    const char *name, *summary;
    bool needs_hosts;
    /* Adds the collectives of the placement to `a`. */
    int (*plan)(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                struct ddp_err *err);
};

const struct ddp_aggregate *const *ddp_aggregates(void); /* NULL-terminated; allreduce first */

/* Not collective. Returns DDP_EUSAGE if the algorithm is unknown, DDP_EUNAVAIL if it does not
 * support this communicator or array. */
int ddp_aggregation_create(const struct ddp_aggregate *how, const struct ddp_aggregate_setup *setup,
                           struct ddp_aggregation **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_aggregation_destroy(struct ddp_aggregation *a);
/* Runs the planned collectives. Collective. Does not allocate. */
int ddp_aggregation_run(struct ddp_aggregation *a, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the bytes that other ranks received from this rank since create. They are counted if all
 * algorithms send messages (*counted true). Otherwise they are modelled as the bytes that the
 * collectives must move: all-reduce 2(P-1)/P of the array, reduce the whole array except at the
 * root, broadcast P-1 times the array at the root. */
double ddp_aggregation_wire_bytes(const struct ddp_aggregation *a, bool *counted);

/* Assigns `count` keys to owners: the largest key first, each to the owner with the least elements,
 * ties to the lowest owner. owner [count] receives the same result on all ranks. */
void ddp_aggregate_owners(const size_t *counts, int count, int owners, int *owner);

#ifdef __cplusplus
}
#endif
#endif
