/* Computes the inputs of verified collectives and their correct results, one element at a time.
 * nvcc and the C compiler compile this header, so that GPU kernels, the CPU and tests compute the
 * same bits. bench/verify.c computes the same values in blocks, with functions of its own. */
#ifndef DDP_DEVICE_INPUT_OPS_H
#define DDP_DEVICE_INPUT_OPS_H

#include <stdint.h>

#include "base/dtype.h"
#include "device/element_ops.h"

/* The inputs are integers.
 *
 * Each block of elements has a seed. The seed is a hash of the rank, the number of the block and
 * the round. An element is a scrambled term of the Weyl sequence that starts at the seed of its
 * block. Elements differ between ranks, positions and rounds, except by chance. Verification
 * therefore detects an array at a wrong position or from a wrong rank, unless the array has only a
 * few elements. */
/* Elements per block. The arrays of one verification (struct job of verify.c) take 32 KiB, so that
 * they stay in the first-level or second-level cache. */
#define DDP_VERIFY_BLOCK 1024

/* Ranges of the values of an input. For the two POWERS ranges, the number of a block and the round
 * decide which ranks are *active* in this block. */
enum ddp_verify_range {
    DDP_VERIFY_SIGNED,         /* [-2^bits, 2^bits) */
    DDP_VERIFY_UNSIGNED,       /* [0, 2^bits) */
    DDP_VERIFY_POWERS,         /* 1 and -1; the active ranks of a block also have 2 and -2 */
    DDP_VERIFY_POWERS_UNSIGNED /* 1; the active ranks of a block also have 2 */
};
struct ddp_verify_input {
    enum ddp_verify_range range;
    int bits;
    /* Number of active ranks. For the POWERS ranges, only the active ranks of a block have elements
     * 2 and -2. For SIGNED and UNSIGNED, the index of an element and the round decide which ranks
     * are active at this element. The other ranks have 0 at this element. */
    int active;
    int ranks;
    /* All values are multiples of this factor. The factor is 1, except for averages of floats of 16
     * and 8 bits. For these, the factor can make the division exact. */
    int32_t factor;
    /* An element is a value times this number. For u32, i64 and u64 and all operations except the
     * product, the scale makes the elements fill all bits of the type. Otherwise the scale is 1. */
    int64_t scale;
};

/* The values of an array: the input of rank `src`, or the reduction over all ranks if src is -1. */
struct ddp_expected {
    struct ddp_verify_input input;
    uint64_t round;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int src;
};

/* The same function as ddp_mix64 of base/rng.h, but for both compilers. */
DDP_BOTH uint64_t ddp_input_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Returns whether the rank is active. `turn` is the round plus the index of the element. For the
 * POWERS ranges, `turn` is the round plus the number of the block. */
DDP_BOTH int ddp_input_active(const struct ddp_verify_input *in, int rank, uint64_t turn)
{
    return ((uint64_t)rank + turn) % (uint64_t)in->ranks < (uint64_t)in->active;
}

/* Returns element `index` of a rank's input. */
DDP_BOTH int32_t ddp_input_value(const struct ddp_verify_input *in, int rank, uint64_t round,
                                 uint64_t index)
{
    const uint64_t block = index / DDP_VERIFY_BLOCK;
    const uint64_t mixed =
        ddp_input_mix(ddp_input_mix(ddp_input_mix(block) + (uint64_t)rank) + round);
    uint32_t t = (uint32_t)(mixed >> 32) + (uint32_t)(index % DDP_VERIFY_BLOCK) * 0x9E3779B9u;
    t ^= t << 13;
    t ^= t >> 17;
    if (in->range == DDP_VERIFY_POWERS || in->range == DDP_VERIFY_POWERS_UNSIGNED) {
        const int two = ddp_input_active(in, rank, block + round) && (t >> 30 & 1) != 0;
        const int negative = in->range == DDP_VERIFY_POWERS && t >> 31 != 0;
        return (two ? 2 : 1) * (negative ? -1 : 1);
    }
    if (in->active < in->ranks && !ddp_input_active(in, rank, index + round))
        return 0;
    return (in->range == DDP_VERIFY_SIGNED ? (int32_t)t >> (31 - in->bits)
                                           : (int32_t)(t >> (32 - in->bits))) *
           in->factor;
}

DDP_BOTH int64_t ddp_input_combine(enum ddp_op op, int64_t a, int64_t b)
{
    if (op == DDP_PROD)
        return a * b;
    if (op == DDP_MIN)
        return a < b ? a : b;
    if (op == DDP_MAX)
        return a > b ? a : b;
    return a + b;
}

/* Returns the bits of value * scale / divisor in the type. scale is 1 for floats. Quotients of
 * integers are truncated. */
DDP_BOTH uint64_t ddp_input_encode(enum ddp_dtype dtype, int64_t value, int64_t scale, int divisor)
{
    const float f = (float)(int32_t)value / (float)divisor;
    double d;
    uint64_t bits;
    switch (dtype) {
    case DDP_F32:
        return ddp_f32_bits(f);
    case DDP_F16:
    case DDP_BF16:
        return ddp_half_narrow(f, dtype);
    case DDP_F64:
        d = (double)(int32_t)value / divisor;
        memcpy(&bits, &d, sizeof(bits));
        return bits;
    case DDP_FP8_E4M3:
    case DDP_FP8_E5M2:
        return ddp_fp8_result(f, dtype);
    case DDP_I8:
    case DDP_U8:
        return (uint8_t)(value / divisor);
    case DDP_U64:
        return (uint64_t)value * (uint64_t)scale / (uint64_t)divisor;
    case DDP_I64:
        return (uint64_t)((int64_t)((uint64_t)value * (uint64_t)scale) / divisor);
    default:
        return (uint32_t)(value * scale / divisor);
    }
}

/* Returns the bits of element `index` of the array that *e describes. */
DDP_BOTH uint64_t ddp_expected_bits(const struct ddp_expected *e, uint64_t index)
{
    if (e->src >= 0)
        return ddp_input_encode(e->dtype, ddp_input_value(&e->input, e->src, e->round, index),
                                e->input.scale, 1);
    int64_t value = ddp_input_value(&e->input, 0, e->round, index);
    for (int r = 1; r < e->input.ranks; r++)
        value = ddp_input_combine(e->op, value, ddp_input_value(&e->input, r, e->round, index));
    return ddp_input_encode(e->dtype, value, e->input.scale, e->op == DDP_AVG ? e->input.ranks : 1);
}

/* Returns the bits of element i of data, whose elements have `bytes` bytes. */
DDP_BOTH uint64_t ddp_element_bits(const void *data, uint64_t i, int bytes)
{
    switch (bytes) {
    case 1:
        return ((const uint8_t *)data)[i];
    case 2:
        return ((const uint16_t *)data)[i];
    case 4:
        return ((const uint32_t *)data)[i];
    default:
        return ((const uint64_t *)data)[i];
    }
}

DDP_BOTH void ddp_element_store(void *data, uint64_t i, int bytes, uint64_t bits)
{
    switch (bytes) {
    case 1:
        ((uint8_t *)data)[i] = (uint8_t)bits;
        break;
    case 2:
        ((uint16_t *)data)[i] = (uint16_t)bits;
        break;
    case 4:
        ((uint32_t *)data)[i] = (uint32_t)bits;
        break;
    default:
        ((uint64_t *)data)[i] = bits;
        break;
    }
}

#endif
