/* Sparse all-reduce. It sums the index-sorted lists of all ranks, and all ranks get the same bits.
 * To add an algorithm, write one file and add one line to sparse_list.h.
 *
 * A list is sent as 4-byte words, normally one index and one value per entry. If a bitmap of the
 * index range is shorter than the indices, the bitmap replaces the indices. Both sides know the
 * number of entries and derive the coding from it (sparse_code.h). Messages have no header and no
 * padding. If the ranks do not know the numbers of entries in advance, they first send these
 * numbers, 4 bytes each. The caller selects the entries that a rank sends. */
#ifndef DDP_COLL_SPARSE_SPARSE_COLL_H
#define DDP_COLL_SPARSE_SPARSE_COLL_H

#include "coll/coll.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of one call. */
struct ddp_sparse_args {
    /* This rank's entries, with index < n. The call only reads them. Algorithm "direct" needs the
     * arrays in registered memory. */
    struct ddp_sparse mine;
    /* [n]: the dense sum. Elements without a sum, or whose sum is not kept, become 0. */
    float *result;
    /* n: number of elements. most: upper limit for the number of entries of a rank, equal on all
     * ranks. k: number of sums that are kept. Only algorithms with `selects` use k, rejected and
     * scale. */
    size_t n, most, k;
    bool fixed; /* every rank has exactly `most` entries */
    /* Optional, [n]: this rank's residual. If a sum is not kept, this rank's entry with the same
     * index is added to the residual. */
    float *rejected;
    float scale; /* factor of the kept sums; values that are added to `rejected` are not scaled */
};

struct ddp_sparse_alg {
    const char *name, *summary; /* "direct", "allgather", "rd", "oktopk" */
    bool selects;               /* keeps only about the k largest sums; ddp_sparse_auto skips it */
    bool on_device;             /* exchange/compressed_device.c has a version for device memory */
    unsigned needs;             /* DDP_NEEDS_SHARED or DDP_NEEDS_MESSAGES (coll.h) */
    size_t (*scratch_bytes)(const struct ddp_comm *comm, size_t n, size_t most);
    /* Runs the call. Collective. `scratch` has scratch_bytes() bytes for the same `n` and `most`,
     * and is aligned to 64. The caller zeroes the scratch before the first call and keeps its
     * contents between calls. */
    int (*run)(struct ddp_comm *comm, const struct ddp_sparse_args *args, void *scratch,
               struct ddp_err *err);
    /* Sets *cost to the cost for exactly k entries on every rank (fixed). If a value differs
     * between ranks, *cost holds the largest value. Sets *exact to true if a run has exactly this
     * cost, and to false if the cost is an upper bound. */
    void (*cost)(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact);
};

#define DDP_SPARSE(symbol) extern const struct ddp_sparse_alg ddp_sparse_alg_##symbol;
#include "coll/sparse/sparse_list.h"
#undef DDP_SPARSE

/* Returns all algorithms in the order of sparse_list.h. The array ends with NULL. */
const struct ddp_sparse_alg *const *ddp_sparse_algorithms(void);
const struct ddp_sparse_alg *ddp_sparse_find(const char *name); /* NULL if there is none */
/* Finds the algorithm `name`, whose member `selects` must equal the parameter `selects`. If
 * `on_device` is true, the algorithm must run on lists in device memory. If `name` is NULL or
 * "auto", *out becomes the only algorithm that meets these conditions, or NULL if several do.
 * Returns DDP_EUSAGE if there is no such algorithm, or DDP_EUNAVAIL if algorithm `name` does not
 * run on lists in device memory. */
int ddp_sparse_named(const char *name, bool selects, bool on_device,
                     const struct ddp_sparse_alg **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_EUNAVAIL if the communicator does not meet alg->needs, or DDP_EUSAGE if n >= 2^32. */
int ddp_sparse_supports(const struct ddp_sparse_alg *alg, const struct ddp_comm *comm, size_t n,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the algorithm with the lowest cost among those that do not select. The cost model uses
 * the constants of sparse_coll.c, so the choice does not depend on measurements at run time.
 * Returns NULL and fills err if no algorithm supports the call. */
const struct ddp_sparse_alg *ddp_sparse_auto(const struct ddp_comm *comm, size_t n, size_t most,
                                             struct ddp_err *err);

/* Runs the algorithm. Collective. The flight recorder shows the call as an all-reduce of 8 bytes
 * per entry. Returns DDP_EDATA if the data from another rank is not a valid list, DDP_EINTERNAL if
 * "direct" gets private memory, or the error of a message or of a wait. */
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
