/* The operations of AVX-512 (F, BW, DQ, VL) that the kernel templates use. They are described in
 * kernels_level_avx2.inc.h. Each file of this level includes this header once. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VB 64

#include "device/cpu/kernels_vec.inc.h"

/* bytes is below 64. Callers load whole vectors directly. */
INLINE raw_full vec_load_part(const unsigned char *p, size_t bytes)
{
    return (raw_full)_mm512_maskz_loadu_epi8((__mmask64)((1ull << bytes) - 1), p);
}

INLINE void vec_store_part(unsigned char *p, raw_full v, size_t bytes)
{
    _mm512_mask_storeu_epi8(p, (__mmask64)((1ull << bytes) - 1), (__m512i)v);
}

INLINE void vec_stream_full(unsigned char *p, raw_full v)
{
    _mm512_stream_si512((__m512i *)p, (__m512i)v);
}

INLINE void vec_stream_half(unsigned char *p, raw_half v)
{
    _mm256_stream_si256((__m256i *)p, (__m256i)v);
}

INLINE raw_full vec_join(raw_half low, raw_half high)
{
    return (raw_full)_mm512_inserti64x4(_mm512_castsi256_si512((__m256i)low), (__m256i)high, 1);
}

INLINE void vec_stream_end(void)
{
    _mm_sfence();
}

INLINE v_f32 widen_f16(raw_half raw)
{
    return (v_f32)_mm512_cvtph_ps((__m256i)raw);
}

INLINE raw_half narrow_f16(v_f32 value)
{
    return (raw_half)_mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE v_f32 vec_sqrt(v_f32 a)
{
    return (v_f32)_mm512_sqrt_ps((__m512)a);
}

INLINE v_f32 canonical(v_f32 a)
{
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return (v_f32)_mm512_mask_mov_ps((__m512)a,
                                     _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q), nan);
}

INLINE v_f32 vec_clamp(v_f32 a, v_f32 low, v_f32 high)
{
    /* If one operand is NaN, these instructions return the second operand. */
    return (v_f32)_mm512_max_ps((__m512)low, _mm512_min_ps((__m512)high, (__m512)a));
}
