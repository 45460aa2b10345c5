/* The CPU kernels for AVX2, FMA and F16C. Entered only after ddp_cpu_best_simd() said so. */
#include "device/kernels_cpu.h"

#include <immintrin.h>
#include <string.h>

#define VB             32
#define REDUCE_SYMBOL  ddp_reduce_avx2
#define COPY_NT_SYMBOL ddp_copy_nt_avx2

#include "device/kernels_vec.inc.h"

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

#include "device/kernels_cpu.inc.h"
