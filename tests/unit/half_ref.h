/* 16-bit floats for tests, by real arithmetic in double instead of bit tricks: slow, and
 * independent of what the library does. */
#ifndef DDP_TEST_HALF_REF_H
#define DDP_TEST_HALF_REF_H

#include <math.h>
#include <stdint.h>

/* A 16-bit format: bits of the fraction, exponent bias, exponent value of infinity and NaN. */
struct half_format {
    int fraction_bits, bias, special;
};
static const struct half_format half_f16 = {10, 15, 31};
static const struct half_format half_bf16 = {7, 127, 255};

static inline double half_decode(struct half_format f, uint16_t bits)
{
    const int fraction = bits & ((1 << f.fraction_bits) - 1);
    const int exponent = (bits & 0x7fff) >> f.fraction_bits;
    double v;
    if (exponent == f.special)
        v = fraction != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        v = ldexp(fraction, 1 - f.bias - f.fraction_bits);
    else
        v = ldexp(fraction + (1 << f.fraction_bits), exponent - f.bias - f.fraction_bits);
    return bits & 0x8000 ? -v : v;
}

/* Rounds to nearest, ties to even. NaN becomes the positive quiet NaN. */
static inline uint16_t half_encode(struct half_format f, double v)
{
    const uint16_t infinity = (uint16_t)(f.special << f.fraction_bits);
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    if (isnan(v))
        return (uint16_t)(infinity | 1u << (f.fraction_bits - 1));
    v = fabs(v);
    if (isinf(v))
        return sign | infinity;
    int exponent;
    frexp(v, &exponent); /* v in [2^(exponent-1), 2^exponent) */
    const int lowest = 1 - f.bias;
    const int e = v == 0 || exponent - 1 < lowest ? lowest : exponent - 1;
    const double quantum = ldexp(1, e - f.fraction_bits);
    const long units = (long)nearbyint(v / quantum);
    if (e - lowest >= f.special)
        return sign | infinity;
    /* The hidden bit of a normal value adds one to the exponent field below, and a carry out of the
     * fraction moves into it by itself. */
    const long bits = ((long)(e - lowest) << f.fraction_bits) + units;
    return (uint16_t)(sign | (bits >= infinity ? infinity : bits));
}

#endif
