#include <assert.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/verify_input.h"

#define WEYL 0x9E3779B9u /* 2^32 / golden ratio, odd */

/* Returns the largest sum of absolute values that is exact. It is at most 2^30, because results are
 * predicted in 32-bit integers. */
static int exact_sum(enum ddp_dtype dtype)
{
    const struct ddp_dtype_info *info = &ddp_dtypes[dtype];
    return (1 << DDP_MIN(info->digits, 30)) - (info->kind == DDP_UNSIGNED);
}

/* Returns the maximum number of factors of 2 in a product. A u8 can hold 2^7. For the other types
 * 2^8 is enough. */
static int exact_twos(enum ddp_dtype dtype)
{
    return ddp_dtype_is_integer(dtype) ? DDP_MIN(ddp_dtypes[dtype].digits - 1, 8) : 8;
}

/* Returns the bits of the widest range whose values are exact in the type. Used for min, max, and
 * integer avg (which is a 64-bit sum). */
static int widest_bits(enum ddp_dtype dtype)
{
    return DDP_MIN(ddp_dtypes[dtype].digits, 31);
}

/* Returns the range for sums. All ranks are active if the limit allows each of them the value 1.
 * The values get as many bits as fit: active * 2^bits <= limit, or active * (2^bits - 1) <= limit
 * if they are unsigned. */
static struct ddp_verify_input summable(enum ddp_dtype dtype, int ranks)
{
    bool is_unsigned = ddp_dtypes[dtype].kind == DDP_UNSIGNED;
    int64_t limit = exact_sum(dtype);
    struct ddp_verify_input in = {.range = is_unsigned ? DDP_VERIFY_UNSIGNED : DDP_VERIFY_SIGNED,
                                  .bits = is_unsigned, /* 0 bits unsigned would be all zeros */
                                  .active = (int)DDP_MIN((int64_t)ranks, limit),
                                  .ranks = ranks,
                                  .factor = 1};
    while (in.bits < 30 && in.active * (((int64_t)2 << in.bits) - is_unsigned) <= limit)
        in.bits++;
    return in;
}

/* Returns the range for averages of 16-bit floats. An algorithm may divide before or after the sum.
 * Both are exact if every value is a multiple of the odd factor of the number of ranks. Quotients
 * are then small integers over a power of two, with as many bits as in a sum. If this factor is too
 * large, such values do not fit. Then only one rank per element has a value other than 0. The
 * quotient of this value is rounded once in either order. */
static struct ddp_verify_input divisible(enum ddp_dtype dtype, int ranks)
{
    struct ddp_verify_input in = summable(dtype, ranks);
    int odd = ranks;
    while (odd % 2 == 0)
        odd /= 2;
    if ((int64_t)odd << in.bits <= exact_sum(dtype)) {
        in.factor = odd;
    } else {
        in.active = 1;
        in.bits = 7;
    }
    return in;
}

struct ddp_verify_input ddp_verify_input_of(enum ddp_dtype dtype, enum ddp_op op, int ranks)
{
    bool is_unsigned = ddp_dtypes[dtype].kind == DDP_UNSIGNED;
    struct ddp_verify_input in = {.active = ranks, .ranks = ranks, .factor = 1};
    if (op == DDP_AVG && ddp_dtype_is_half(dtype))
        return divisible(dtype, ranks);
    if (op == DDP_SUM || (op == DDP_AVG && !ddp_dtype_is_integer(dtype)))
        return summable(dtype, ranks);
    in.range = is_unsigned ? DDP_VERIFY_UNSIGNED : DDP_VERIFY_SIGNED;
    in.bits = widest_bits(dtype);
    if (op == DDP_PROD) {
        in.range = is_unsigned ? DDP_VERIFY_POWERS_UNSIGNED : DDP_VERIFY_POWERS;
        in.bits = 1;
        in.active = DDP_MIN(ranks, exact_twos(dtype));
    }
    return in;
}

static inline uint32_t scramble(uint32_t t)
{
    t ^= t << 13;
    return t ^ (t >> 17);
}

/* True if this rank is active at the element or block number `turn`. */
static inline bool is_active(const struct ddp_verify_input *in, int rank, uint64_t turn)
{
    return ((uint64_t)rank + turn) % (uint64_t)in->ranks < (uint64_t)in->active;
}

static void powers(const struct ddp_verify_input *in, bool two, uint32_t seed, size_t n, int32_t *v)
{
    uint32_t two_mask = two ? 1 : 0;
    uint32_t sign_mask = in->range == DDP_VERIFY_POWERS ? 1 : 0;
    for (size_t j = 0; j < n; j++) {
        uint32_t t = scramble(seed + (uint32_t)j * WEYL);
        int32_t magnitude = 1 + (int32_t)((t >> 30) & two_mask);
        int32_t negative = -(int32_t)((t >> 31) & sign_mask); /* 0 or all ones */
        v[j] = (magnitude ^ negative) - negative;
    }
}

void ddp_verify_values(const struct ddp_verify_input *in, int rank, uint64_t round, size_t first,
                       size_t n, int32_t *v)
{
    uint64_t block = first / DDP_VERIFY_BLOCK;
    uint32_t offset = (uint32_t)(first % DDP_VERIFY_BLOCK);
    uint64_t mixed = ddp_mix64(ddp_mix64(ddp_mix64(block) + (uint64_t)rank) + round);
    uint32_t seed = (uint32_t)(mixed >> 32) + offset * WEYL;
    assert(offset + n <= DDP_VERIFY_BLOCK);
    if (in->range == DDP_VERIFY_POWERS || in->range == DDP_VERIFY_POWERS_UNSIGNED) {
        powers(in, is_active(in, rank, block + round), seed, n, v);
        return;
    }
    if (in->range == DDP_VERIFY_SIGNED) {
        int shift = 31 - in->bits;
        for (size_t j = 0; j < n; j++)
            v[j] = (int32_t)scramble(seed + (uint32_t)j * WEYL) >> shift;
    } else {
        int shift = 32 - in->bits;
        for (size_t j = 0; j < n; j++)
            v[j] = (int32_t)(scramble(seed + (uint32_t)j * WEYL) >> shift);
    }
    for (size_t j = 0; in->factor != 1 && j < n; j++)
        v[j] *= in->factor;
    for (size_t j = 0; in->active < in->ranks && j < n; j++) {
        if (!is_active(in, rank, first + j + round))
            v[j] = 0;
    }
}
