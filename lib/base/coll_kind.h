/* The collectives: names, aliases and bus-bandwidth factors.
 *
 * The algorithm bandwidth is algbw = S / t, where t is the time of one operation in seconds, and S
 * is the size of the full buffer in bytes. For collectives that split the buffer among the n ranks,
 * S is n times the size of one rank's part.
 *
 * The bus bandwidth is busbw = algbw * factor(n). With an optimal algorithm on point-to-point
 * links, busbw is the data rate on the link of each rank (derivation: nccl-tests,
 * doc/PERFORMANCE.md). The factors are:
 *   allreduce                    2(n-1)/n: every rank sends this multiple of S
 *   reduce-scatter, all-gather,
 *   all-to-all, gather, scatter  (n-1)/n: the busiest rank sends or receives this share of S
 *   broadcast, reduce, send-recv 1
 *
 * In an all-to-all-v a rank may send a different number of bytes to each rank. In an all-gather-v
 * and a reduce-scatter-v the ranks may have parts of different sizes. S of an all-to-all-v is the
 * mean size of the send buffers of the ranks. S of the other two is the size of all parts together.
 * For these three collectives busbw is B / t, where B is the number of bytes that the busiest rank
 * must exchange with other ranks. In an all-to-all-v, B is the largest number of bytes that any
 * rank sends to other ranks, or receives from them. In an all-gather-v, B is the largest number of
 * bytes that any rank receives: all parts except its own. In a reduce-scatter-v, B is the largest
 * number of bytes that any rank sends: its inputs of all parts except its own. If all parts are
 * equal, B / t is algbw * (n-1)/n. */
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
/* Parses a name. Dashes and underscores inside the name are ignored, so the spellings all_reduce
 * and alltoall are accepted. "bcast", "MPI_Alltoallv", "MPI_Allgatherv" and "MPI_Reduce_scatter"
 * are accepted, too. Returns an enum ddp_coll, or -1 if the name is unknown. */
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
/* Returns whether the table of part sizes has only one row, with the part of each rank. This is
 * true for all-gather-v and reduce-scatter-v. The table of an all-to-all-v has a row for each
 * rank. */
bool ddp_coll_split_is_row(enum ddp_coll coll);
/* Returns busbw / algbw. Returns NaN for fewer than 2 ranks and for a barrier. For collectives
 * whose parts may have different sizes, the factor holds only if all parts are equal. */
double ddp_coll_busbw_factor(enum ddp_coll coll, int ranks);

#ifdef __cplusplus
}
#endif
#endif
