/* Sparse all-reduce: the sum over ranks of index-sorted lists, the same bits on all ranks.
 * One file and one line in sparse_list.h add an algorithm.
 *
 * Words of 4 bytes travel: an entry is an index and a value (8 bytes), or, where that is smaller,
 * its part of the index range is sent as a bitmap and values (coding chosen per message from counts
 * that both sides know: sparse_code.h). Lists have no header and are never padded; where the
 * counts are not known in advance, they travel before, 4 bytes each, and are counted like the
 * rest. Users: exchange/compressed.h, `ddpbench list`. What it does not do: select what a rank
 * sends, or keep what it does not. */
#ifndef DDP_COLL_SPARSE_COLL_H
#define DDP_COLL_SPARSE_COLL_H

#include "coll/coll.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mine: this rank's entries, index < n; read only, in registered memory for `direct`. most: entries
 * a rank may have at most, equal on all ranks. fixed: every rank has exactly `most` entries (no
 * counts are exchanged). result [n]: receives the dense sum, zero where no rank had an entry; not
 * read before. The order of additions is the algorithm's, the same on all ranks.
 *
 * For those that select (oktopk), ignored by others: k: sums that the global selection keeps;
 * rejected: NULL, or this rank's residual [n]: its contributions to sums that were not kept are
 * added there; scale: what is kept is multiplied by it (not what is rejected). */
struct ddp_sparse_args {
    struct ddp_sparse mine;
    float *result;
    size_t n, most, k;
    bool fixed;
    float *rejected;
    float scale;
};

struct ddp_sparse_alg {
    const char *name, *summary; /* "direct", "allgather", "rd", "oktopk" */
    bool selects;               /* keeps the k largest sums only: never chosen by auto */
    int (*supports)(const struct ddp_comm *comm, size_t n, size_t most, struct ddp_err *err);
    size_t (*scratch_bytes)(const struct ddp_comm *comm, size_t n, size_t most);
    /* Collective. scratch: aligned to 64, zeroed before the first call, then left alone (state that
     * lives between steps lies there). n and most are those of scratch_bytes, in every call. */
    int (*run)(struct ddp_comm *comm, const struct ddp_sparse_args *args, void *scratch,
               struct ddp_err *err);
    /* For exactly k entries on every rank (fixed): most of all ranks; exact: that is what is
     * counted. Otherwise a bound, whatever the entries are. */
    void (*cost)(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact);
};

/* All of sparse_list.h, in order; NULL-terminated. */
const struct ddp_sparse_alg *const *ddp_sparse_algorithms(void);
const struct ddp_sparse_alg *ddp_sparse_find(const char *name); /* NULL when there is none */
/* By cost, among those that are exact: messages at alpha, bytes at beta, entries merged at gamma;
 * the constants stand in sparse_auto.c and nothing is measured at run time. NULL with err when none
 * supports it. */
const struct ddp_sparse_alg *ddp_sparse_auto(const struct ddp_comm *comm, size_t n, size_t most,
                                             struct ddp_err *err);

/* Runs it, and says so in the flight recorder (as an all-reduce of 8 bytes an entry). Collective.
 * DDP_EDATA: what another rank sent is not a list. */
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
