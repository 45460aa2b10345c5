/* Floats of 16 and 8 bits for tests, by real arithmetic in double instead of bit tricks: slow, and
 * independent of what the library does. */
#ifndef DDP_TEST_HALF_REF_H
#define DDP_TEST_HALF_REF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* A format: bits of the fraction and of the exponent, and the exponent bias. only_nan: the format
 * has no infinity, and the only NaN has all bits but the sign set. */
struct half_format {
    int fraction_bits, exponent_bits, bias;
    bool only_nan;
};
static const struct half_format half_f16 = {10, 5, 15, false};
static const struct half_format half_bf16 = {7, 8, 127, false};
static const struct half_format half_e4m3 = {3, 4, 7, true};
static const struct half_format half_e5m2 = {2, 5, 15, false};

/* Returns the format of a float of 16 or 8 bits. */
static inline struct half_format half_of(enum ddp_dtype dtype)
{
    return dtype == DDP_F16        ? half_f16
           : dtype == DDP_BF16     ? half_bf16
           : dtype == DDP_FP8_E4M3 ? half_e4m3
                                   : half_e5m2;
}

static inline int half_sign(struct half_format f)
{
    return 1 << (f.fraction_bits + f.exponent_bits);
}

/* Returns the code of NaN. */
static inline int half_nan(struct half_format f)
{
    const int special = (1 << f.exponent_bits) - 1;
    return f.only_nan ? half_sign(f) - 1 : special << f.fraction_bits | 1 << (f.fraction_bits - 1);
}

/* Returns the code that values beyond the range get: infinity, or NaN. */
static inline int half_beyond(struct half_format f)
{
    return f.only_nan ? half_nan(f) : ((1 << f.exponent_bits) - 1) << f.fraction_bits;
}

static inline double half_decode(struct half_format f, uint16_t bits)
{
    const int code = bits & (half_sign(f) - 1);
    const int fraction = code & ((1 << f.fraction_bits) - 1);
    const int exponent = code >> f.fraction_bits;
    double v;
    if (code > half_beyond(f) || code == half_nan(f))
        v = (double)NAN;
    else if (code == half_beyond(f))
        v = (double)INFINITY;
    else if (exponent == 0)
        v = ldexp(fraction, 1 - f.bias - f.fraction_bits);
    else
        v = ldexp(fraction + (1 << f.fraction_bits), exponent - f.bias - f.fraction_bits);
    return bits & half_sign(f) ? -v : v;
}

/* Rounds to nearest, ties to even. NaN becomes the positive quiet NaN. */
static inline uint16_t half_encode(struct half_format f, double v)
{
    const long beyond = half_beyond(f);
    const uint16_t sign = (uint16_t)(signbit(v) ? half_sign(f) : 0);
    const uint16_t too_large = (uint16_t)(f.only_nan ? beyond : sign | beyond);
    if (isnan(v))
        return (uint16_t)half_nan(f);
    v = fabs(v);
    if (isinf(v))
        return too_large;
    int exponent;
    frexp(v, &exponent); /* v in [2^(exponent-1), 2^exponent) */
    const int lowest = 1 - f.bias;
    const int e = v == 0 || exponent - 1 < lowest ? lowest : exponent - 1;
    if (e - lowest > 1 << f.exponent_bits)
        return too_large;
    const double quantum = ldexp(1, e - f.fraction_bits);
    const long units = (long)nearbyint(v / quantum);
    /* The hidden bit of a normal value adds one to the exponent field below, and a carry out of the
     * fraction moves into it by itself. */
    const long bits = ((long)(e - lowest) << f.fraction_bits) + units;
    return bits >= beyond ? too_large : (uint16_t)(sign | bits);
}

#endif
