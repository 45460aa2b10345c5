/* The kernels for the SIMD baseline that every processor supports. */
#define VB          16
#define LEVEL(name) name##_scalar

#include "device/cpu/kernels_cpu.inc.h"

typedef v_i32 lane_mask;

INLINE lane_mask at_least(v_i32 mag, v_i32 floor)
{
    return (v_i32)(mag > floor - 1);
}

INLINE uint32_t mask_bits(lane_mask mask)
{
    uint32_t bits = 0;
    for (int lane = 0; lane < VB / 4; lane++)
        bits |= ((uint32_t)mask[lane] & 1) << lane;
    return bits;
}

INLINE v_f32 zero_where(lane_mask mask, v_f32 v)
{
    return (v_f32)((v_i32)v & ~mask);
}

INLINE v_i32 vec_max(v_i32 a, v_i32 b)
{
    const v_i32 more = (v_i32)(a > b);
    return (more & a) | (~more & b);
}

INLINE void pack_lanes(uint32_t *to, v_u32 v, uint32_t bits)
{
    for (int lane = 0; lane < VB / 4; lane++) {
        *to = v[lane];
        to += bits >> lane & 1;
    }
}

INLINE uint32_t count_bits(uint32_t bits)
{
    return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1) + (bits >> 3 & 1);
}

#include "device/cpu/grad_kernels.inc.h"
