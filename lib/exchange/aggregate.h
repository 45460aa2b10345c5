/* Where dense gradients are added up, as MXNet's KVStore places it: the same sum on all ranks,
 * another way there. One file aggregate.c, one line in its table adds a placement.
 *
 *   allreduce    every rank has a share of the work
 *   local        reduced at rank 0, which broadcasts
 *   device       each tensor (key) has an owner, given by size: largest first, each to the rank
 *                that owns least. Reduced at the owner, broadcast from there
 *   dist-device  reduced within each host, then keys have owners among the hosts; keys of 1e6
 *                elements and more are cut evenly over all hosts
 *
 * A placement is a list of collectives on groups, made once and run in every step. All ranks end
 * with bit-identical sums; another placement adds in another order, so it differs in rounding.
 * Source: MXNet 1.x, kvstore_local.h, comm.h (CommDevice::InitBuffersAndComm), kvstore_dist.h
 * (EncodeDefaultKey, MXNET_KVSTORE_BIGARRAY_BOUND). What it does not do: average, compress. */
#ifndef DDP_EXCHANGE_AGGREGATE_H
#define DDP_EXCHANGE_AGGREGATE_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_AGGREGATE_BIG_KEY 1000000 /* elements; MXNET_KVSTORE_BIGARRAY_BOUND */

/* Groups by host (comm/hosts.h). host: the ranks of this one; leaders: the lowest rank of each
 * host, NULL on other ranks and where there is one host. */
struct ddp_host_groups {
    struct ddp_comm *host, *leaders;
};
/* Collective over comm. Takes one of the backend's channels, two where leaders is there. */
int ddp_host_groups_open(struct ddp_comm *comm, struct ddp_host_groups *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_host_groups_close(struct ddp_host_groups *groups); /* a zeroed one is fine */

/* data [n]; keys: key_count parts [offset, offset + count) of data, in order. hosts: borrowed, for
 * placements that need them. algorithm: of every all-reduce, NULL: auto. */
struct ddp_aggregate_setup {
    struct ddp_comm *comm;
    float *data;
    size_t n;
    const size_t *offsets, *counts;
    int key_count;
    const struct ddp_host_groups *hosts;
    const char *algorithm;
};

struct ddp_aggregation; /* one placement made ready for one array */

struct ddp_aggregate {
    const char *name, *summary;
    bool needs_hosts;
    /* Adds the collectives. */
    int (*plan)(struct ddp_aggregation *a, const struct ddp_aggregate_setup *setup,
                struct ddp_err *err);
};

const struct ddp_aggregate *const *ddp_aggregates(void); /* NULL-terminated; allreduce first */

/* Not collective. DDP_EUSAGE: unknown algorithm; DDP_EUNAVAIL: it cannot. */
int ddp_aggregation_create(const struct ddp_aggregate *how, const struct ddp_aggregate_setup *setup,
                           struct ddp_aggregation **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_aggregation_destroy(struct ddp_aggregation *a);
/* Collective. No allocation. */
int ddp_aggregation_run(struct ddp_aggregation *a, struct ddp_err *err) DDP_MUST_CHECK;
/* Bytes that others took from this rank, since create. Counted where algorithms send messages;
 * elsewhere (*counted false) what the collectives must move: allreduce 2(P-1)/P of the array,
 * reduce the array unless here, broadcast P-1 times the array from here. */
double ddp_aggregation_wire_bytes(const struct ddp_aggregation *a, bool *counted);

/* owner [count]: largest first, each to the one that owns least, ties to the lowest; the same
 * everywhere. */
void ddp_aggregate_owners(const size_t *counts, int count, int owners, int *owner);

#ifdef __cplusplus
}
#endif
#endif
