/* The collectives: names, aliases and bus-bandwidth factors.
 *
 * algbw = S / t. S is the full buffer in bytes (n times the per-rank part for the collectives that
 * split it), t is in seconds. busbw = algbw * factor(n) is the rate that each rank's link must
 * carry in an optimal algorithm on point-to-point links (derivation: nccl-tests,
 * doc/PERFORMANCE.md). Factors:
 *   allreduce                    2(n-1)/n: every element leaves n-1 ranks and reaches n-1 ranks
 *   reduce-scatter, all-gather,
 *   all-to-all, gather, scatter  (n-1)/n: that share of S crosses the links
 *   broadcast, reduce, send-recv 1 */
#ifndef DDP_BASE_COLL_KIND_H
#define DDP_BASE_COLL_KIND_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_coll {
    DDP_ALLREDUCE,
    DDP_REDUCE_SCATTER,
    DDP_ALL_GATHER,
    DDP_BROADCAST,
    DDP_REDUCE,
    DDP_ALL_TO_ALL,
    DDP_GATHER,
    DDP_SCATTER,
    DDP_SEND_RECV,
    DDP_BARRIER,
    DDP_COLL_COUNT
};

/* "allreduce", "reduce-scatter", ... */
const char *ddp_coll_name(enum ddp_coll coll);
/* Parses a name; accepts the spellings of nccl-tests, MPI and PyTorch (all_reduce, allgather,
 * bcast, ...). Returns -1 if unknown. */
int ddp_coll_parse(const char *name);
/* True if the collective combines values with an operation; if it has a root rank; if it has an
 * in-place form (coll/coll.h). */
bool ddp_coll_reduces(enum ddp_coll coll);
bool ddp_coll_has_root(enum ddp_coll coll);
bool ddp_coll_has_in_place(enum ddp_coll coll);
/* Returns busbw / algbw; NaN for fewer than 2 ranks and for barrier. */
double ddp_coll_busbw_factor(enum ddp_coll coll, int ranks);

#ifdef __cplusplus
}
#endif
#endif
