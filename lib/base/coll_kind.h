/* The collectives: names, aliases, and the bus-bandwidth factor, the one place where it is defined.
 *
 * algbw = S / t, S the full buffer in bytes (n times the per-rank part for the sharded family), t
 * seconds. busbw = algbw * factor(n): what each rank's link must carry if the collective is done
 * optimally by point-to-point links (derivation: nccl-tests, doc/PERFORMANCE.md): allreduce: every
 * element must leave n-1 ranks' partial sums and reach n-1 ranks: 2(n-1)/n reduce-scatter,
 * all-gather, all-to-all, gather, scatter: (n-1)/n of S crosses broadcast, reduce, send-recv: 1. */
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
/* Accepts nccl-tests', MPI's and PyTorch's spellings (all_reduce, allgather, bcast, ...); -1 when
 * unknown. */
int ddp_coll_parse(const char *name);
/* Does it combine values, by an operation? Has it a root? Has it an in-place form (coll/coll.h)? */
bool ddp_coll_reduces(enum ddp_coll coll);
bool ddp_coll_has_root(enum ddp_coll coll);
bool ddp_coll_has_in_place(enum ddp_coll coll);
/* busbw = algbw * factor; NaN for fewer than 2 ranks and for barrier. */
double ddp_coll_busbw_factor(enum ddp_coll coll, int ranks);

#ifdef __cplusplus
}
#endif
#endif
