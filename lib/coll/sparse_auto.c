/* Which sparse algorithm `auto` takes, by a model of their cost: time = alpha messages + beta bytes
 * + gamma entries. Constants of a fast network, for the choice is between few messages and few
 * entries: what counts is their ratio. On slower networks alpha and beta both grow (TCP at 10
 * Gb/s: 25 us and 1 ns; ratio 25 KB against 20 KB here). */
#include "coll/coll_p2p.h"
#include "coll/sparse_coll.h"

/* A message (half a ping-pong over a good network); a byte at 10 GB/s; an entry that is merged or
 * added at a place that is not in the cache. */
#define ALPHA_NS 2000.0
#define BETA_NS  0.1
#define GAMMA_NS 1.5

/* memory_bytes counts what all ranks read and write; an entry is 8 of them. */
static double expected_ns(const struct ddp_sparse_alg *alg, int ranks, size_t n, size_t most)
{
    struct ddp_coll_cost cost;
    bool exact;
    alg->cost(ranks, n, most, &cost, &exact);
    const double entries = DDP_MAX(0, cost.memory_bytes / ranks - 4.0 * (double)n) / 8;
    return ALPHA_NS * cost.steps + BETA_NS * cost.sent_bytes + GAMMA_NS * entries;
}

const struct ddp_sparse_alg *ddp_sparse_auto(const struct ddp_comm *comm, size_t n, size_t most,
                                             struct ddp_err *err)
{
    const struct ddp_sparse_alg *best = NULL;
    double best_ns = 0;
    struct ddp_err reason = DDP_ERR_INIT;

    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a != NULL; a++) {
        if ((*a)->selects)
            continue;
        reason = DDP_ERR_INIT; /* the last one's is the most general */
        if ((*a)->supports(comm, n, most, &reason) != 0)
            continue;
        const double ns = expected_ns(*a, comm->size, n, most);
        if (best == NULL || ns < best_ns) {
            best = *a;
            best_ns = ns;
        }
    }
    if (best == NULL)
        ddp_fail(err, DDP_EUNAVAIL, "no algorithm for a sparse all-reduce on backend '%s': %s",
                 comm->backend->name, reason.text);
    return best;
}
