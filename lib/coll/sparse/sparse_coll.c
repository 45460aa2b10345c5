/* The table of sparse algorithms, and the choice of `auto`. */
#include "coll/sparse/sparse_coll.h"

#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "coll/coll_shm.h"

const struct ddp_sparse_alg *const *ddp_sparse_algorithms(void)
{
    static const struct ddp_sparse_alg *const all[] = {
#define DDP_SPARSE(symbol) &ddp_sparse_alg_##symbol,
#include "coll/sparse/sparse_list.h"
#undef DDP_SPARSE
        NULL,
    };
    return all;
}

const struct ddp_sparse_alg *ddp_sparse_find(const char *name)
{
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a != NULL; a++)
        if (strcmp((*a)->name, name) == 0)
            return *a;
    return NULL;
}

int ddp_sparse_named(const char *name, bool selects, bool on_device,
                     const struct ddp_sparse_alg **out, struct ddp_err *err)
{
    const bool is_auto = name == NULL || strcmp(name, "auto") == 0;
    char legal[256] = "auto";
    int fitting = 0;
    *out = NULL;
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a != NULL; a++) {
        const bool named = !is_auto && strcmp((*a)->name, name) == 0;
        if ((*a)->selects != selects)
            continue;
        if (on_device && !(*a)->on_device) {
            if (named)
                return ddp_fail(err, DDP_EUNAVAIL,
                                "algorithm '%s' does not run on a device; use 'auto'", name);
            continue;
        }
        ddp_text_list_add(legal, sizeof legal, (*a)->name);
        if (named || (is_auto && fitting == 0))
            *out = *a;
        fitting++;
    }
    if (is_auto && fitting > 1)
        *out = NULL;
    if (is_auto || *out != NULL)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "unknown algorithm '%s' for a sparse all-reduce%s; legal: %s",
                    name, on_device ? " on a device" : "", legal);
}

int ddp_sparse_supports(const struct ddp_sparse_alg *alg, const struct ddp_comm *comm, size_t n,
                        struct ddp_err *err)
{
    if (n > UINT32_MAX)
        return ddp_fail(err, DDP_EUSAGE,
                        "%zu elements are too many for sparse lists, which allow fewer than 2^32",
                        n);
    return alg->needs & DDP_NEEDS_SHARED ? ddp_coll_needs_shm(comm, alg->name, err)
                                         : ddp_coll_needs_p2p(comm, alg->name, err);
}

/* A model estimates the time of each algorithm as alpha * steps + beta * bytes + gamma * entries.
 * The choice depends only on the ratios of the constants. ALPHA is the time of half a ping-pong on
 * a fast network, and BETA is the time of one byte. On slower networks the ratio of ALPHA and BETA
 * is similar. GAMMA is the time in which the processor merges one entry, or adds it to an array
 * outside the cache. */
#define ALPHA_NS 2000.0
#define BETA_NS  0.1
#define GAMMA_NS 1.5

/* Returns the estimated time. The estimated number of entries that a rank processes is
 * (memory_bytes / ranks - 4n) / 8, because the result has 4n bytes and an entry has 8 bytes. */
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
        /* The error shows why the last algorithm was refused, because it has the fewest
         * requirements. */
        reason = DDP_ERR_INIT;
        if (ddp_sparse_supports(*a, comm, n, &reason) != 0)
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
