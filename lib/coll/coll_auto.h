/* What `auto` takes: one table for all collectives, by message size, ranks, memory and distance,
 * never by a run-time measurement. For coll.h's ddp_coll_auto, and for who shows the table
 * (`--explain-auto`). What it does not do: run anything. */
#ifndef DDP_COLL_COLL_AUTO_H
#define DDP_COLL_COLL_AUTO_H

#include "base/strbuf.h"
#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far two ranks are from each other, by the round trip of a cache line between them. Measured
 * (research/peers.md): two threads of one core 49 ns; one cache for both 97 to 128 ns, on larger
 * chips 280; two chiplets 450 to 630. UNKNOWN is taken as CACHE, and is what ranks with a core each
 * have: no choice depends on a measurement. With more ranks than cores nothing is near: whoever
 * waits gives its core away, and that takes microseconds (struct ddp_comm_shm's crowded); what is
 * chosen there sums in the same order. */
enum ddp_distance {
    DDP_DISTANCE_UNKNOWN,
    DDP_DISTANCE_CORE,  /* below 75 ns */
    DDP_DISTANCE_CACHE, /* below 400 ns */
    DDP_DISTANCE_FAR,
    DDP_DISTANCE_CROWDED, /* more ranks than cores: a switch between them */
    DDP_DISTANCE_COUNT
};
const char *ddp_distance_name(enum ddp_distance d); /* "unknown", "core", ..., "crowded" */
/* NaN: UNKNOWN. */
enum ddp_distance ddp_distance_of(double pingpong_ns);

/* As ddp_coll_auto, which is this for CROWDED where the ranks are, else for UNKNOWN. */
const struct ddp_coll_alg *ddp_coll_auto_at(const struct ddp_comm *comm,
                                            const struct ddp_coll_shape *shape,
                                            enum ddp_distance distance, struct ddp_err *err);

/* What a choice depends on, where there is no communicator (yet). hosts: the ranks are on;
 * world_hosts: the ranks of the world are on, where these are a group; 0: one. Groups of a world on
 * several hosts have no shared flags. */
struct ddp_auto_query {
    enum ddp_coll coll;
    const struct ddp_backend *backend;
    int ranks, hosts, world_hosts;
    bool registered;
    bool open_mpi; /* the library behind the backend is Open MPI */
    enum ddp_distance distance;
};
/* Appends the rows of the table that can come true for `query`, as lines of text: range of message
 * sizes, algorithm, and why. Where an algorithm may still refuse (its limit is not only the size),
 * the rows after it follow, as what is taken then. */
void ddp_coll_auto_explain(const struct ddp_auto_query *query, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
