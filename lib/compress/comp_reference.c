/* Computes the values that compressors must send, in a slow and exact way: top-K by counting,
 * threshold by comparing, 16-bit floats and codes by arithmetic in double. The results verify the
 * kernels of device/sparse.h. This file shares no code with these kernels. */
#include <math.h>
#include <string.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "compress/comp_impl.h"

/* largest_magnitude() treats the 32 bits of a magnitude as a number in base 256. DIGIT is the
 * number of bits in one digit, and BUCKETS is the number of values of a digit. */
#define DIGIT   8
#define BUCKETS (1u << DIGIT)

static uint32_t magnitude_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

/* Returns the k-th largest magnitude of `x` [n]. Each pass over `x` finds one digit of the result,
 * the highest digit first. Among the elements whose higher digits equal the digits found so far,
 * the pass counts how often each value of this digit occurs. Sets *equal to the number of elements
 * among the k largest that have exactly the returned magnitude. k must be from 1 to n. */
static uint32_t largest_magnitude(const float *x, size_t n, size_t k, size_t *equal)
{
    uint32_t found = 0;
    for (int shift = 32 - DIGIT; shift >= 0; shift -= DIGIT) {
        size_t count[BUCKETS] = {0};
        uint32_t digit = BUCKETS - 1;
        for (size_t i = 0; i < n; i++) {
            const uint64_t magnitude = magnitude_of(x[i]);
            if ((magnitude ^ found) >> (shift + DIGIT) == 0)
                count[(magnitude >> shift) % BUCKETS]++;
        }
        for (; count[digit] < k; digit--)
            k -= count[digit];
        found |= digit << shift;
    }
    *equal = k;
    return found;
}

void ddp_comp_topk_reference(const struct ddp_compress_spec *spec, const float *acc, size_t n,
                             uint64_t calls, bool *sent)
{
    size_t equal = 0;
    (void)calls;
    if (n == 0)
        return;
    const uint32_t least =
        largest_magnitude(acc, n, DDP_MIN(spec->compressor->bound(spec, n), n), &equal);
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = magnitude_of(acc[i]);
        sent[i] = magnitude > least || (magnitude == least && equal > 0);
        equal -= sent[i] && magnitude == least;
    }
}

void ddp_comp_threshold_reference(const struct ddp_compress_spec *spec, const float *acc, size_t n,
                                  uint64_t calls, bool *sent)
{
    const uint32_t least = magnitude_of((float)spec->argument);
    (void)calls;
    for (size_t i = 0; i < n; i++)
        sent[i] = magnitude_of(acc[i]) >= least;
}

/* Returns x rounded to nearest even in a format with `digits` significant bits, whose smallest
 * normal number is 2^least and whose largest finite number is `largest`. Near x, neighbouring
 * numbers of the format differ by one *step*. A double of magnitude 2^52 steps has no bits below
 * one step. Adding and then subtracting 1.5 * 2^52 steps therefore rounds x to a multiple of the
 * step. */
static float round_to(float x, int digits, int least, double largest)
{
    if (!isfinite(x))
        return isnan(x) ? (float)NAN : x;
    const int exponent = DDP_MAX((int)(magnitude_of(x) >> 23) - 127, least);
    const uint64_t bits = (uint64_t)(1023 + 52 + exponent - digits + 1) << 52 | UINT64_C(1) << 51;
    double shift;
    memcpy(&shift, &bits, sizeof shift);
    const double rounded = ((double)x + shift) - shift;
    if (fabs(rounded) > largest)
        return x < 0 ? -INFINITY : INFINITY;
    return (float)rounded;
}

void ddp_comp_half_rounded(const struct ddp_compress_spec *spec, float scale, uint64_t key,
                           size_t first, const float *acc, size_t n, float *sent)
{
    (void)key, (void)first;
    const bool is_f16 = spec->compressor->wire_dtype == DDP_F16;
    const int digits = ddp_dtypes[spec->compressor->wire_dtype].digits;
    const double largest = is_f16 ? 65504 : 0x1.fep127;
    const float clip = (float)fmin(spec->argument * (double)scale, ddp_compress_f16_limit(scale));
    for (size_t i = 0; i < n; i++) {
        float x = acc[i];
        if (!isnan(spec->argument) && fabsf(x) > clip)
            x = x < 0 ? -clip : clip;
        sent[i] = round_to(x, digits, is_f16 ? -14 : -126, largest);
    }
}

/* Returns the code of y as a number. `y` is at most the largest code, apart from rounding. */
static float code_of(float y, enum ddp_quant_code code)
{
    switch (code) {
    case DDP_QUANT_E4M3:
        return round_to(y, ddp_dtypes[DDP_FP8_E4M3].digits, -6, 448);
    case DDP_QUANT_E5M2:
        return round_to(y, ddp_dtypes[DDP_FP8_E5M2].digits, -14, 57344);
    default:
        return (float)nearbyint((double)y);
    }
}

/* Returns the random number of an element (device/quant.h). */
static double random_number(uint64_t key, size_t element)
{
    uint32_t h = (uint32_t)(element + key);
    h ^= h / 65536;
    h = (uint32_t)(h * UINT64_C(0x7feb352d)) ^ (uint32_t)(key >> 32);
    h ^= h / 32768;
    h = (uint32_t)(h * UINT64_C(0x846ca68b));
    h = (h ^ h / 65536) / 256;
    return ldexp(h, -24);
}

/* Returns the distance between the two codes next to y. */
static double gap_of(float y, enum ddp_quant_code code)
{
    if (code != DDP_QUANT_E4M3 && code != DDP_QUANT_E5M2)
        return 1;
    const bool e4m3 = code == DDP_QUANT_E4M3;
    const int exponent = DDP_MAX((int)(magnitude_of(y) >> 23) - 127, e4m3 ? -6 : -14);
    return ldexp(1, exponent + 1 - ddp_dtypes[e4m3 ? DDP_FP8_E4M3 : DDP_FP8_E5M2].digits);
}

/* Returns the code of y with stochastic rounding. u: the random number. */
static float random_code(float y, enum ddp_quant_code code, double u)
{
    const double size = fabs((double)y), gap = gap_of(y, code);
    const double low = floor(size / gap) * gap, nearest = fabs((double)code_of(y, code));
    const bool moves = size < (double)ddp_quant_top(code) && u * gap < fabs(size - nearest);
    const double taken = !moves ? nearest : nearest == low ? low + gap : low;
    return (float)copysign(taken, (double)y);
}

/* Computes the decoded values of a block of signs. */
static void sign_block(const float *acc, size_t n, float *sent)
{
    float part[DDP_QUANT_PARTS] = {0};
    for (size_t i = 0; i < n; i++)
        part[i % DDP_QUANT_PARTS] += fabsf(acc[i]);
    for (size_t parts = DDP_QUANT_PARTS; parts > 1; parts /= 2)
        for (size_t k = 0; k < parts / 2; k++)
            part[k] += part[k + parts / 2];
    const float mean = part[0] / (float)n;
    for (size_t i = 0; i < n; i++)
        sent[i] = isfinite(mean) ? copysignf(mean, acc[i]) : (float)NAN;
}

/* Computes the decoded values of a block of codes. `first` is the index of acc[0] in its bucket. */
static void round_block(struct ddp_quant quant, size_t first, const float *acc, size_t n,
                        float *sent)
{
    const enum ddp_quant_code code = quant.code;
    const float top = ddp_quant_top(code);
    float max = 0;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(acc[i]);
        max = fmaxf(max, fabsf(acc[i]));
    }
    for (size_t i = 0; i < n; i++) {
        sent[i] = finite ? 0 : NAN;
        if (!finite || max < DDP_QUANT_LEAST)
            continue;
        const float y = acc[i] * (top / max);
        sent[i] = quant.stochastic ? random_code(y, code, random_number(quant.key, first + i))
                                   : code_of(y, code);
        sent[i] *= max / top;
    }
}

void ddp_comp_quant_rounded(const struct ddp_compress_spec *spec, float scale, uint64_t key,
                            size_t first, const float *acc, size_t n, float *sent)
{
    struct ddp_quant quant = ddp_compress_quant(spec);
    quant.key = key;
    (void)scale;
    for (size_t i = 0; i < n; i += quant.block) {
        const size_t count = DDP_MIN(quant.block, n - i);
        if (quant.code == DDP_QUANT_SIGN)
            sign_block(acc + i, count, sent + i);
        else
            round_block(quant, first + i, acc + i, count, sent + i);
    }
}
