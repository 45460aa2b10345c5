/* The inputs of verified collectives, as integers: what verify.c and nothing else is built on.
 *
 * Element i of rank r in round q is a function of (r, i, q) alone: one xorshift step on a Weyl
 * sequence, seeded per block of elements by a full mix of (r, block, q). So a value at a wrong
 * place or from a wrong rank is a wrong value, and a block costs a few integer operations an
 * element. */
#ifndef DDP_BENCH_VERIFY_INPUT_H
#define DDP_BENCH_VERIFY_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements a block: its integers and the typed copies stay in the first-level cache. */
#define DDP_VERIFY_BLOCK 1024

/* The range of values for a type, operation and number of ranks (design.md invariant 4).
 * SIGNED: [-2^bits, 2^bits). UNSIGNED: [0, 2^bits). POWERS: +-1 and +-2, POWERS_UNSIGNED: 1 and 2;
 * 2 only on `active` ranks of a block. active: ranks with non-zero values at an element; the
 * others' turn comes with the index. factor: all values are multiples of it, so that dividing them
 * by the ranks is exact. */
enum ddp_verify_range {
    DDP_VERIFY_SIGNED,
    DDP_VERIFY_UNSIGNED,
    DDP_VERIFY_POWERS,
    DDP_VERIFY_POWERS_UNSIGNED
};
struct ddp_verify_input {
    enum ddp_verify_range range;
    int bits;
    int active;
    int ranks;
    int32_t factor;
};
struct ddp_verify_input ddp_verify_input_of(enum ddp_dtype dtype, enum ddp_op op, int ranks);

/* Values of elements [first, first + n) of one rank into v[n]. They lie in one block: first /
 * DDP_VERIFY_BLOCK is the same for all. */
void ddp_verify_values(const struct ddp_verify_input *in, int rank, uint64_t round, size_t first,
                       size_t n, int32_t *v);

#ifdef __cplusplus
}
#endif
#endif
