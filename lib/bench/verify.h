/* Exact verification of collectives: every rank can recompute all inputs and predict all results.
 * Inputs depend on rank and index. They are small integers, and the sum of their absolute values is
 * exact in the data type. */
#ifndef DDP_BENCH_VERIFY_H
#define DDP_BENCH_VERIFY_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the input of `rank` for the elements [first, first+count) of an operation over `ranks`
 * ranks. round: selects other data for every iteration. */
void ddp_verify_fill(void *buf, size_t first, size_t count, enum ddp_dtype dtype, enum ddp_op op,
                     int rank, int ranks, uint64_t round);

/* Compares result[count], whose first element has the index `first`, with the result that op over
 * all ranks must give. *wrong: how many elements differ. If any differs, returns DDP_EDATA, and err
 * names the first: "rank R, element I: expected X, got Y, xor Z". */
int ddp_verify_reduced(const void *result, size_t first, size_t count, enum ddp_dtype dtype,
                       enum ddp_op op, int rank, int ranks, uint64_t round, int64_t *wrong,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Like ddp_verify_reduced, for an average that multiplies each value by 1/ranks in its own type
 * before the sum. Results within the rounding error of this computation are accepted, too. If ranks
 * is a power of two the multiplication is exact. */
int ddp_verify_averaged_first(const void *result, size_t first, size_t count, enum ddp_dtype dtype,
                              int rank, int ranks, uint64_t round, int64_t *wrong,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Compares data[count] with the input of rank `src`. Used for collectives that move values. */
int ddp_verify_moved(const void *data, size_t first, size_t count, enum ddp_dtype dtype,
                     enum ddp_op op, int rank, int src, int ranks, uint64_t round, int64_t *wrong,
                     struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
