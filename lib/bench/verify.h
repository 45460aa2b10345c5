/* Exact verification of collectives: inputs every rank can recompute, results every rank can
 * predict (design.md invariant 4). Inputs depend on rank and index and are small integers whose sum
 * of absolute values stays exact in the type. */
#ifndef DDP_BENCH_VERIFY_H
#define DDP_BENCH_VERIFY_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the input of `rank` for elements [first, first+count) of an operation over `ranks` ranks.
 * round: varies the data between iterations. */
void ddp_verify_fill(void *buf, size_t first, size_t count, enum ddp_dtype dtype, enum ddp_op op,
                     int rank, int ranks, uint64_t round);

/* Compares result[count] (elements first...) with what op over all ranks must give. *wrong: how
 * many differ. On the first difference err gets DDP_EDATA with "rank R, element I: expected X, got
 * Y, xor Z". Returns 0 or DDP_EDATA. */
int ddp_verify_reduced(const void *result, size_t first, size_t count, enum ddp_dtype dtype,
                       enum ddp_op op, int rank, int ranks, uint64_t round, int64_t *wrong,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* The same of an average that multiplies each value by 1/ranks, in the type, before it sums: right
 * is also what these roundings may make of it. Of a power of two of ranks there are none. */
int ddp_verify_averaged_first(const void *result, size_t first, size_t count, enum ddp_dtype dtype,
                              int rank, int ranks, uint64_t round, int64_t *wrong,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Compares data[count] with the input of rank `src`: for collectives that move values. */
int ddp_verify_moved(const void *data, size_t first, size_t count, enum ddp_dtype dtype,
                     enum ddp_op op, int rank, int src, int ranks, uint64_t round, int64_t *wrong,
                     struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
