/* The choice of `auto`: one table for all collectives, by message size, ranks, memory and distance.
 * It depends on no measurement at run time. ddp_coll_auto in coll.h uses it, and `--explain-auto`
 * prints it. Nothing here runs a collective. */
#ifndef DDP_COLL_COLL_AUTO_H
#define DDP_COLL_COLL_AUTO_H

#include "base/strbuf.h"
#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The distance between two ranks, by the round trip of a cache line between them
 * (results/notes/collectives.md). UNKNOWN is treated as CACHE. Ranks that have a core each use
 * UNKNOWN, so that no choice depends on a measurement. If there are more ranks than cores, a rank
 * that waits yields its core, and a round trip takes microseconds. The algorithms that are chosen
 * then sum in the same order as the others. */
enum ddp_distance {
    DDP_DISTANCE_UNKNOWN,
    DDP_DISTANCE_CORE,  /* two threads of one core: below 75 ns */
    DDP_DISTANCE_CACHE, /* cores that share a cache: below 400 ns */
    DDP_DISTANCE_FAR,
    DDP_DISTANCE_OVERSUBSCRIBED, /* more ranks than cores: ranks take turns */
    DDP_DISTANCE_COUNT
};
const char *ddp_distance_name(enum ddp_distance d); /* "unknown", "core", ..., "oversubscribed" */
/* Returns the distance for a round-trip time in nanoseconds, UNKNOWN for NaN. */
enum ddp_distance ddp_distance_of(double pingpong_ns);

/* Like ddp_coll_auto, for a given distance. ddp_coll_auto passes the distance for more ranks than
 * cores if that is the case, else UNKNOWN. */
const struct ddp_coll_alg *ddp_coll_auto_at(const struct ddp_comm *comm,
                                            const struct ddp_coll_shape *shape,
                                            enum ddp_distance distance, struct ddp_err *err);

/* The properties that a choice depends on, for use without a communicator. Groups of a world on
 * several hosts share no flags. */
struct ddp_auto_query {
    enum ddp_coll coll;
    const struct ddp_backend *backend;
    /* hosts: number of hosts that the ranks run on. world_hosts: number of hosts of the world, if
     * the ranks are a group of it; 0 means 1. */
    int ranks, hosts, world_hosts;
    bool registered;
    bool open_mpi; /* the library behind the backend is Open MPI */
    enum ddp_distance distance;
};
/* Appends the rows of the table that apply to `query` as lines of text: range of message sizes,
 * algorithm and reason. If the algorithm of a row may refuse for another reason than the size, the
 * rows that are used then follow. */
void ddp_coll_auto_explain(const struct ddp_auto_query *query, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
