/* Sparse all-reduce: the sum over ranks of index-sorted lists, exact, the same bits on all ranks.
 * One file and one line in sparse_list.h add an algorithm.
 *
 * Words of 4 bytes travel: an entry is an index and a value (8 bytes), or, where that is smaller,
 * its part of the index range is sent as a bitmap and values (coding chosen per message from counts
 * that both sides know). Lists have no header and are never padded. */
#ifndef DDP_COLL_SPARSE_COLL_H
#define DDP_COLL_SPARSE_COLL_H

#include "coll/coll.h"
#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mine: this rank's entries, index < n; read only. most: entries a rank may have at most, equal on
 * all ranks. fixed: every rank has exactly `most` entries (no counts are exchanged). result [n]:
 * receives the dense sum, zero where no rank had an entry; rank order of additions is the
 * algorithm's, the same on all ranks.
 * rejected: NULL, or (oktopk) this rank's residual [n]: contributions that the global selection
 * left out are added there. k: oktopk: entries that the global selection keeps. */
struct ddp_sparse_args {
    struct ddp_sparse mine;
    float *result;
    size_t n, most, k;
    bool fixed;
    float *rejected;
};

struct ddp_sparse_alg {
    const char *name, *summary; /* "allgather", "rd", "oktopk", "direct" */
    int (*supports)(const struct ddp_comm *comm, size_t n, size_t most, struct ddp_err *err);
    size_t (*scratch_bytes)(const struct ddp_comm *comm, size_t n, size_t most);
    /* Collective. scratch: aligned to 64, zeroed before the first call, then left alone (state that
     * lives between steps may lie there). *sent_entries: NULL or: entries this rank put on the wire
     * that were its own. */
    int (*run)(struct ddp_comm *comm, const struct ddp_sparse_args *args, void *scratch,
               struct ddp_err *err);
    /* For k entries a rank: most of all ranks; exact where `exact` (then counted = cost). */
    void (*cost)(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact);
};

const struct ddp_sparse_alg *const *ddp_sparse_algorithms(void);
const struct ddp_sparse_alg *ddp_sparse_find(const char *name);
/* By cost: messages at alpha, bytes at beta, entries merged at gamma; the constants stand in
 * sparse_auto.c and nothing is measured at run time. */
const struct ddp_sparse_alg *ddp_sparse_auto(const struct ddp_comm *comm, size_t n, size_t most,
                                             struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
