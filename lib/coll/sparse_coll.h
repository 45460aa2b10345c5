/* Sparse all-reduce: sums the index-sorted lists of all ranks. All ranks get the same bits. A new
 * algorithm is one file and one line in sparse_list.h.
 *
 * Lists are sent as words of 4 bytes. An entry is an index and a value (8 bytes). Where that is
 * smaller, a list is sent as a bitmap of its index range and the values. Both sides know the
 * counts, and derive the coding of each message from them (sparse_code.h). Lists have no header and
 * are never padded. If the counts are not known in advance, they are sent first, 4 bytes each, and
 * are part of the cost. Users are exchange/compressed.h and `ddpbench list`. The algorithms do not
 * select the entries that a rank sends, and do not keep the others. */
#ifndef DDP_COLL_SPARSE_COLL_H
#define DDP_COLL_SPARSE_COLL_H

#include "coll/coll.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of one call. The algorithm decides the order of additions, which is the same on all
 * ranks. */
struct ddp_sparse_args {
    /* This rank's entries, with index < n; only read. Must be in registered memory for `direct`. */
    struct ddp_sparse mine;
    float *result; /* [n]: set to the dense sum, zero where no rank had an entry; not read */
    /* n: number of elements. most: largest number of entries of a rank, equal on all ranks.
     * k: number of sums that the global selection keeps. Only algorithms with `selects` use k,
     * rejected and scale. */
    size_t n, most, k;
    bool fixed; /* every rank has exactly `most` entries, so no counts are exchanged */
    /* Optional, [n]: this rank's residual. Its contributions to sums that were not kept are added.
     */
    float *rejected;
    float scale; /* sums that are kept are multiplied by this, rejected contributions are not */
};

struct ddp_sparse_alg {
    const char *name, *summary; /* "direct", "allgather", "rd", "oktopk" */
    bool selects;               /* keeps only the k largest sums; `auto` never uses it */
    int (*supports)(const struct ddp_comm *comm, size_t n, size_t most, struct ddp_err *err);
    size_t (*scratch_bytes)(const struct ddp_comm *comm, size_t n, size_t most);
    /* Collective. scratch: scratch_bytes() bytes for the same n and most, aligned to 64. It is
     * zeroed before the first call and keeps its contents between calls, because state between
     * steps lies there. */
    int (*run)(struct ddp_comm *comm, const struct ddp_sparse_args *args, void *scratch,
               struct ddp_err *err);
    /* Returns the cost for exactly k entries on every rank (fixed): the largest of all ranks.
     * *exact: the cost is what is counted in a run; else it is an upper bound for any entries. */
    void (*cost)(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact);
};

/* Returns all algorithms in the order of sparse_list.h. The array ends with NULL. */
const struct ddp_sparse_alg *const *ddp_sparse_algorithms(void);
const struct ddp_sparse_alg *ddp_sparse_find(const char *name); /* NULL if there is none */
/* Returns the cheapest algorithm among those that do not select: messages cost alpha, bytes beta,
 * and merged entries gamma. These are constants of sparse_auto.c; nothing is measured at run time.
 * Returns NULL and fills err if no algorithm supports the call. */
const struct ddp_sparse_alg *ddp_sparse_auto(const struct ddp_comm *comm, size_t n, size_t most,
                                             struct ddp_err *err);

/* Runs the algorithm and records it in the flight recorder, as an all-reduce of 8 bytes an entry.
 * Collective. Returns DDP_EDATA if the data from another rank is not a valid list. */
static inline int ddp_sparse_run(struct ddp_comm *comm, const struct ddp_sparse_alg *alg,
                                 const struct ddp_sparse_args *args, void *scratch,
                                 struct ddp_err *err)
{
    const uint64_t seq =
        ddp_flight_enter(comm->flight, DDP_ALLREDUCE, DDP_F32, 8 * (uint64_t)args->mine.count);
    const int rc = alg->run(comm, args, scratch, err);
    ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

#ifdef __cplusplus
}
#endif
#endif
