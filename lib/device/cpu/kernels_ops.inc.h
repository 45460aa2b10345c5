/* Element operations of the reduce kernels: combining two values, finishing a result, widening
 * memory types to accumulators and narrowing them back. Part of kernels_cpu.inc.h. */
#ifndef VB
#error "kernels_ops.inc.h is part of a template: include kernels_cpu.h"
#endif

#include "device/cpu/kernels_float.inc.h"

/* The last operation on a combined value. */
enum finish { FINISH_NONE, FINISH_MULTIPLY, FINISH_DIVIDE };
struct finisher {
    enum finish how;
    /* 1/divisor for FINISH_MULTIPLY, else the divisor. 1/divisor is exact for powers of two. */
    double scale;
};

static struct finisher finisher_of(int divisor)
{
    assert(divisor >= 1 && divisor < 1 << 24);
    if (divisor == 1)
        return (struct finisher){FINISH_NONE, 1.0};
    if ((divisor & (divisor - 1)) == 0)
        return (struct finisher){FINISH_MULTIPLY, 1.0 / divisor};
    return (struct finisher){FINISH_DIVIDE, divisor};
}

INLINE v_f64 select_f64(v_u64 mask, v_f64 yes, v_f64 no)
{
    return (v_f64)((mask & (v_u64)yes) | (~mask & (v_u64)no));
}

INLINE v_f32 finish_f32(v_f32 a, struct finisher f)
{
    if (f.how == FINISH_MULTIPLY)
        a = a * (float)f.scale;
    else if (f.how == FINISH_DIVIDE)
        a = a / (float)f.scale;
    return canonical(a);
}

INLINE v_f64 finish_f64(v_f64 a, struct finisher f)
{
    if (f.how == FINISH_MULTIPLY)
        a = a * f.scale;
    else if (f.how == FINISH_DIVIDE)
        a = a / f.scale;
    return select_f64((v_u64)(a == a), a, (v_f64)((v_u64){0} + 0x7ff8000000000000u));
}

/* Averages of integers. The sum is exact: |sum| is at most 2^39 and computed in f64, or for u8
 * below 2^16 and computed in f32. The rounding error of the quotient is smaller than its distance
 * to the next integer, so truncation gives the exact result. */
INLINE v_f64 finish_mean_i32(v_f64 a, struct finisher f)
{
    return f.how == FINISH_MULTIPLY ? a * f.scale : a / f.scale;
}

INLINE v_f32 finish_mean_u8(v_f32 a, struct finisher f)
{
    return f.how == FINISH_MULTIPLY ? a * (float)f.scale : a / (float)f.scale;
}

INLINE v_f32 widen_u8(raw_quarter raw)
{
    return __builtin_convertvector(__builtin_convertvector(raw, v_i32), v_f32);
}

INLINE raw_quarter narrow_u8(v_f32 a)
{
    return __builtin_convertvector(__builtin_convertvector(a, v_i32), raw_quarter);
}

#define AS_IS(a, f)    ((void)(f), (a))
#define TO_F32(raw)    ((v_f32)(raw))
#define TO_F64(raw)    ((v_f64)(raw))
#define TO_U32(raw)    ((v_u32)(raw))
#define TO_U8(raw)     ((v_u8)(raw))
#define TO_RAW(a)      ((raw_full)(a))
#define WIDEN_I32(raw) __builtin_convertvector((v_i32h)(raw), v_f64)
#define NARROW_I32(a)  ((raw_half) __builtin_convertvector(a, v_i32h))
#define ADD(a, b)      ((a) + (b))
#define MUL(a, b)      ((a) * (b))
/* The condition a != a selects a if a is NaN. If b is NaN, the comparison is false, which selects
 * b. */
#define MIN_F32(a, b)    select_f32((v_i32)((a < b) | (a != a)), a, b)
#define MAX_F32(a, b)    select_f32((v_i32)((a > b) | (a != a)), a, b)
#define MIN_F64(a, b)    select_f64((v_u64)((a < b) | (a != a)), a, b)
#define MAX_F64(a, b)    select_f64((v_u64)((a > b) | (a != a)), a, b)
#define PICK(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))
#define MIN_I32(a, b)    PICK((v_u32)((v_i32)(a) < (v_i32)(b)), a, b)
#define MAX_I32(a, b)    PICK((v_u32)((v_i32)(a) > (v_i32)(b)), a, b)
#define MIN_U8(a, b)     PICK((v_u8)((a) < (b)), a, b)
#define MAX_U8(a, b)     PICK((v_u8)((a) > (b)), a, b)
