/* The inputs of verified collectives, as integers. Used by verify.c and verify_exchange.c.
 *
 * Element i of rank r in round q is a function of (r, i, q) alone: one xorshift step on a Weyl
 * sequence, seeded for each block of elements by a full mix of (r, block, q). A value at a wrong
 * position or from a wrong rank is therefore a wrong value. An element costs a few integer
 * operations. */
#ifndef DDP_BENCH_VERIFY_INPUT_H
#define DDP_BENCH_VERIFY_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements per block. Its integers and the typed copies fit into the first-level cache. */
#define DDP_VERIFY_BLOCK 1024

/* The values that an input consists of. */
enum ddp_verify_range {
    DDP_VERIFY_SIGNED,         /* [-2^bits, 2^bits) */
    DDP_VERIFY_UNSIGNED,       /* [0, 2^bits) */
    DDP_VERIFY_POWERS,         /* 1 and -1, and on the active ranks of a block also 2 and -2 */
    DDP_VERIFY_POWERS_UNSIGNED /* 1, and on the active ranks of a block also 2 */
};
struct ddp_verify_input {
    enum ddp_verify_range range;
    int bits;
    /* Ranks that have a non-zero value at an element. They change with the element's index. */
    int active;
    int ranks;
    /* All values are multiples of this factor, which makes dividing by the ranks exact. */
    int32_t factor;
};

/* Chooses the values for a type, operation and number of ranks such that results are exact. */
struct ddp_verify_input ddp_verify_input_of(enum ddp_dtype dtype, enum ddp_op op, int ranks);

/* Writes the values of elements [first, first + n) of one rank to v[n]. All of them must lie in one
 * block: first / DDP_VERIFY_BLOCK is the same for each. */
void ddp_verify_values(const struct ddp_verify_input *in, int rank, uint64_t round, size_t first,
                       size_t n, int32_t *v);

#ifdef __cplusplus
}
#endif
#endif
