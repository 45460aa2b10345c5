/* The kernels for AVX2, FMA and F16C. Callers check ddp_cpu_best_simd() first. */
#define VB          32
#define LEVEL(name) name##_avx2

#include "device/cpu/kernels_cpu.inc.h"

typedef v_i32 lane_mask;

INLINE lane_mask at_least(v_i32 mag, v_i32 floor)
{
    /* AVX2 compares with > but not with >=. The compiler computes floor - 1 once, outside of
     * loops. */
    return (v_i32)(mag > floor - 1);
}

INLINE uint32_t mask_bits(lane_mask mask)
{
    return (uint32_t)_mm256_movemask_ps((__m256)mask);
}

INLINE v_f32 zero_where(lane_mask mask, v_f32 v)
{
    return (v_f32)((v_i32)v & ~mask);
}

INLINE v_i32 vec_max(v_i32 a, v_i32 b)
{
    return (v_i32)_mm256_max_epi32((__m256i)a, (__m256i)b);
}

/* Row b lists the lanes whose bits are set in b, in order, one byte per lane. The remaining bytes
 * of the row may name any lane. ROW joins the rows of the two halves of b. Its arguments are the
 * lanes of the lower half, their count, and the lanes of the upper half. */
#define ROW(low, count, high) ((uint64_t)(low) | ((uint64_t)(high) + 0x04040404) << 8 * (count))
#define ROWS(high)                                                                                 \
    ROW(0, 0, high), ROW(0, 1, high), ROW(1, 1, high), ROW(0x100, 2, high), ROW(2, 1, high),       \
        ROW(0x200, 2, high), ROW(0x201, 2, high), ROW(0x20100, 3, high), ROW(3, 1, high),          \
        ROW(0x300, 2, high), ROW(0x301, 2, high), ROW(0x30100, 3, high), ROW(0x302, 2, high),      \
        ROW(0x30200, 3, high), ROW(0x30201, 3, high), ROW(0x3020100, 4, high)
static const uint64_t pack_rows[256] = {
    ROWS(0),     ROWS(0),       ROWS(1),       ROWS(0x100),     ROWS(2),     ROWS(0x200),
    ROWS(0x201), ROWS(0x20100), ROWS(3),       ROWS(0x300),     ROWS(0x301), ROWS(0x30100),
    ROWS(0x302), ROWS(0x30200), ROWS(0x30201), ROWS(0x3020100),
};

INLINE void pack_lanes(uint32_t *to, v_u32 v, uint32_t bits)
{
    const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)&pack_rows[bits]));
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permutevar8x32_epi32((__m256i)v, order));
}

INLINE uint32_t count_bits(uint32_t bits)
{
    return (uint32_t)__builtin_popcount(bits);
}

#include "device/cpu/grad_kernels.inc.h"
