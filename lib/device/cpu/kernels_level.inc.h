/* Vector types and operations of one SIMD level, for the kernel templates. Each level file defines
 * VB, the bytes of a vector, before it includes a template: 16 (the baseline), 32 (AVX2, FMA and
 * F16C) or 64 (AVX-512 F, BW, DQ and VL).
 *
 * Types raw_* hold the bytes of a whole, half or quarter vector as they lie in memory. Types v_*
 * are for arithmetic. Each level defines these operations:
 *   vec_load_part    loads the first bytes of a vector; the other bytes are zero
 *   vec_store_part   stores the first bytes of a vector
 *   vec_stream_full  non-temporal store to aligned memory
 *   vec_join         joins two halves, the lower one first
 *   vec_stream_end   orders non-temporal stores before later stores
 *   widen_f16, narrow_f16   convert from and to binary16
 *   widen_i32        converts half a vector of i32 to f64
 *   bytes_of         converts 32-bit lanes, of which each is below 256, to 8-bit lanes
 *   lanes_of         converts 8-bit lanes to 32-bit lanes
 *   halves_of        converts 8-bit lanes to 16-bit lanes
 *   bytes_of_halves  the low 8 bits of each 16-bit lane
 *   nearest_i32      rounds lanes below 2^22 in magnitude to the nearest integer, ties to even
 *   largest_lane     the largest lane of a vector of i32 that are not negative
 *   vec_sqrt         the square root of each lane
 *   canonical        replaces every NaN, of any sign and payload, by 0x7fc00000
 *   vec_clamp        limits to [low, high]; a NaN stays */
#ifndef DDP_DEVICE_CPU_KERNELS_LEVEL_INC_H
#define DDP_DEVICE_CPU_KERNELS_LEVEL_INC_H

#ifndef VB
#error "kernels_level.inc.h is part of a template: include kernels_cpu.h"
#endif

#if VB > 16
#include <immintrin.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/dtype.h"

#define INLINE        static inline __attribute__((always_inline))
#define VECTOR(bytes) __attribute__((vector_size(bytes)))

typedef unsigned char raw_full VECTOR(VB);
typedef unsigned char raw_half VECTOR(VB / 2);
typedef unsigned char raw_quarter VECTOR(VB / 4);
typedef uint8_t v_u8 VECTOR(VB);
typedef int8_t v_i8 VECTOR(VB);
typedef int8_t v_i8q VECTOR(VB / 4);
typedef uint16_t v_u16h VECTOR(VB / 2);
typedef uint32_t v_u32 VECTOR(VB);
typedef int32_t v_i32 VECTOR(VB);
typedef int32_t v_i32h VECTOR(VB / 2);
typedef uint32_t v_u32h VECTOR(VB / 2);
typedef uint64_t v_u64 VECTOR(VB);
typedef int64_t v_i64 VECTOR(VB);
typedef float v_f32 VECTOR(VB);
typedef double v_f64 VECTOR(VB);

/* Returns whether the hardware prefetcher falls behind in long loops, so that software prefetch
 * helps. On AMD processors the hardware prefetcher keeps up, and software prefetch makes long
 * loops slower (results/notes/kernels.md). */
INLINE bool prefetcher_lags(void)
{
#if defined(__x86_64__)
    return !__builtin_cpu_is("amd");
#else
    return true;
#endif
}

#if VB == 64

/* `bytes` is below 64, because callers load whole vectors directly. */
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

INLINE v_f64 widen_i32(const unsigned char *p)
{
    return (v_f64)_mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i *)p));
}

INLINE raw_quarter bytes_of(v_u32 v)
{
    return (raw_quarter)_mm512_cvtepi32_epi8((__m512i)v);
}

INLINE v_u32 lanes_of(raw_quarter bytes)
{
    return (v_u32)_mm512_cvtepu8_epi32((__m128i)bytes);
}

INLINE v_u16h halves_of(raw_quarter bytes)
{
    return (v_u16h)_mm256_cvtepu8_epi16((__m128i)bytes);
}

INLINE raw_quarter bytes_of_halves(v_u16h halves)
{
    return (raw_quarter)_mm256_cvtepi16_epi8((__m256i)halves);
}

INLINE v_i32 nearest_i32(v_f32 x)
{
    return (v_i32)_mm512_cvtps_epi32((__m512)x);
}

INLINE int32_t largest_lane(v_i32 v)
{
    return _mm512_reduce_max_epi32((__m512i)v);
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

#elif VB == 32

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

INLINE v_f64 widen_i32(const unsigned char *p)
{
    return (v_f64)_mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)p));
}

INLINE raw_quarter bytes_of(v_u32 v)
{
    const __m256i words = _mm256_packus_epi32((__m256i)v, (__m256i)v);
    const __m256i bytes = _mm256_packus_epi16(words, words); /* bytes 0 to 3 of each half */
    const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
    const int64_t both = _mm_cvtsi128_si64(_mm_unpacklo_epi32(low, high));
    raw_quarter out;
    memcpy(&out, &both, sizeof out);
    return out;
}

INLINE v_u32 lanes_of(raw_quarter bytes)
{
    int64_t both;
    memcpy(&both, &bytes, sizeof both);
    return (v_u32)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(both));
}

INLINE v_u16h halves_of(raw_quarter bytes)
{
    return __builtin_convertvector(bytes, v_u16h);
}

INLINE raw_quarter bytes_of_halves(v_u16h halves)
{
    return __builtin_convertvector(halves, raw_quarter);
}

INLINE v_i32 nearest_i32(v_f32 x)
{
    return (v_i32)_mm256_cvtps_epi32((__m256)x);
}

INLINE int32_t largest_lane(v_i32 v)
{
    __m128i most =
        _mm_max_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1)));
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

#else

/* The baseline uses the compiler's 16-byte vectors. The compiler translates operations on these
 * vectors to the target's instructions (SSE2, NEON). binary16 is converted mostly by integer
 * arithmetic. */

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
 * A NaN becomes canonical. The AVX versions above keep the payload of a NaN. All versions agree,
 * because callers pass no NaN except the canonical one. */
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

/* Converts element by element, which is faster than a load of 8 bytes. */
INLINE v_f64 widen_i32(const unsigned char *p)
{
    v_f64 v = {0};
    int32_t x;
    for (size_t i = 0; i < VB / sizeof(double); i++) {
        memcpy(&x, p + i * sizeof(x), sizeof(x));
        v[i] = x;
    }
    return v;
}

/* The conversions between 32-bit and 8-bit lanes go through 16-bit lanes, because GCC 12 converts
 * lane by lane otherwise (results/notes/kernels.md). */
INLINE v_u16h halves_of(raw_quarter bytes)
{
    return __builtin_convertvector(bytes, v_u16h);
}

INLINE raw_quarter bytes_of_halves(v_u16h halves)
{
    return __builtin_convertvector(halves, raw_quarter);
}

INLINE raw_quarter bytes_of(v_u32 v)
{
    return bytes_of_halves(__builtin_convertvector(v, v_u16h));
}

INLINE v_u32 lanes_of(raw_quarter bytes)
{
    return __builtin_convertvector(halves_of(bytes), v_u32);
}

/* Adding 1.5 * 2^23 rounds x to an integer in the low bits of the sum. */
INLINE v_i32 nearest_i32(v_f32 x)
{
    return (v_i32)(x + 12582912.0f) - (v_i32)((v_f32){0} + 12582912.0f);
}

INLINE int32_t largest_lane(v_i32 v)
{
    int32_t most = 0;
    for (int i = 0; i < VB / 4; i++)
        most = v[i] > most ? v[i] : most;
    return most;
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

#endif

INLINE v_f32 select_f32(v_i32 mask, v_f32 yes, v_f32 no)
{
    return (v_f32)((mask & (v_i32)yes) | (~mask & (v_i32)no));
}

INLINE raw_half narrow_bf16(v_f32 a)
{
    const v_u32 bits = (v_u32)a; /* the canonical NaN, 0x7fc00000, rounds to itself */
    const v_u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (raw_half) __builtin_convertvector(rounded, v_u16h);
}

INLINE v_f32 widen_bf16(raw_half raw)
{
    return (v_f32)(__builtin_convertvector((v_u16h)raw, v_u32) << 16);
}

/* Converts fp8-e4m3 or fp8-e5m2 to f32 exactly, as ddp_fp8_widen does. */
INLINE v_f32 widen_fp8(raw_quarter raw, enum ddp_dtype type)
{
    const v_u16h c = halves_of(raw);
    if (type == DDP_FP8_E5M2)
        return widen_f16((raw_half)(c << 8));
    const v_f32 wide = widen_f16((raw_half)((c & 0x80) << 8 | (c & 0x7f) << 7)) * 256.0f;
    const v_i32 ones = (v_i32)(((v_i32)wide & 0x7fffffff) == 0x43f00000); /* 480 */
    return (v_f32)((v_i32)wide | (ones & 0x7fc00000));
}

/* Converts f32 to fp8-e4m3 or fp8-e5m2, as ddp_fp8_result does. A NaN becomes canonical. */
INLINE raw_quarter narrow_fp8(v_f32 value, enum ddp_dtype type)
{
    const bool e4m3 = type == DDP_FP8_E4M3;
    const int shift = e4m3 ? 20 : 21;
    const float step = e4m3 ? 16384.0f : 128.0f; /* its ulp is the subnormal step */
    const v_u32 bits = (v_u32)value, a = bits & 0x7fffffffu;
    const v_u32 rounded =
        (a + (1u << (shift - 1)) - 1u + ((a >> shift) & 1u) - ((e4m3 ? 120u : 112u) << 23)) >>
        shift;
    const v_u32 subnormal = (v_u32)((v_f32)a + step) - (e4m3 ? 0x46800000u : 0x43000000u);
    const v_u32 tiny = (v_u32)((v_i32)a < (e4m3 ? 0x3c800000 : 0x38800000));
    const v_u32 huge = (v_u32)((v_i32)a >= 0x47700000);
    const v_u32 nan = (v_u32)((v_i32)a > (e4m3 ? 0x43e80000 : 0x7f800000));
    v_u32 h = (tiny & subnormal) | (~tiny & rounded);
    if (!e4m3)
        h = (huge & 0x7cu) | (~huge & h);
    h |= (bits >> 24) & 0x80u;
    h = (nan & (e4m3 ? 0x7fu : 0x7eu)) | (~nan & h);
    return bytes_of(h);
}

/* Loads and stores of vectors, whole (lanes == LANES) or partial. */
#define LANES ((size_t)VB / sizeof(float))

INLINE v_f32 load_f32(const float *p, size_t lanes)
{
    v_f32 v;
    if (lanes != LANES)
        return (v_f32)vec_load_part((const unsigned char *)p, lanes * sizeof(float));
    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE void store_f32(float *p, v_f32 v, size_t lanes, bool stream)
{
    if (lanes != LANES)
        vec_store_part((unsigned char *)p, (raw_full)v, lanes * sizeof(float));
    else if (stream)
        vec_stream_full((unsigned char *)p, (raw_full)v);
    else
        memcpy(p, &v, sizeof(v));
}

INLINE v_f32 load_half(const unsigned char *p, size_t lanes, enum ddp_dtype type)
{
    raw_half raw;
    if (lanes != LANES) {
        const raw_full part = vec_load_part(p, lanes * 2);
        memcpy(&raw, &part, sizeof(raw));
    } else {
        memcpy(&raw, p, sizeof(raw));
    }
    return canonical(type == DDP_F16 ? widen_f16(raw) : widen_bf16(raw));
}

INLINE raw_half narrowed(v_f32 v, enum ddp_dtype type)
{
    return type == DDP_F16 ? narrow_f16(v) : narrow_bf16(v);
}

/* NaNs in v must be canonical. */
INLINE void store_half(unsigned char *p, v_f32 v, size_t lanes, enum ddp_dtype type)
{
    const raw_half raw = narrowed(v, type);
    if (lanes != LANES) {
        raw_full part = {0};
        memcpy(&part, &raw, sizeof(raw));
        vec_store_part(p, part, lanes * 2);
    } else {
        memcpy(p, &raw, sizeof(raw));
    }
}

/* Stores v and then w, like two calls of store_half. A non-temporal store writes a whole vector,
 * because with AVX-512 two half-line stores are slower (results/notes/kernels.md). */
INLINE void store_halves(unsigned char *p, v_f32 v, v_f32 w, enum ddp_dtype type, bool stream)
{
    const raw_full both = vec_join(narrowed(v, type), narrowed(w, type));
    if (stream)
        vec_stream_full(p, both);
    else
        memcpy(p, &both, sizeof(both));
}

INLINE v_i32 magnitude(v_f32 v)
{
    return (v_i32)v & 0x7fffffff;
}

#endif
