/* The choice of an algorithm by `--algorithm auto`. One table for all collectives chooses the
 * algorithm by the message size and the properties in struct ddp_auto_query. ddp_coll_auto (coll.h)
 * uses the table, and `--explain-auto` prints it. */
#ifndef DDP_COLL_COLL_AUTO_H
#define DDP_COLL_COLL_AUTO_H

#include "base/strbuf.h"
#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The properties that a choice depends on, for use without a communicator. */
struct ddp_auto_query {
    enum ddp_coll coll;
    const struct ddp_backend *backend;
    /* `hosts`: number of hosts that the ranks run on. `world_hosts`: number of hosts of the world,
     * if the ranks are only a group of the world; 0 means 1. With backends mpi and ucx, "flat",
     * "direct" and "staged" need a world of one host. In a world of several hosts they do not run,
     * even if all ranks of the group are on one host. */
    int ranks, hosts, world_hosts;
    bool registered;
    bool open_mpi; /* the library behind the backend is Open MPI */
    /* True if there are more ranks than cores. A waiting rank then yields its core, so a step takes
     * much longer. Oversubscription affects the choice of the algorithm, but not the order in which
     * values are summed, because all algorithms for shared memory sum in rank order. */
    bool oversubscribed;
};
/* Appends the rows of the table that apply to `query` as lines of text. A line shows a range of
 * message sizes, the algorithm and the reason. If an algorithm may refuse a call because of the
 * call's element type, the next lines show the algorithms that are used instead. */
void ddp_coll_auto_explain(const struct ddp_auto_query *query, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
