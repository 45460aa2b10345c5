/* The arithmetic on one element, shared by GPU kernels, CPU kernels and tests.
 *
 * nvcc compiles this header into the kernels of device cuda (kernels_*.cu). The C compiler compiles
 * it into some kernels of the CPU, and into the reference with which tests compare the vector
 * kernels. Both compilers produce the same bits, because -ffp-contract=off and --fmad=false forbid
 * fused operations. device/sparse.h and struct ddp_reduce define the semantics. */
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

/* Maps x to a non-negative integer that orders values by |x|. A NaN is greater than all numbers. */
DDP_BOTH int32_t ddp_f32_magnitude(float x)
{
    return (int32_t)(ddp_f32_bits(x) & 0x7fffffffu);
}

DDP_BOTH float ddp_bf16_widen(uint16_t h)
{
    return ddp_f32_from((uint32_t)h << 16);
}

/* x must not be NaN, except the canonical NaN, which rounds to itself. */
DDP_BOTH uint16_t ddp_bf16_narrow(float x)
{
    const uint32_t bits = ddp_f32_bits(x);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

DDP_BOTH float ddp_half_widen(uint16_t h, enum ddp_dtype type)
{
    return ddp_f32_canonical(type == DDP_F16 ? ddp_f16_widen(h) : ddp_bf16_widen(h));
}

/* x must not be NaN, except the canonical NaN. */
DDP_BOTH uint16_t ddp_half_narrow(float x, enum ddp_dtype type)
{
    return type == DDP_F16 ? ddp_f16_narrow(x) : ddp_bf16_narrow(x);
}

/* Converts an 8-bit float to f32 exactly. A NaN becomes quiet and keeps its sign. fp8-e5m2 is the
 * upper half of an f16. The exponent and mantissa bits of fp8-e4m3, moved to the fields of an f16,
 * give the value times 2^-8, because the biases are 7 and 15. So the f16 is multiplied by 2^8. In
 * fp8-e4m3 only 0x7f and 0xff are NaN, and there is no infinity. */
DDP_BOTH float ddp_fp8_widen(uint8_t c, enum ddp_dtype type)
{
    if ((c & 0x7f) > (type == DDP_FP8_E4M3 ? 0x7e : 0x7c))
        return ddp_f32_from((uint32_t)(c & 0x80) << 24 | 0x7fc00000u);
    if (type == DDP_FP8_E5M2)
        return ddp_f16_widen((uint16_t)(c << 8));
    return ddp_f16_widen((uint16_t)((c & 0x80) << 8 | (c & 0x7f) << 7)) * 256.0f;
}

/* Rounds x to nearest even, as the Python package ml-dtypes does, and keeps the sign of x. A
 * magnitude above 464 becomes NaN in fp8-e4m3. A magnitude of at least 61440 becomes infinite in
 * fp8-e5m2. Subnormal results are rounded by adding a number whose ulp is the subnormal step. */
DDP_BOTH uint8_t ddp_fp8_narrow(float x, enum ddp_dtype type)
{
    const int e4m3 = type == DDP_FP8_E4M3, shift = e4m3 ? 20 : 21;
    const uint32_t bits = ddp_f32_bits(x), sign = (bits >> 24) & 0x80u, a = bits & 0x7fffffffu;
    if (a > (e4m3 ? 0x43e80000u : 0x7f800000u))
        return (uint8_t)(sign | (e4m3 ? 0x7fu : 0x7eu));
    if (!e4m3 && a >= 0x47700000u)
        return (uint8_t)(sign | 0x7cu);
    if (a < (e4m3 ? 0x3c800000u : 0x38800000u)) {
        const float step = e4m3 ? 16384.0f : 128.0f;
        return (uint8_t)(sign | (ddp_f32_bits(ddp_f32_from(a) + step) - ddp_f32_bits(step)));
    }
    return (uint8_t)(sign | ((a + (1u << (shift - 1)) - 1u + ((a >> shift) & 1u) -
                              ((e4m3 ? 120u : 112u) << 23)) >>
                             shift));
}

/* Rounds the result of a reduction. A NaN becomes positive. */
DDP_BOTH uint8_t ddp_fp8_result(float x, enum ddp_dtype type)
{
    const uint8_t c = ddp_fp8_narrow(ddp_f32_canonical(x), type);
    return type == DDP_FP8_E4M3 && c == 0xffu ? (uint8_t)0x7fu : c;
}

/* Scales and clips x, as the kernel `narrow` (sparse.h) does before it rounds. clip is INFINITY if
 * there is no limit. */
DDP_BOTH float ddp_narrow_value(float x, float scale, float clip)
{
    const float y = x * scale;
    return ddp_f32_canonical(y > clip ? clip : y < -clip ? -clip : y);
}

/* Returns whether x is finite but y, the scaled x, becomes infinite or NaN when it is rounded to
 * the 16-bit type. */
DDP_BOTH int ddp_narrow_overflows(float x, float y, enum ddp_dtype type)
{
    const int32_t from = type == DDP_F16 ? 0x477ff000 : 0x7f7f8000;
    return ddp_f32_magnitude(y) >= from && ddp_f32_magnitude(x) < 0x7f800000;
}

/* Returns the error of the 16-bit encoding of x, or 0 if this error is not finite. */
DDP_BOTH float ddp_narrow_left(float x, uint16_t wire, enum ddp_dtype type)
{
    const float left = x - ddp_half_widen(wire, type);
    return ddp_f32_magnitude(left) < 0x7f800000 ? left : 0.0f;
}

/* Returns x * factor. The product is computed in double and then rounded to f32. A NaN becomes
 * canonical. */
DDP_BOTH float ddp_scaled(float x, double factor)
{
    return ddp_f32_canonical((float)(x * factor));
}

/* Returns whether x is finite but `back`, a 16-bit sum that includes x, is infinite or NaN. */
DDP_BOTH int ddp_half_overflowed(uint16_t back, float x, enum ddp_dtype type)
{
    const int exponent = type == DDP_F16 ? 0x7c00 : 0x7f80;
    return (back & exponent) == exponent && ddp_f32_magnitude(x) < 0x7f800000;
}

/* Combines two values of a reduction. The caller passes SUM instead of AVG. MIN and MAX return NaN
 * if either operand is NaN. */
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

/* How a combined value is divided by the divisor of struct ddp_reduce. */
enum ddp_finish_op { DDP_FINISH_NONE, DDP_FINISH_MULTIPLY, DDP_FINISH_DIVIDE };
struct ddp_finish {
    enum ddp_finish_op how;
    /* 1/divisor for DDP_FINISH_MULTIPLY, else the divisor. 1/divisor is exact for powers of two. */
    double scale;
    int divisor;
};

/* Returns how to divide by a divisor from 1 to 2^24 - 1. */
DDP_BOTH struct ddp_finish ddp_finish_of(int divisor)
{
    struct ddp_finish f = {DDP_FINISH_NONE, 1.0, divisor};
    if (divisor == 1)
        return f;
    f.how = (divisor & (divisor - 1)) == 0 ? DDP_FINISH_MULTIPLY : DDP_FINISH_DIVIDE;
    f.scale = f.how == DDP_FINISH_MULTIPLY ? 1.0 / divisor : divisor;
    return f;
}

DDP_BOTH float ddp_finish_f32(float a, struct ddp_finish f)
{
    if (f.how == DDP_FINISH_MULTIPLY)
        return a * (float)f.scale;
    return f.how == DDP_FINISH_DIVIDE ? a / (float)f.scale : a;
}

DDP_BOTH double ddp_finish_f64(double a, struct ddp_finish f)
{
    if (f.how == DDP_FINISH_MULTIPLY)
        return a * f.scale;
    return f.how == DDP_FINISH_DIVIDE ? a / f.scale : a;
}

/* Returns in + residual if both exist, else the value that exists. */
DDP_BOTH float ddp_add_residual(float in, float residual, int has_in, int has_residual)
{
    return ddp_f32_canonical(has_in && has_residual ? in + residual : has_in ? in : residual);
}

/* Returns the digit that the kernel count_digits counts for x. With m = the magnitude bits of x,
 * this is the lowest 4 bits of m >> shift. Returns -1 if m is 0 or the bits above the digit are not
 * `prefix`. */
DDP_BOTH int ddp_digit_of(float x, uint32_t prefix, int shift)
{
    const uint32_t magnitude = ddp_f32_bits(x) & 0x7fffffffu, digits = magnitude >> shift;
    return magnitude != 0 && digits >> 4 == prefix ? (int)(digits & 15u) : -1;
}

/* Returns how many elements of the ascending array index [n] are below `bound`. */
DDP_BOTH uint32_t ddp_lower_bound(const uint32_t *index, uint32_t n, uint32_t bound)
{
    uint32_t low = 0;
    while (n > 0) {
        const uint32_t half = n / 2;
        if (index[low + half] < bound) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* Adds b to a. The caller passes -0 for a missing entry, because adding -0 changes no value. */
DDP_BOTH float ddp_merged(float a, float b)
{
    return ddp_f32_canonical(a + b);
}

DDP_BOTH void ddp_sgd_element(float *p, float *v, float grad, float lr, float momentum,
                              float weight_decay)
{
    const float g = grad + *p * weight_decay;
    const float next = *v * momentum + g;
    *v = ddp_f32_canonical(next);
    *p = ddp_f32_canonical(*p - next * lr);
}

/* Adam's coefficients including the bias corrections: step = lr / (1 - b1^t), root = 1 / sqrt(1 -
 * b2^t). step and root are computed once per call, so each element needs one division instead of
 * three. */
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

DDP_BOTH void ddp_adam_element(float *p, float *m, float *v, float grad, struct ddp_adam_factors f)
{
    const float g = grad + *p * f.weight_decay;
    const float first = *m * f.beta1 + g * f.rest1;
    const float second = *v * f.beta2 + (g * g) * f.rest2;
    *m = ddp_f32_canonical(first);
    *v = ddp_f32_canonical(second);
    *p = ddp_f32_canonical(*p - (first * f.step) / (sqrtf(second) * f.root + f.epsilon));
}

#endif
