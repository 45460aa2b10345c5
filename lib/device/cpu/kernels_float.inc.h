/* Float operations that every kernel template uses: selection by mask and conversion of bf16. The
 * templates include this file after kernels_level_*.inc.h. */
#ifndef VB
#error "kernels_float.inc.h is part of a template: include kernels_cpu.h"
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
