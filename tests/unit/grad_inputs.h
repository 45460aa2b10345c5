/* Arrays for the tests of the gradient kernels: many kinds of values, at odd addresses, between
 * guard bytes. */
#ifndef DDP_TEST_GRAD_INPUTS_H
#define DDP_TEST_GRAD_INPUTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/device.h"
#include "device/sparse.h"

#define GUARD_BYTES 128
#define GUARD       0xa5

enum grad_kind {
    GRAD_NORMAL,
    GRAD_HEAVY,
    GRAD_BITS, /* any pattern: denormals, infinities, NaNs with payloads */
    GRAD_CONSTANT,
    GRAD_ZERO, /* of both signs */
    GRAD_DENORMAL,
    GRAD_FEW, /* distinct values */
    GRAD_RISING,
    GRAD_FALLING,
    GRAD_SPIKY, /* all large values side by side */
    GRAD_NAN_INF,
    GRAD_SPARSE, /* about 1 in 20 is not zero */
    GRAD_KINDS
};

static const char *const grad_kind_names[GRAD_KINDS] = {
    "normal", "heavy",  "bits",    "constant", "zero",     "denormal",
    "few",    "rising", "falling", "spiky",    "nan, inf", "sparse"};

static inline float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline float grad_canonical(float x)
{
    return isnan(x) ? float_of(0x7fc00000u) : x;
}

/* Returns a number whose order is the order of |x|. */
static inline uint32_t grad_magnitude(float x)
{
    return bits_of(x) & 0x7fffffffu;
}

static inline float grad_value(enum grad_kind kind, size_t i, size_t n, struct ddp_rng *rng)
{
    const uint64_t r = ddp_rng_u64(rng);
    switch (kind) {
    case GRAD_HEAVY:
        return (float)(ddp_rng_normal(rng) / sqrt(1e-9 + ddp_rng_double(rng)));
    case GRAD_BITS:
        return float_of((uint32_t)r);
    case GRAD_CONSTANT:
        return -0.25f;
    case GRAD_ZERO:
        return r & 1 ? -0.0f : 0.0f;
    case GRAD_DENORMAL:
        return float_of((uint32_t)(r & 0x80ffffffu));
    case GRAD_FEW:
        return (float)((int)(r % 7) - 3);
    case GRAD_RISING:
        return (float)i;
    case GRAD_FALLING:
        return -(float)(n - i);
    case GRAD_SPIKY:
        return (i >= n / 3 && i < n / 3 + n / 50 + 1 ? 1e6f : 1e-3f) * (float)ddp_rng_normal(rng);
    case GRAD_NAN_INF:
        return r % 5 == 0   ? float_of(0x7f800001u | (uint32_t)(r >> 32))
               : r % 5 == 1 ? copysignf(INFINITY, (float)(int32_t)(r >> 32))
                            : (float)ddp_rng_normal(rng);
    case GRAD_SPARSE:
        return r % 20 == 0 ? (float)ddp_rng_normal(rng) : 0;
    default:
        return (float)ddp_rng_normal(rng);
    }
}

/* An array of `bytes` bytes, `offset` bytes after a 64-byte boundary, with guard bytes on both
 * sides. */
struct guarded {
    unsigned char *base;
    size_t offset, bytes;
};

static inline void *guarded_at(const struct guarded *g)
{
    return g->base + GUARD_BYTES + g->offset;
}

static inline struct guarded guarded_new(size_t bytes, size_t offset)
{
    const size_t all = (bytes + offset + 2 * GUARD_BYTES + 63) / 64 * 64;
    struct guarded g = {(unsigned char *)aligned_alloc(64, all), offset, bytes};
    if (!g.base)
        abort();
    memset(g.base, GUARD, all);
    return g;
}

static inline bool guarded_intact(const struct guarded *g)
{
    const unsigned char *at = (const unsigned char *)guarded_at(g);
    for (size_t i = 1; i <= GUARD_BYTES; i++)
        if (at[-(ptrdiff_t)i] != GUARD || (i <= 64 && at[g->bytes + i - 1] != GUARD))
            return false;
    return true;
}

static inline void guarded_free(struct guarded *g)
{
    free(g->base);
}

static inline float *grad_fill(const struct guarded *g, enum grad_kind kind, uint64_t seed)
{
    struct ddp_rng rng;
    float *x = (float *)guarded_at(g);
    const size_t n = g->bytes / sizeof(float);
    ddp_rng_init(&rng, seed, kind);
    for (size_t i = 0; i < n; i++)
        x[i] = grad_value(kind, i, n, &rng);
    return x;
}

#endif
