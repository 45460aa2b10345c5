/* The arithmetic of one element: what every kernel of the device layer computes, written once.
 *
 * Compiled by nvcc into device cuda's kernels (kernels_*.cu), and by the C compiler as the plain
 * reference that tests hold the CPU's vector kernels against; both give the same bits with
 * -ffp-contract=off and --fmad=false. Semantics: device/sparse.h and struct ddp_reduce.
 * What it does not do: loop, load, store. */
#ifndef DDP_DEVICE_ELEMENT_OPS_H
#define DDP_DEVICE_ELEMENT_OPS_H

#include <math.h>
#include <stdint.h>

#include "base/dtype.h"
#include "device/sparse.h"
#include "device/two_compilers.h"

DDP_BOTH float ddp_f32_canonical(float x)
{
    return x == x ? x : ddp_f32_from(0x7fc00000u);
}

DDP_BOTH double ddp_f64_canonical(double x)
{
    const uint64_t nan = 0x7ff8000000000000u;
    double quiet;
    memcpy(&quiet, &nan, sizeof(quiet));
    return x == x ? x : quiet;
}

/* The order of |x|, NaN the greatest; never negative. */
DDP_BOTH int32_t ddp_f32_magnitude(float x)
{
    return (int32_t)(ddp_f32_bits(x) & 0x7fffffffu);
}

DDP_BOTH float ddp_bf16_widen(uint16_t h)
{
    return ddp_f32_from((uint32_t)h << 16);
}

/* x has a canonical NaN, which rounds to itself. */
DDP_BOTH uint16_t ddp_bf16_narrow(float x)
{
    const uint32_t bits = ddp_f32_bits(x);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

DDP_BOTH float ddp_half_widen(uint16_t h, enum ddp_dtype type)
{
    return ddp_f32_canonical(type == DDP_F16 ? ddp_f16_widen(h) : ddp_bf16_widen(h));
}

/* x has a canonical NaN. */
DDP_BOTH uint16_t ddp_half_narrow(float x, enum ddp_dtype type)
{
    return type == DDP_F16 ? ddp_f16_narrow(x) : ddp_bf16_narrow(x);
}

/* What narrow makes of x before it rounds; clip: INFINITY when there is none. */
DDP_BOTH float ddp_narrow_value(float x, float scale, float clip)
{
    const float y = x * scale;
    return ddp_f32_canonical(y > clip ? clip : y < -clip ? -clip : y);
}

/* Has x, finite, become y, infinite in that type or NaN? */
DDP_BOTH int ddp_narrow_overflows(float x, float y, enum ddp_dtype type)
{
    const int32_t from = type == DDP_F16 ? 0x477ff000 : 0x7f7f8000;
    return ddp_f32_magnitude(y) >= from && ddp_f32_magnitude(x) < 0x7f800000;
}

/* What a lossy encoding left of x behind. */
DDP_BOTH float ddp_narrow_left(float x, uint16_t wire, enum ddp_dtype type)
{
    const float left = x - ddp_half_widen(wire, type);
    return ddp_f32_magnitude(left) < 0x7f800000 ? left : 0.0f;
}

/* A value times a factor, rounded once. NaN canonical. */
DDP_BOTH float ddp_scaled(float x, double factor)
{
    return ddp_f32_canonical((float)(x * factor));
}

/* Did a finite x come back, through 16 bits and a sum, as infinite or NaN? */
DDP_BOTH int ddp_half_overflowed(uint16_t back, float x, enum ddp_dtype type)
{
    const int exponent = type == DDP_F16 ? 0x7c00 : 0x7f80;
    return (back & exponent) == exponent && ddp_f32_magnitude(x) < 0x7f800000;
}

/* One element of a reduction. op: not AVG, which is summed. min and max keep a NaN of either. */
DDP_BOTH float ddp_combine_f32(float a, float b, enum ddp_op op)
{
    if (op == DDP_MIN)
        return a < b || a != a ? a : b;
    if (op == DDP_MAX)
        return a > b || a != a ? a : b;
    return op == DDP_PROD ? a * b : a + b;
}

DDP_BOTH double ddp_combine_f64(double a, double b, enum ddp_op op)
{
    if (op == DDP_MIN)
        return a < b || a != a ? a : b;
    if (op == DDP_MAX)
        return a > b || a != a ? a : b;
    return op == DDP_PROD ? a * b : a + b;
}

/* Bits of an i32 or u8: sums and products wrap. */
DDP_BOTH uint32_t ddp_combine_i32(uint32_t a, uint32_t b, enum ddp_op op)
{
    if (op == DDP_MIN)
        return (int32_t)a < (int32_t)b ? a : b;
    if (op == DDP_MAX)
        return (int32_t)a > (int32_t)b ? a : b;
    return op == DDP_PROD ? a * b : a + b;
}

DDP_BOTH uint8_t ddp_combine_u8(uint8_t a, uint8_t b, enum ddp_op op)
{
    if (op == DDP_MIN)
        return a < b ? a : b;
    if (op == DDP_MAX)
        return a > b ? a : b;
    return (uint8_t)(op == DDP_PROD ? (uint32_t)a * b : (uint32_t)a + b);
}

/* A divisor as the kernels apply it: multiply by `scale` when that is exact, else divide by it. */
struct ddp_finish {
    int how; /* 0: nothing, 1: multiply, 2: divide */
    double scale;
};

DDP_BOTH struct ddp_finish ddp_finish_of(int divisor)
{
    struct ddp_finish f = {0, 1.0};
    if (divisor == 1)
        return f;
    f.how = (divisor & (divisor - 1)) == 0 ? 1 : 2;
    f.scale = f.how == 1 ? 1.0 / divisor : divisor;
    return f;
}

DDP_BOTH float ddp_finish_f32(float a, struct ddp_finish f)
{
    if (f.how == 1)
        a = a * (float)f.scale;
    else if (f.how == 2)
        a = a / (float)f.scale;
    return a;
}

DDP_BOTH double ddp_finish_f64(double a, struct ddp_finish f)
{
    if (f.how == 1)
        a = a * f.scale;
    else if (f.how == 2)
        a = a / f.scale;
    return a;
}

/* acc = in + residual, or the one of them that there is. */
DDP_BOTH float ddp_fed(float in, float residual, int has_in, int has_residual)
{
    return ddp_f32_canonical(has_in && has_residual ? in + residual : has_in ? in : residual);
}

/* a's value first; what is not there adds -0, which changes nothing. */
DDP_BOTH float ddp_merged(float a, float b)
{
    return ddp_f32_canonical(a + b);
}

DDP_BOTH void ddp_sgd_step(float *p, float *v, float grad, float lr, float momentum,
                           float weight_decay)
{
    const float g = grad + *p * weight_decay;
    const float next = *v * momentum + g;
    *v = ddp_f32_canonical(next);
    *p = ddp_f32_canonical(*p - next * lr);
}

/* The bias corrections, folded: step = lr / (1 - b1^t), root = 1 / sqrt(1 - b2^t). One division an
 * element instead of three. */
struct ddp_adam_factors {
    float weight_decay, beta1, rest1, beta2, rest2, epsilon, step, root;
};

static inline struct ddp_adam_factors ddp_adam_factors_of(const struct ddp_adam *a)
{
    struct ddp_adam_factors f;
    f.weight_decay = a->weight_decay;
    f.beta1 = a->beta1;
    f.rest1 = 1 - a->beta1;
    f.beta2 = a->beta2;
    f.rest2 = 1 - a->beta2;
    f.epsilon = a->epsilon;
    f.step = (float)(a->lr / (1 - pow((double)a->beta1, (double)a->step)));
    f.root = (float)(1 / sqrt(1 - pow((double)a->beta2, (double)a->step)));
    return f;
}

DDP_BOTH void ddp_adam_step(float *p, float *m, float *v, float grad, struct ddp_adam_factors f)
{
    const float g = grad + *p * f.weight_decay;
    const float first = *m * f.beta1 + g * f.rest1;
    const float second = *v * f.beta2 + (g * g) * f.rest2;
    *m = ddp_f32_canonical(first);
    *v = ddp_f32_canonical(second);
    *p = ddp_f32_canonical(*p - (first * f.step) / (sqrtf(second) * f.root + f.epsilon));
}

#endif
