/* The kernels for AVX-512 (F, BW, DQ, VL). Callers check ddp_cpu_best_simd() first. */
#define VB          64
#define LEVEL(name) name##_avx512

#include "device/cpu/kernels_cpu.inc.h"

typedef __mmask16 lane_mask;

INLINE lane_mask at_least(v_i32 mag, v_i32 floor)
{
    return _mm512_cmpge_epi32_mask((__m512i)mag, (__m512i)floor);
}

/* Moves the mask with an explicit instruction, because GCC 12 miscompiles a plain conversion with
 * -O3 -fsanitize=address. GCC stores 16 bits of the mask, but then counts the bits of a 32-bit
 * word. */
INLINE uint32_t mask_bits(lane_mask mask)
{
    uint32_t bits;
    __asm__("kmovw %1, %0" : "=r"(bits) : "k"(mask));
    return bits;
}

INLINE v_f32 zero_where(lane_mask mask, v_f32 v)
{
    return (v_f32)_mm512_maskz_mov_ps((__mmask16)~mask, (__m512)v);
}

INLINE v_i32 vec_max(v_i32 a, v_i32 b)
{
    return (v_i32)_mm512_max_epi32((__m512i)a, (__m512i)b);
}

/* Compresses into a register and stores the register, because compressing directly to memory is
 * slow on some processors. */
INLINE void pack_lanes(uint32_t *to, v_u32 v, uint32_t bits)
{
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)bits, (__m512i)v));
}

INLINE uint32_t count_bits(uint32_t bits)
{
    return (uint32_t)__builtin_popcount(bits);
}

#include "device/cpu/grad_kernels.inc.h"
