/* The choice of `auto`. One table for all collectives chooses the algorithm by message size, number
 * of ranks, memory and distance. ddp_coll_auto (coll.h) uses the table, and `--explain-auto` prints
 * it. */
#ifndef DDP_COLL_COLL_AUTO_H
#define DDP_COLL_COLL_AUTO_H

#include "base/strbuf.h"
#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The distance between two ranks, measured as the round-trip time of a cache line between them
 * (results/notes/collectives.md). UNKNOWN is treated as CACHE. If each rank has its own core,
 * `auto` uses UNKNOWN, so that its choice does not depend on a measurement. If there are more ranks
 * than cores (OVERSUBSCRIBED), a waiting rank yields its core and a round trip takes microseconds.
 * The algorithms for OVERSUBSCRIBED sum in the same order as those for other distances. */
enum ddp_distance {
    DDP_DISTANCE_UNKNOWN,
    DDP_DISTANCE_CORE,  /* two threads of one core: below 75 ns */
    DDP_DISTANCE_CACHE, /* cores that share a cache: below 400 ns */
    DDP_DISTANCE_FAR,
    DDP_DISTANCE_OVERSUBSCRIBED, /* more ranks than cores: ranks take turns */
    DDP_DISTANCE_COUNT
};
const char *ddp_distance_name(enum ddp_distance d); /* "unknown", "core", ..., "oversubscribed" */
/* Returns the distance for a round-trip time in nanoseconds, or UNKNOWN for NaN. */
enum ddp_distance ddp_distance_of(double pingpong_ns);

/* Like ddp_coll_auto, but for a given distance. ddp_coll_auto itself uses OVERSUBSCRIBED if the
 * ranks share memory and there are more ranks than cores, else UNKNOWN. */
const struct ddp_coll_alg *ddp_coll_auto_at(const struct ddp_comm *comm,
                                            const struct ddp_coll_shape *shape,
                                            enum ddp_distance distance, struct ddp_err *err);

/* The properties that a choice depends on, for use without a communicator. */
struct ddp_auto_query {
    enum ddp_coll coll;
    const struct ddp_backend *backend;
    /* hosts: number of hosts that the ranks run on. world_hosts: number of hosts of the world, if
     * the ranks are a part of the world; 0 means 1. If the world has several hosts, its groups do
     * not use shared memory. */
    int ranks, hosts, world_hosts;
    bool registered;
    bool open_mpi; /* the library behind the backend is Open MPI */
    enum ddp_distance distance;
};
/* Appends the rows of the table that apply to `query` as lines of text. A line shows a range of
 * message sizes, the algorithm and the reason. If an algorithm may refuse a call because of its
 * element type, the lines after it show the algorithms that are used instead. */
void ddp_coll_auto_explain(const struct ddp_auto_query *query, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
