/* Verifies the results of collectives. Every rank can compute the inputs of all ranks, and so the
 * right result. The inputs are integers that depend on rank, index and round. They are chosen such
 * that only the division of an average can round. Results are compared bit for bit. Only
 * ddp_verify_averaged_first accepts rounding errors. */
#ifndef DDP_BENCH_VERIFY_H
#define DDP_BENCH_VERIFY_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes elements [first, first + count) of the input of `rank` to buf. ranks: number of ranks in
 * the operation. round: selects the data; every iteration can have its own. */
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

/* The inputs, as integers. Used by verify.c and verify_exchange.c.
 *
 * Each block of elements has a seed, a hash of the rank, the number of the block and the round. An
 * element is a scrambled term of the Weyl sequence that starts at this seed. Elements differ
 * between ranks, positions and rounds, apart from chance. An array at a wrong position or from a
 * wrong rank is therefore detected, unless it has only a few elements. */
/* Elements per block. The arrays of one verification (struct job) take 32 KiB, so that they stay in
 * the first-level or second-level cache. */
#define DDP_VERIFY_BLOCK 1024

/* Ranges of the values of an input. For POWERS, the number of a block and the round decide which
 * ranks are *active* in this block. */
enum ddp_verify_range {
    DDP_VERIFY_SIGNED,         /* [-2^bits, 2^bits) */
    DDP_VERIFY_UNSIGNED,       /* [0, 2^bits) */
    DDP_VERIFY_POWERS,         /* 1 and -1; the active ranks of a block also have 2 and -2 */
    DDP_VERIFY_POWERS_UNSIGNED /* 1; the active ranks of a block also have 2 */
};
struct ddp_verify_input {
    enum ddp_verify_range range;
    int bits;
    /* Number of active ranks. For POWERS, these may have a 2 or -2 in a block. For the other
     * ranges, only the active ranks have a value other than 0 at an element; the index and the
     * round decide which ranks are active. */
    int active;
    int ranks;
    /* All values are multiples of this factor. It is 1, except for averages of 16-bit floats, where
     * it can make the division exact. */
    int32_t factor;
};

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
