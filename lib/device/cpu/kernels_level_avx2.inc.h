/* The operations of AVX2, FMA and F16C that the kernel templates use. Each file of this level
 * includes this header once.
 *   vec_load_part    loads the first bytes of a vector; the other bytes are zero
 *   vec_store_part   stores the first bytes of a vector
 *   vec_stream_*     non-temporal stores to aligned memory
 *   vec_join         joins two halves, the lower one first
 *   vec_stream_end   orders non-temporal stores before later stores
 *   widen_f16, narrow_f16   convert from and to binary16
 *   canonical        replaces every NaN, of any sign and payload, by 0x7fc00000
 *   vec_clamp        limits to [low, high]; a NaN stays */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VB 32

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

INLINE void vec_stream_full(unsigned char *p, raw_full v)
{
    _mm256_stream_si256((__m256i *)p, (__m256i)v);
}

INLINE void vec_stream_half(unsigned char *p, raw_half v)
{
    _mm_stream_si128((__m128i *)p, (__m128i)v);
}

INLINE raw_full vec_join(raw_half low, raw_half high)
{
    return (raw_full)_mm256_set_m128i((__m128i)high, (__m128i)low);
}

INLINE void vec_stream_end(void)
{
    _mm_sfence();
}

INLINE v_f32 widen_f16(raw_half raw)
{
    return (v_f32)_mm256_cvtph_ps((__m128i)raw);
}

INLINE raw_half narrow_f16(v_f32 value)
{
    return (raw_half)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE v_f32 vec_sqrt(v_f32 a)
{
    return (v_f32)_mm256_sqrt_ps((__m256)a);
}

INLINE v_f32 canonical(v_f32 a)
{
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return (v_f32)_mm256_blendv_ps((__m256)a, nan,
                                   _mm256_cmp_ps((__m256)a, (__m256)a, _CMP_UNORD_Q));
}

INLINE v_f32 vec_clamp(v_f32 a, v_f32 low, v_f32 high)
{
    /* If one operand is NaN, these instructions return the second operand. */
    return (v_f32)_mm256_max_ps((__m256)low, _mm256_min_ps((__m256)high, (__m256)a));
}
