/* The CPU kernels for AVX-512 (F, BW, DQ, VL). Entered only after ddp_cpu_best_simd() said so. */
#include "device/kernels_cpu.h"

#include <immintrin.h>
#include <string.h>

#define VB             64
#define REDUCE_SYMBOL  ddp_reduce_avx512
#define COPY_NT_SYMBOL ddp_copy_nt_avx512

#include "device/kernels_vec.inc.h"

/* bytes < 64: the callers' loops take whole vectors otherwise. */
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

#include "device/kernels_cpu.inc.h"
