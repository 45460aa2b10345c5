/* The collectives: names, aliases and bus-bandwidth factors.
 *
 * n is the number of ranks. The algorithm bandwidth is algbw = S / t. t is the time of one
 * operation in seconds. S is the size of the full buffer in bytes. For collectives that split the
 * buffer, S is n times the part of one rank.
 *
 * The bus bandwidth is busbw = algbw * factor(n). It is the data rate on the link of each rank if
 * an optimal algorithm runs on point-to-point links (derivation: nccl-tests, doc/PERFORMANCE.md).
 * The factors are:
 *   allreduce                    2(n-1)/n: every rank sends this multiple of S
 *   reduce-scatter, all-gather,
 *   all-to-all, gather, scatter  (n-1)/n: the busiest rank sends or receives this share of S
 *   broadcast, reduce, send-recv 1
 *
 * In an all-to-all-v a rank may send a different number of bytes to each rank. In an all-gather-v
 * and a reduce-scatter-v the ranks may have parts of different sizes. S of an all-to-all-v is the
 * mean size of the send buffers of the ranks. S of the other two is the size of all parts together.
 * The busiest rank exchanges B bytes with other ranks. In an all-to-all-v, B is the largest number
 * of bytes that any rank sends to other ranks, or receives from them. In an all-gather-v, B is the
 * largest number of bytes that any rank must receive: all parts but its own. In a reduce-scatter-v,
 * B is the largest number of bytes that any rank must send: its inputs of all parts but its own.
 * busbw is B / t, so it counts the bytes that were really moved. If all parts are equal, B / t is
 * algbw * (n-1)/n. */
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
    DDP_ALL_TO_ALL_V,
    DDP_ALL_GATHER_V,
    DDP_REDUCE_SCATTER_V,
    DDP_GATHER,
    DDP_SCATTER,
    DDP_SEND_RECV,
    DDP_BARRIER,
    DDP_COLL_COUNT
};

/* Returns the name: "allreduce", "reduce-scatter", ... */
const char *ddp_coll_name(enum ddp_coll coll);
extern const char *const ddp_coll_names[]; /* indexed by the enum; the last entry is NULL */
/* Parses a name. Dashes and underscores inside the name do not matter, so the spellings of
 * nccl-tests and PyTorch (all_reduce, alltoall) are accepted. "bcast", "MPI_Alltoallv",
 * "MPI_Allgatherv" and "MPI_Reduce_scatter" are accepted, too. Returns an enum ddp_coll, or -1 if
 * the name is unknown. */
int ddp_coll_parse(const char *name);
/* Returns whether the collective combines values with an operation. */
bool ddp_coll_reduces(enum ddp_coll coll);
/* Returns whether the collective has a root rank. */
bool ddp_coll_has_root(enum ddp_coll coll);
/* Returns whether the collective has an in-place form (coll/coll.h). */
bool ddp_coll_has_in_place(enum ddp_coll coll);
/* Returns whether the parts may have different sizes. This is true for all-to-all-v, all-gather-v
 * and reduce-scatter-v. */
bool ddp_coll_has_split(enum ddp_coll coll);
/* Returns whether the table of part sizes is one row with one part for each rank. This is true for
 * all-gather-v and reduce-scatter-v. In an all-to-all-v, the table has a row for each rank. */
bool ddp_coll_split_is_row(enum ddp_coll coll);
/* Returns busbw / algbw. Returns NaN for fewer than 2 ranks and for barrier. For collectives with a
 * split, the factor holds if all parts are equal. */
double ddp_coll_busbw_factor(enum ddp_coll coll, int ranks);

#ifdef __cplusplus
}
#endif
#endif
