/* The operations of the baseline that the kernel templates use. They are described in
 * kernels_level_avx2.inc.h, but vec_stream_* are plain stores and vec_stream_end does nothing.
 * Vectors are the compiler's 16-byte vectors, which it lowers to the target's instructions (SSE2,
 * NEON). binary16 is converted mostly by integer arithmetic. Each file of this level includes this
 * header once. */
#include <stdint.h>
#include <string.h>

#define VB 16

#include "device/cpu/kernels_vec.inc.h"

INLINE raw_full vec_load_part(const unsigned char *p, size_t bytes)
{
    raw_full v = {0};
    memcpy(&v, p, bytes);
    return v;
}

INLINE void vec_store_part(unsigned char *p, raw_full v, size_t bytes)
{
    memcpy(p, &v, bytes);
}

/* Uses a plain store, because the baseline has no portable non-temporal store. For callers,
 * non-temporal is only a hint. */
INLINE void vec_stream_full(unsigned char *p, raw_full v)
{
    memcpy(p, &v, sizeof(v));
}

INLINE void vec_stream_half(unsigned char *p, raw_half v)
{
    memcpy(p, &v, sizeof(v));
}

INLINE raw_full vec_join(raw_half low, raw_half high)
{
    raw_full v;
    memcpy(&v, &low, sizeof(low));
    memcpy((unsigned char *)&v + sizeof(low), &high, sizeof(high));
    return v;
}

INLINE void vec_stream_end(void)
{
}

/* Converts binary16 to binary32 exactly. The exponent is increased by 112. The exponent of
 * infinities and NaNs (31) is increased by 112 again. Subnormals are normalised by a subtraction,
 * which is exact. */
INLINE v_f32 widen_f16(raw_half raw)
{
    const v_u32 h = __builtin_convertvector((v_u16h)raw, v_u32);
    const v_u32 sign = (h & 0x8000u) << 16;
    const v_u32 exponent = (h & 0x7c00u) << 13;
    const v_u32 normal = ((h & 0x7fffu) << 13) + (112u << 23);
    const v_u32 special = (v_u32)(exponent == (0x7c00u << 13));
    const v_u32 tiny = (v_u32)(exponent == 0u);
    const v_u32 subnormal = (v_u32)((v_f32)(normal + (1u << 23)) - 0x1p-14f);
    const v_u32 magnitude = (tiny & subnormal) | (~tiny & (normal + (special & (112u << 23))));
    return (v_f32)(magnitude | sign);
}

/* Converts binary32 to binary16, rounding to nearest even. Magnitudes below 2^-14 are rounded by
 * adding 0.5, whose ulp is the subnormal step 2^-24. Magnitudes of at least 65520 become infinite.
 * A NaN becomes canonical. */
INLINE raw_half narrow_f16(v_f32 value)
{
    const v_u32 bits = (v_u32)value;
    const v_u32 sign = (bits >> 16) & 0x8000u;
    const v_u32 a = bits & 0x7fffffffu;
    const v_u32 rounded = (a + 0xfffu + ((a >> 13) & 1u) - (112u << 23)) >> 13;
    const v_u32 subnormal = (v_u32)((v_f32)a + 0.5f) - 0x3f000000u;
    const v_u32 tiny = (v_u32)(a < 0x38800000u);
    const v_u32 huge = (v_u32)(a >= 0x477ff000u);
    const v_u32 nan = (v_u32)(a > 0x7f800000u);
    v_u32 h = (tiny & subnormal) | (~tiny & rounded);
    h = (huge & 0x7c00u) | (~huge & h);
    h = (nan & 0x7e00u) | (~nan & (h | sign));
    return (raw_half) __builtin_convertvector(h, v_u16h);
}

INLINE v_f32 vec_sqrt(v_f32 a)
{
    for (int i = 0; i < VB / 4; i++)
        a[i] = __builtin_sqrtf(a[i]);
    return a;
}

INLINE v_f32 canonical(v_f32 a)
{
    const v_i32 number = (v_i32)(a == a);
    return (v_f32)((number & (v_i32)a) | (~number & 0x7fc00000));
}

INLINE v_f32 vec_clamp(v_f32 a, v_f32 low, v_f32 high)
{
    const v_i32 over = (v_i32)(a > high), under = (v_i32)(a < low);
    return (v_f32)((over & (v_i32)high) | (under & (v_i32)low) | (~(over | under) & (v_i32)a));
}
