/* Verifies the results of collectives. Every rank can compute the inputs of all ranks, and so the
 * right result. The inputs are integers that depend on rank, index and round. They are chosen such
 * that only the division of an average can round. Results are compared bit for bit. Only
 * ddp_verify_averaged_first accepts rounding errors. */
#ifndef DDP_BENCH_VERIFY_H
#define DDP_BENCH_VERIFY_H

#include "coll/coll.h"
#include "device/input_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes elements [first, first + count) of the input of `rank` to buf. ranks: number of ranks in
 * the operation. round: selects the data; every iteration can have data of its own. */
void ddp_verify_fill(void *buf, size_t first, size_t count, enum ddp_dtype dtype, enum ddp_op op,
                     int rank, int ranks, uint64_t round);

/* Compares result[count] with the right result of op over all ranks. first: index of the first
 * element. *wrong: number of elements that differ. If any element differs, returns DDP_EDATA, and
 * err describes the first one: "rank R, element I: expected X, got Y, xor Z". */
int ddp_verify_reduced(const void *result, size_t first, size_t count, enum ddp_dtype dtype,
                       enum ddp_op op, int rank, int ranks, uint64_t round, int64_t *wrong,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Like ddp_verify_reduced, for an average that multiplies each value by 1/ranks in its own type
 * before the sum. Accepts all results within the rounding error of this computation. If ranks is a
 * power of two, the multiplication is exact, and the result must be exact, too. */
int ddp_verify_averaged_first(const void *result, size_t first, size_t count, enum ddp_dtype dtype,
                              int rank, int ranks, uint64_t round, int64_t *wrong,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Compares data[count] with the input of rank `src`. Used for collectives that move values. */
int ddp_verify_moved(const void *data, size_t first, size_t count, enum ddp_dtype dtype,
                     enum ddp_op op, int rank, int src, int ranks, uint64_t round, int64_t *wrong,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* The following functions give the inputs as integers (device/input_ops.h). verify.c and
 * verify_exchange.c use them. */

/* Chooses the values for a type, operation and number of ranks such that only the division of an
 * average can round. */
struct ddp_verify_input ddp_verify_input_of(enum ddp_dtype dtype, enum ddp_op op, int ranks);

/* Writes the values of elements [first, first + n) of one rank to v[n]. All these elements must be
 * in one block, that is, have the same index / DDP_VERIFY_BLOCK. */
void ddp_verify_values(const struct ddp_verify_input *in, int rank, uint64_t round, size_t first,
                       size_t n, int32_t *v);

#ifdef __cplusplus
}
#endif
#endif
