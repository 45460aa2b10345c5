/* Block quantisation: f32 values as blocks of small codes that share one scale.
 *
 * An encoded block is the f32 `scale`, followed by one code per element. The last block of an array
 * is filled up with zeros. Let `max` be the largest magnitude of a block, and `top` the largest
 * code. Then, in f32 arithmetic:
 *   code  = round(x * (top / max))   to the nearest code, ties to even
 *   scale = max / top
 *   decoded value = code * scale
 * If max is the largest finite f32, the decoded value may be infinite. If max is below
 * DDP_QUANT_LEAST, scale and codes are 0. If a value is infinite or NaN, the scale is NaN and the
 * codes are 0, so all values of the block decode to NaN.
 *
 * With stochastic rounding, code is one of the two codes next to y = x * (top / max). The nearest
 * code is not taken if u * gap < |y - nearest| and |y| < top, where gap is the distance between the
 * codes and u is the random number of the element. The expected value of the decoded value is then
 * x, up to 2^-24 of a gap and the rounding of scale. The random number of element i of an array is
 * (h >> 8) * 2^-24. The hash h is lowbias32 by C. Wellons (2018), applied to i + key, with one more
 * step that mixes in the upper half of key. In 32-bit arithmetic:
 *   h = i + key
 *   h = (h ^ h >> 16) * 0x7feb352d ^ key >> 32
 *   h = (h ^ h >> 15) * 0x846ca68b
 *   h = h ^ h >> 16
 *
 * Codes of DDP_QUANT_I4 lie in pairs: byte j has element j in its low 4 bits, and element
 * block / 2 + j in its high 4 bits.
 *
 * A code of DDP_QUANT_SIGN is one bit, the sign bit of x. The scale is the mean magnitude of the
 * block, so an element decodes to the mean magnitude or its negative. The mean does not include the
 * zeros that fill up the last block. Bit b of byte j belongs to element b * block / 8 + j. The
 * magnitudes are added in f32, in DDP_QUANT_PARTS partial sums. Partial sum k adds the elements k,
 * k + DDP_QUANT_PARTS, and so on, in this order. Then the upper half of the partial sums is added
 * to the lower half, again and again until one sum is left. If this sum is not finite, the scale is
 * NaN and the codes are 0. */
#ifndef DDP_DEVICE_QUANT_H
#define DDP_DEVICE_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_quant_code {
    DDP_QUANT_I8,   /* -127 .. 127 */
    DDP_QUANT_I4,   /* -7 .. 7 */
    DDP_QUANT_E4M3, /* fp8-e4m3, at most 448 */
    DDP_QUANT_E5M2, /* fp8-e5m2, at most 57344 */
    DDP_QUANT_SIGN  /* the sign bit */
};

/* Limits of the number of elements of a block, which is a power of two. */
#define DDP_QUANT_BLOCK_MIN 32
#define DDP_QUANT_BLOCK_MAX 2048
/* DDP_QUANT_SIGN: the least number of elements of a block. */
#define DDP_QUANT_SIGN_BLOCK_MIN 128
#define DDP_QUANT_PARTS          16
/* If max is at least this number, top / max and max / top are normal numbers. */
#define DDP_QUANT_LEAST 0x1p-100f

struct ddp_quant {
    enum ddp_quant_code code;
    size_t block; /* elements of a block */
    /* Only encoding uses the members below. Signs are never rounded stochastically. */
    bool stochastic;
    uint64_t key;
    size_t first; /* index of the first encoded element in its array, a multiple of the block */
};

/* Returns the largest code. A sign counts as 1. */
static inline float ddp_quant_top(enum ddp_quant_code code)
{
    return code == DDP_QUANT_I8     ? 127.0f
           : code == DDP_QUANT_I4   ? 7.0f
           : code == DDP_QUANT_E4M3 ? 448.0f
           : code == DDP_QUANT_E5M2 ? 57344.0f
                                    : 1.0f;
}

/* Returns the bytes of an encoded block. */
static inline size_t ddp_quant_block_bytes(struct ddp_quant q)
{
    const size_t bits = q.code == DDP_QUANT_SIGN ? 1 : q.code == DDP_QUANT_I4 ? 4 : 8;
    return sizeof(float) + q.block * bits / 8;
}

/* Returns the number of blocks of n elements. */
static inline size_t ddp_quant_blocks(struct ddp_quant q, size_t n)
{
    return n / q.block + (n % q.block != 0);
}

#ifdef __cplusplus
}
#endif
#endif
