/* Computes the inputs of verified collectives, as integers. Used by verify.c and verify_exchange.c.
 *
 * Element i of rank r in round q depends on (r, i, q) only. Data at a wrong position or from a
 * wrong rank therefore differs from the expected data. Each block of elements has a seed, which is
 * a full mix of (r, block, q). An element is one xorshift step on a Weyl sequence from this
 * seed. */
#ifndef DDP_BENCH_VERIFY_INPUT_H
#define DDP_BENCH_VERIFY_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements per block. The integers of a block and their typed copies fit into the first-level
 * cache. */
#define DDP_VERIFY_BLOCK 1024

/* Ranges of the values of an input. */
enum ddp_verify_range {
    DDP_VERIFY_SIGNED,         /* [-2^bits, 2^bits) */
    DDP_VERIFY_UNSIGNED,       /* [0, 2^bits) */
    DDP_VERIFY_POWERS,         /* 1 and -1, and on the active ranks of a block also 2 and -2 */
    DDP_VERIFY_POWERS_UNSIGNED /* 1, and on the active ranks of a block also 2 */
};
struct ddp_verify_input {
    enum ddp_verify_range range;
    int bits;
    /* Number of ranks that may have a value other than 0 at an element (for POWERS: that may have a
     * 2 in a block). Index and round decide which ranks these are. */
    int active;
    int ranks;
    /* All values are multiples of this factor. It makes the division in an average of 16-bit floats
     * exact. Otherwise it is 1. */
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
