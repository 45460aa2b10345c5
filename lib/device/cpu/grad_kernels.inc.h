/* The gradient kernels of one SIMD level: the template behind kernels_*.c.
 *
 * Each level file includes this template once. Before the include, the file defines VB and
 * LEVEL(name), as for kernels_cpu.inc.h, and:
 *   lane_mask                a type that selects lanes of a vector
 *   at_least(mag, floor)     the mask of lanes where mag >= floor (signed)
 *   mask_bits(mask)          the mask as an integer; lane 0 is the lowest bit
 *   zero_where(mask, v)      v with +0 in the selected lanes
 *   vec_max(a, b)            the larger value of each pair of signed lanes
 *   pack_lanes(to, v, bits)  stores the lanes of v whose bits are set in `bits`, without gaps, and
 *                            then undefined lanes, up to the size of a vector
 *   count_bits(bits)         the number of bits set in `bits`; only the lowest LANES may be set
 *
 * The results do not depend on the level, because no operation is contracted and only one kernel
 * adds f32 lanes to each other: the mean of quantised signs, whose order quant.h defines. */
#ifndef VB
#error "grad_kernels.inc.h is a template: include kernels_cpu.h"
#endif

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "device/element_ops.h"
#include "device/cpu/kernels_level.inc.h"

/* Element-wise kernels: conversion and optimiser steps.
 *
 * Each kernel runs a *step* per vector. The compiler inlines a step twice: with the constant LANES
 * for whole vectors, and with a variable count for partial vectors. A step loads before it stores.
 * Therefore two f32 arrays may be the same array, but must not overlap partly. */

/* Number of vectors that are processed together. */
#define BLOCK ((size_t)8)
/* Prefetch distance for kernels that write less than they read. These kernels prefetch only if the
 * hardware prefetcher falls behind (prefetcher_lags). Kernels that rewrite the array they read do
 * not prefetch, because prefetching does not make them faster (results/notes/kernels.md). */
#define AHEAD_BYTES 2048
/* narrow and widen write results of at least this size with non-temporal stores, because the caches
 * would not hold the results until their next use. */
#define STREAM_BYTES ((size_t)32 << 20)

/* Returns the number of elements before the first boundary of `align` bytes in dst. Plain stores
 * write these elements, because non-temporal stores need aligned addresses. Returns SIZE_MAX if the
 * whole array should be written with plain stores. */
static size_t stream_head(const void *dst, size_t n, size_t elem, size_t align)
{
    const size_t head = -(uintptr_t)dst & (align - 1);
    if (n * elem < STREAM_BYTES || head % elem != 0)
        return SIZE_MAX;
    return head / elem;
}

struct narrowing {
    float scale, clip; /* clip: INFINITY if there is no limit */
};

/* Returns the bits of the least magnitude that rounds to infinity. This magnitude is half a step
 * above the greatest finite value of the type (65520 for f16). */
INLINE int32_t overflow_from(enum ddp_dtype to)
{
    return to == DDP_F16 ? 0x477ff000 : 0x7f7f8000;
}

/* Returns in how many of the first `lanes` lanes x is finite, but y is infinite or NaN in the
 * 16-bit type. */
INLINE uint64_t count_overflows(v_f32 x, v_f32 y, size_t lanes, enum ddp_dtype to)
{
    const v_i32 hit =
        (v_i32)(magnitude(y) >= overflow_from(to)) & (v_i32)(magnitude(x) < 0x7f800000);
    uint64_t count = 0;
    for (size_t i = 0; i < lanes; i++)
        count += (uint32_t)-hit[i];
    return count;
}

INLINE v_f32 scaled(v_f32 x, struct narrowing how)
{
    return vec_clamp(x * how.scale, (v_f32){0} - how.clip, (v_f32){0} + how.clip);
}

/* Converts one vector, whole or partial, and returns the number of overflows. */
INLINE uint64_t narrow_step(unsigned char *dst, const float *src, size_t lanes, enum ddp_dtype to,
                            struct narrowing how)
{
    const v_f32 x = load_f32(src, lanes), y = canonical(scaled(x, how));
    store_half(dst, y, lanes, to);
    return count_overflows(x, y, lanes, to);
}

/* Converts BLOCK vectors and returns the number of overflows. Checks the lanes one by one only if
 * the greatest magnitude of the block overflows or is NaN. */
INLINE uint64_t narrow_block(unsigned char *dst, const float *src, enum ddp_dtype to,
                             struct narrowing how, bool ahead, bool stream)
{
    v_f32 y[BLOCK];
    v_i32 greatest = {0};
    uint64_t count = 0;
    if (ahead)
        ddp_prefetch(src, AHEAD_BYTES, sizeof(y));
    for (size_t v = 0; v < BLOCK; v++) {
        y[v] = scaled(load_f32(src + v * LANES, LANES), how);
        greatest = vec_max(greatest, magnitude(y[v]));
    }
    if (mask_bits(at_least(greatest, (v_i32){0} + overflow_from(to))) != 0)
        for (size_t v = 0; v < BLOCK; v++) {
            count += count_overflows(load_f32(src + v * LANES, LANES), y[v], LANES, to);
            y[v] = canonical(y[v]);
        }
    for (size_t v = 0; v < BLOCK; v += 2)
        store_halves(dst + 2 * v * LANES, y[v], y[v + 1], to, stream);
    return count;
}

INLINE uint64_t narrow_loop(unsigned char *dst, const float *src, size_t n, enum ddp_dtype to,
                            struct narrowing how, size_t head, bool stream)
{
    const bool ahead = prefetcher_lags();
    uint64_t count = 0;
    size_t i = 0;
    for (; i < head; i += DDP_MIN(LANES - 1, head - i))
        count += narrow_step(dst + 2 * i, src + i, DDP_MIN(LANES - 1, head - i), to, how);
    for (; n - i >= BLOCK * LANES; i += BLOCK * LANES)
        count += narrow_block(dst + 2 * i, src + i, to, how, ahead, stream);
    for (; n - i >= LANES; i += LANES)
        count += narrow_step(dst + 2 * i, src + i, LANES, to, how);
    if (i < n)
        count += narrow_step(dst + 2 * i, src + i, n - i, to, how);
    if (stream)
        vec_stream_end();
    return count;
}

static uint64_t narrow(void *dst, const float *src, size_t n, enum ddp_dtype to, float scale,
                       float clip)
{
    const struct narrowing how = {scale, clip > 0 ? clip : __builtin_inff()};
    unsigned char *out = (unsigned char *)dst;
    const size_t head = stream_head(dst, n, 2, VB);
    assert(to == DDP_F16 || to == DDP_BF16);
    if (to == DDP_F16)
        return head != SIZE_MAX ? narrow_loop(out, src, n, DDP_F16, how, head, true)
                                : narrow_loop(out, src, n, DDP_F16, how, 0, false);
    return head != SIZE_MAX ? narrow_loop(out, src, n, DDP_BF16, how, head, true)
                            : narrow_loop(out, src, n, DDP_BF16, how, 0, false);
}

INLINE void widen_loop(float *dst, const unsigned char *src, size_t n, enum ddp_dtype from,
                       size_t head, bool stream)
{
    size_t i = 0;
    for (; i < head; i += DDP_MIN(LANES - 1, head - i)) {
        const size_t lanes = DDP_MIN(LANES - 1, head - i);
        store_f32(dst + i, load_half(src + 2 * i, lanes, from), lanes, false);
    }
    for (; n - i >= LANES; i += LANES)
        store_f32(dst + i, load_half(src + 2 * i, LANES, from), LANES, stream);
    if (i < n)
        store_f32(dst + i, load_half(src + 2 * i, n - i, from), n - i, false);
    if (stream)
        vec_stream_end();
}

static void widen(float *dst, const void *src, size_t n, enum ddp_dtype from)
{
    const unsigned char *in = (const unsigned char *)src;
    const size_t head = stream_head(dst, n, sizeof(float), VB);
    assert(from == DDP_F16 || from == DDP_BF16);
    if (from == DDP_F16 && head != SIZE_MAX)
        widen_loop(dst, in, n, DDP_F16, head, true);
    else if (from == DDP_F16)
        widen_loop(dst, in, n, DDP_F16, 0, false);
    else if (head != SIZE_MAX)
        widen_loop(dst, in, n, DDP_BF16, head, true);
    else
        widen_loop(dst, in, n, DDP_BF16, 0, false);
}

INLINE void widen_add_step(float *dst, const unsigned char *src, size_t lanes, enum ddp_dtype from)
{
    const v_f32 sum = load_f32(dst, lanes) + load_half(src, lanes, from);
    store_f32(dst, canonical(sum), lanes, false);
}

/* Runs STEP(i, lanes) for every vector of an array [n]. The last vector may be partial. */
#define EACH_VECTOR(n, STEP)                                                                       \
    do {                                                                                           \
        size_t at = 0;                                                                             \
        for (; (n)-at >= LANES; at += LANES)                                                       \
            STEP(at, LANES);                                                                       \
        if (at < (n))                                                                              \
            STEP(at, (n)-at);                                                                      \
    } while (0)

static void widen_add(float *dst, const void *src, size_t n, enum ddp_dtype from)
{
    const unsigned char *in = (const unsigned char *)src;
    assert(from == DDP_F16 || from == DDP_BF16);
#define F16_STEP(i, lanes)  widen_add_step(dst + (i), in + 2 * (i), lanes, DDP_F16)
#define BF16_STEP(i, lanes) widen_add_step(dst + (i), in + 2 * (i), lanes, DDP_BF16)
    if (from == DDP_F16)
        EACH_VECTOR(n, F16_STEP);
    else
        EACH_VECTOR(n, BF16_STEP);
#undef F16_STEP
#undef BF16_STEP
}

INLINE void residual_step(float *residual, const float *in, const unsigned char *wire, size_t lanes,
                          enum ddp_dtype type)
{
    const v_f32 left = load_f32(in, lanes) - load_half(wire, lanes, type);
    const v_i32 finite = (v_i32)(magnitude(left) < 0x7f800000);
    store_f32(residual, (v_f32)((v_i32)left & finite), lanes, false);
}

static void narrow_residual(float *residual, const float *in, const void *wire, size_t n,
                            enum ddp_dtype type)
{
    const unsigned char *sent = (const unsigned char *)wire;
    assert(type == DDP_F16 || type == DDP_BF16);
#define F16_STEP(i, lanes)  residual_step(residual + (i), in + (i), sent + 2 * (i), lanes, DDP_F16)
#define BF16_STEP(i, lanes) residual_step(residual + (i), in + (i), sent + 2 * (i), lanes, DDP_BF16)
    if (type == DDP_F16)
        EACH_VECTOR(n, F16_STEP);
    else
        EACH_VECTOR(n, BF16_STEP);
#undef F16_STEP
#undef BF16_STEP
}

INLINE void sgd_step(float *p, float *v, const float *grad, size_t lanes, float lr, float momentum,
                     float weight_decay)
{
    const v_f32 old = load_f32(p, lanes);
    const v_f32 g = load_f32(grad, lanes) + old * weight_decay;
    const v_f32 next = load_f32(v, lanes) * momentum + g;
    store_f32(v, canonical(next), lanes, false);
    store_f32(p, canonical(old - next * lr), lanes, false);
}

static void sgd(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                float weight_decay)
{
#define SGD(i, lanes) sgd_step(p + (i), v + (i), grad + (i), lanes, lr, momentum, weight_decay)
    EACH_VECTOR(n, SGD);
#undef SGD
}

INLINE void adam_step(float *p, float *m, float *v, const float *grad, size_t lanes,
                      struct ddp_adam_factors f)
{
    const v_f32 old = load_f32(p, lanes);
    const v_f32 g = load_f32(grad, lanes) + old * f.weight_decay;
    const v_f32 first = load_f32(m, lanes) * f.beta1 + g * f.rest1;
    const v_f32 second = load_f32(v, lanes) * f.beta2 + (g * g) * f.rest2;
    store_f32(m, canonical(first), lanes, false);
    store_f32(v, canonical(second), lanes, false);
    const v_f32 change = (first * f.step) / (vec_sqrt(second) * f.root + f.epsilon);
    store_f32(p, canonical(old - change), lanes, false);
}

static void adam(float *p, float *m, float *v, const float *grad, size_t n,
                 const struct ddp_adam *a)
{
    const struct ddp_adam_factors f = ddp_adam_factors_of(a);
#define ADAM(i, lanes) adam_step(p + (i), m + (i), v + (i), grad + (i), lanes, f)
    EACH_VECTOR(n, ADAM);
#undef ADAM
}

/* Selection with error feedback in one pass.
 *
 * For each block of vectors, a pass adds the residual, selects lanes, stores the new residual and
 * packs the selected entries. A block without selected lanes skips the packing with one branch. A
 * block with selected lanes is packed without branches on the lanes. Packing writes whole vectors.
 * The output arrays have room for n entries. A store never ends beyond these arrays, because the
 * kernel never packs more entries than it has read elements. */

/* A floor above every magnitude, which selects nothing. */
#define ABOVE_ALL INT32_MAX

/* The input of a pass: the sum of `in` and `residual`, only `in`, or only `residual`. A pass
 * rewrites the residual if there is one. */
enum feed { FEED_SUM, FEED_IN, FEED_RESIDUAL };

INLINE v_f32 with_residual(const float *in, const float *residual, size_t lanes, enum feed feed)
{
    if (feed == FEED_SUM)
        return canonical(load_f32(in, lanes) + load_f32(residual, lanes));
    return canonical(load_f32(feed == FEED_IN ? in : residual, lanes));
}

/* Returns 0, 1, 2, ... in the lanes of a vector. */
INLINE v_u32 iota(void)
{
    v_u32 v;
    for (uint32_t i = 0; i < LANES; i++)
        v[i] = i;
    return v;
}

/* Sets *acc to the input values of one vector, and stores the new residual. Returns a bit mask of
 * the lanes whose magnitude is at least `least`. */
INLINE uint32_t select_vector(const float *in, float *residual, size_t lanes, enum feed feed,
                              v_i32 least, v_f32 *acc)
{
    *acc = with_residual(in, residual, lanes, feed);
    const lane_mask chosen = at_least(magnitude(*acc), least);
    if (feed != FEED_IN)
        store_f32(residual, zero_where(chosen, *acc), lanes, false);
    return mask_bits(chosen);
}

INLINE size_t select_loop(const float *in, float *residual, size_t n, enum feed feed, int32_t floor,
                          uint32_t *index, float *value)
{
    const v_i32 least = (v_i32){0} + floor;
    const bool ahead = feed == FEED_IN && prefetcher_lags();
    v_u32 at = iota();
    v_f32 acc[BLOCK];
    uint32_t bits[BLOCK];
    size_t count = 0, i = 0;
    for (; n - i >= BLOCK * LANES; i += BLOCK * LANES, at += (uint32_t)(BLOCK * LANES)) {
        uint32_t any = 0;
        if (ahead)
            ddp_prefetch(in + i, AHEAD_BYTES, sizeof(acc));
        for (size_t v = 0; v < BLOCK; v++) {
            const size_t j = i + v * LANES;
            bits[v] = select_vector(in + j, residual + j, LANES, feed, least, &acc[v]);
            any |= bits[v];
        }
        if (any == 0)
            continue;
        for (size_t v = 0; v < BLOCK; v++) {
            pack_lanes(index + count, at + (uint32_t)(v * LANES), bits[v]);
            pack_lanes((uint32_t *)(void *)(value + count), (v_u32)acc[v], bits[v]);
            count += count_bits(bits[v]);
        }
    }
    for (; i < n; i += DDP_MIN(LANES, n - i), at += (uint32_t)LANES) {
        uint32_t left[LANES] = {0};
        const size_t lanes = DDP_MIN(LANES, n - i);
        bits[0] = lanes == LANES ? select_vector(in + i, residual + i, LANES, feed, least, acc)
                                 : select_vector(in + i, residual + i, lanes, feed, least, acc);
        bits[0] &= (uint32_t)((1ull << lanes) - 1);
        const size_t more = count_bits(bits[0]);
        pack_lanes(left, at, bits[0]);
        memcpy(index + count, left, more * sizeof(*index));
        pack_lanes(left, (v_u32)acc[0], bits[0]);
        memcpy(value + count, left, more * sizeof(*value));
        count += more;
    }
    return count;
}

/* Selects the elements whose magnitude is at least `floor`. in and residual are arrays [n]; one of
 * them may be NULL. index and value have room for n entries. Returns the number of selected
 * entries. */
static size_t select_pass(const float *in, float *residual, size_t n, int32_t floor,
                          uint32_t *index, float *value)
{
    assert(in != NULL || residual != NULL);
    if (residual == NULL)
        return select_loop(in, residual, n, FEED_IN, floor, index, value);
    if (in == NULL)
        return select_loop(in, residual, n, FEED_RESIDUAL, floor, index, value);
    return select_loop(in, residual, n, FEED_SUM, floor, index, value);
}

static size_t select_threshold(struct ddp_select *s, float threshold)
{
    int32_t floor;
    memcpy(&floor, &threshold, sizeof(floor));
    assert(threshold >= 0);
    s->out.count =
        select_pass(s->in, s->residual, s->n, floor & INT32_MAX, s->out.index, s->out.value);
    return s->out.count;
}

/* Finds the k-th largest magnitude of an array, exactly and in linear time.
 *
 * The search keeps a *range* [low, high] of magnitudes that contains the answer. Each round divides
 * the range into equal *buckets* and counts the *members* of each bucket, which are the values in
 * the bucket. The search continues in the bucket that contains the wanted rank. One round
 * determines up to 11 bits of the magnitude. The bits of a float form a logarithmic scale. Buckets
 * are therefore narrow where values are dense, and few members remain after one round. When at most
 * CHUNK members remain, bisection finds the answer. */

#define MAX_BUCKET_BITS 11
/* Counters per bucket. With a single counter, each increment in a run of equal values would wait
 * for the previous store. */
#define WAYS ((size_t)4)
/* Number of values that are packed at a time. The packed members stay in the first-level cache. */
#define CHUNK ((size_t)512)
/* Base-2 logarithm of the intended number of members per bucket. A smaller number would mean more
 * buckets to scan. */
#define BUCKET_MEMBERS_LOG2 2

/* The result of a search for the rank-th largest magnitude. */
struct rank {
    /* The rank-th largest magnitude. */
    int32_t magnitude;
    /* How many of the `rank` largest values have exactly this magnitude. */
    size_t ties;
};

static int32_t greatest_magnitude(const float *x, size_t n)
{
    v_i32 most[BLOCK] = {{0}};
    size_t i = 0;
    for (; n - i >= BLOCK * LANES; i += BLOCK * LANES)
        for (size_t v = 0; v < BLOCK; v++) {
            const v_i32 m = magnitude(canonical(load_f32(x + i + v * LANES, LANES)));
            most[v] = vec_max(most[v], m);
        }
    for (; i < n; i += DDP_MIN(LANES, n - i)) {
        const size_t lanes = DDP_MIN(LANES, n - i);
        const v_f32 part = lanes == LANES ? load_f32(x + i, LANES) : load_f32(x + i, lanes);
        most[0] = vec_max(most[0], magnitude(canonical(part)));
    }
    for (size_t v = 1; v < BLOCK; v++)
        most[0] = vec_max(most[0], most[v]);
    int32_t greatest = 0;
    for (size_t lane = 0; lane < LANES; lane++)
        greatest = DDP_MAX(greatest, most[0][lane]);
    return greatest;
}

/* Stores magnitude - low of each value in x[0..n) whose magnitude is in [low, high]. The stored
 * values follow each other in `to` without gaps. Returns the number of stored values. `to` has room
 * for LANES more values than are stored. */
static size_t pack_members(uint32_t *to, const float *x, size_t n, int32_t low, int32_t high)
{
    const v_i32 least = (v_i32){0} + low, above = (v_i32){0} + (high + 1);
    size_t count = 0;
    for (size_t i = 0; i < n; i += DDP_MIN(LANES, n - i)) {
        const size_t lanes = DDP_MIN(LANES, n - i);
        const v_f32 part = lanes == LANES ? load_f32(x + i, LANES) : load_f32(x + i, lanes);
        const v_i32 m = magnitude(canonical(part));
        const uint32_t bits = mask_bits(at_least(m, least)) & ~mask_bits(at_least(m, above)) &
                              (uint32_t)((1ull << lanes) - 1);
        pack_lanes(to + count, (v_u32)(m - least), bits);
        count += count_bits(bits);
    }
    return count;
}

/* Adds the number of values in each bucket of the range [low, high] to the counters. */
static void count_buckets(uint32_t (*buckets)[WAYS], const float *x, size_t n, int32_t low,
                          int32_t high, int shift)
{
    uint32_t members[CHUNK + LANES];
    for (size_t from = 0; from < n; from += DDP_MIN(CHUNK, n - from)) {
        const size_t count = pack_members(members, x + from, DDP_MIN(CHUNK, n - from), low, high);
        size_t i = 0;
        for (; count - i >= WAYS; i += WAYS)
            for (size_t way = 0; way < WAYS; way++)
                buckets[members[i + way] >> shift][way]++;
        for (; i < count; i++)
            buckets[members[i] >> shift][0]++;
    }
}

/* Returns how many of the first `count` members are at least `least`, which is > 0. The caller has
 * padded the array with zeros to whole vectors. */
static size_t count_at_least(const uint32_t *members, size_t count, int32_t least)
{
    const v_i32 floor = (v_i32){0} + least;
    size_t found = 0;
    for (size_t i = 0; i < count; i += LANES) {
        v_i32 v;
        memcpy(&v, members + i, sizeof(v));
        found += count_bits(mask_bits(at_least(v, floor)));
    }
    return found;
}

/* Does the work of find_rank if the range [low, high] has at most CHUNK members. Finds the greatest
 * value that at least `rank` members reach. */
static struct rank bisect_rank(const float *x, size_t n, size_t rank, int32_t low, int32_t high)
{
    uint32_t members[CHUNK + 2 * LANES];
    const size_t count = pack_members(members, x, n, low, high);
    memset(members + count, 0, LANES * sizeof(*members));
    int32_t reached = 0, limit = high - low;
    while (reached < limit) {
        const int32_t middle = reached + (limit - reached - 1) / 2 + 1;
        if (count_at_least(members, count, middle) >= rank)
            reached = middle;
        else
            limit = middle - 1;
    }
    return (struct rank){low + reached, rank - count_at_least(members, count, reached + 1)};
}

/* Searches downwards from `bucket` for the bucket with the *rank-th largest member. Sets *rank to
 * the rank within that bucket and *members to the number of members of that bucket. */
static size_t find_bucket(uint32_t (*buckets)[WAYS], size_t bucket, size_t *rank, size_t *members)
{
    for (;; bucket--) {
        *members = 0;
        for (size_t way = 0; way < WAYS; way++)
            *members += buckets[bucket][way];
        if (*rank <= *members)
            return bucket;
        *rank -= *members;
        assert(bucket > 0);
    }
}

/* Finds the rank-th largest magnitude of x [n]. Every NaN counts as the canonical NaN. rank is at
 * least 1 and at most the number of values with a magnitude of at least `low`. */
static struct rank find_rank(const float *x, size_t n, size_t rank, int32_t low)
{
    uint32_t buckets[1 << MAX_BUCKET_BITS][WAYS];
    int32_t high = greatest_magnitude(x, n);
    size_t members = n;
    while (low < high) {
        if (members <= CHUNK)
            return bisect_rank(x, n, rank, low, high);
        const int bits =
            31 - BUCKET_MEMBERS_LOG2 - __builtin_clz((uint32_t)DDP_MIN(members, 1u << 31));
        const int width = 32 - __builtin_clz((uint32_t)(high - low));
        const int shift = DDP_MAX(width - DDP_MIN(bits, MAX_BUCKET_BITS), 0);
        const size_t last = (size_t)((high - low) >> shift);
        memset(buckets, 0, (last + 1) * sizeof(buckets[0]));
        count_buckets(buckets, x, n, low, high, shift);
        low += (int32_t)(find_bucket(buckets, last, &rank, &members) << shift);
        high = DDP_MIN(high, low + (int32_t)((1u << shift) - 1));
    }
    return (struct rank){low, rank};
}

/* Exact top-K with error feedback.
 *
 * 1. Guess a *floor*, a magnitude that slightly more than k elements reach. The guess is a value
 * just below the caller's hint, or a quantile of a *sample* of the array.
 *
 * 2. Collect the *candidates*, the elements that reach the floor, in one pass.
 *
 * 3. Find the *cut*, the magnitude of the k-th largest candidate, with find_rank. Select the k
 * candidates that the cut determines, and put the others back into the residual.
 *
 * If the guess is a magnitude that many elements share (0, for example), the floor is set just
 * above this magnitude, so that these elements do not become candidates. If there are then fewer
 * than k candidates, the first elements of the shared magnitude complete the selection. If this
 * does not give k elements either, the cut is searched in the whole array. */

/* Arrays of up to about this many elements are not sampled. */
#define SMALL ((size_t)1024)
/* A sample consists of whole cache lines of LINE floats. sample_floor takes one line at a random
 * position from every `stride` lines, so that a period in the array does not bias the sample. The
 * sample has 1/64 of the array's elements, and a larger share of small arrays. */
#define LINE          ((size_t)16)
#define SAMPLE_STRIDE ((size_t)64)
#define SAMPLE_LEAST  ((size_t)2048)
/* Distance of the floor below the hint, as a difference of float bits. 2^19 is 3 to 6 percent of
 * the value. */
#define HINT_MARGIN (1 << 19)

/* If more than 1/PLATEAU of the sample has the magnitude of the floor, the floor is set just above
 * this magnitude. */
#define PLATEAU 8

/* Returns how many magnitudes of x [n] are at least `least`. */
static size_t count_reaching(const float *x, size_t n, int32_t least)
{
    const v_i32 floor = (v_i32){0} + least;
    size_t count = 0, i = 0;
    for (; n - i >= LANES; i += LANES)
        count +=
            count_bits(mask_bits(at_least(magnitude(canonical(load_f32(x + i, LANES))), floor)));
    if (i < n) {
        const v_i32 m = magnitude(canonical(load_f32(x + i, n - i)));
        count += count_bits(mask_bits(at_least(m, floor)) & (uint32_t)((1ull << (n - i)) - 1));
    }
    return count;
}

/* Returns the floor that a sample suggests, or 0 if a sample would not help. The rank of the floor
 * in the sample is k scaled to the size of the sample, plus a margin. The margin is 1/16 of the
 * scaled k, because neighbours in a line are alike, plus 4 standard deviations of a binomial count,
 * plus 1. sample has room for n values. */
static int32_t sample_floor(const float *in, const float *residual, size_t n, size_t k,
                            float *sample)
{
    const size_t head = (-(uintptr_t)(in ? in : residual) & (LINE * 4 - 1)) / 4;
    if (n <= SMALL + head)
        return 0;
    const size_t lines = (n - head) / LINE;
    const size_t stride = DDP_MAX(DDP_MIN(SAMPLE_STRIDE, lines / (SAMPLE_LEAST / LINE)), 1);
    size_t count = 0;
    uint64_t random = n;
    for (size_t line = 0; line + stride <= lines; line += stride) {
        random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth, TAOCP 2, 3.3.4 */
        const size_t from = head + LINE * (line + (size_t)((random >> 32) * stride >> 32));
        for (size_t i = from; i < from + LINE; i += LANES, count += LANES) {
            v_f32 v = load_f32((in ? in : residual) + i, LANES);
            if (in != NULL && residual != NULL)
                v += load_f32(residual + i, LANES);
            store_f32(sample + count, v, LANES, false);
        }
    }
    const double share = (double)k / (double)n, expected = share * (double)count;
    const double rank = expected * 17 / 16 + 4 * sqrt(expected * (1 - share)) + 1;
    if (rank >= (double)count)
        return 0;
    const int32_t floor = find_rank(sample, count, (size_t)rank, 0).magnitude;
    const size_t same =
        count_reaching(sample, count, floor) - count_reaching(sample, count, floor + 1);
    return same > count / PLATEAU ? floor + 1 : floor;
}

/* Returns the lowest bits that are set in `eq`, at most *ties of them. Reduces *ties by the number
 * of returned bits. */
INLINE uint32_t take_ties(uint32_t eq, size_t *ties)
{
    uint32_t take = 0;
    if (count_bits(eq) <= *ties) {
        *ties -= count_bits(eq);
        return eq;
    }
    for (; *ties != 0; eq &= eq - 1, (*ties)--)
        take |= eq & -eq;
    return take;
}

/* Returns a mask of the lanes of v above the cut and of the first cut->ties lanes equal to the cut.
 * Reduces cut->ties by the number of lanes equal to the cut in the mask. */
INLINE uint32_t reach_cut(v_f32 v, size_t lanes, struct rank *cut)
{
    const uint32_t all = (uint32_t)((1ull << lanes) - 1);
    const v_i32 equal = (v_i32){0} + cut->magnitude, above = (v_i32){0} + (cut->magnitude + 1);
    const uint32_t more = mask_bits(at_least(magnitude(v), above)) & all;
    const uint32_t same = mask_bits(at_least(magnitude(v), equal)) & all & ~more;
    return more | take_ties(same, &cut->ties);
}

/* Appends the entries of the lanes in `take` to `out`, which has room for k entries. */
INLINE void append_lanes(struct ddp_sparse *out, size_t k, v_u32 index, v_f32 value, uint32_t take)
{
    const size_t more = count_bits(take);
    if (k - out->count >= LANES) {
        pack_lanes(out->index + out->count, index, take);
        pack_lanes((uint32_t *)(void *)(out->value + out->count), (v_u32)value, take);
    } else {
        uint32_t part[LANES];
        pack_lanes(part, index, take);
        memcpy(out->index + out->count, part, more * sizeof(*part));
        pack_lanes(part, (v_u32)value, take);
        memcpy(out->value + out->count, part, more * sizeof(*part));
    }
    out->count += more;
}

/* Copies the candidates that the cut selects, k entries, to `out`, in order. Puts the other
 * candidates back into the residual, if there is one. */
static void split_candidates(const struct ddp_sparse *candidates, struct rank cut, size_t k,
                             float *residual, struct ddp_sparse *out)
{
    out->count = 0;
    for (size_t i = 0; i < candidates->count; i += DDP_MIN(LANES, candidates->count - i)) {
        const size_t lanes = DDP_MIN(LANES, candidates->count - i);
        const uint32_t *index = candidates->index + i;
        const float *value = candidates->value + i;
        const v_u32 at = (v_u32)load_f32((const float *)(const void *)index, lanes);
        const v_f32 v = load_f32(value, lanes);
        const uint32_t take = reach_cut(v, lanes, &cut);
        append_lanes(out, k, at, v, take);
        if (residual != NULL)
            for (uint32_t left = ~take & (uint32_t)((1ull << lanes) - 1); left != 0;
                 left &= left - 1)
                residual[index[__builtin_ctz(left)]] = value[__builtin_ctz(left)];
    }
    assert(out->count == k);
}

/* Copies the elements of x [n] that the cut selects, k entries, to `out`. If there is a residual, x
 * is the residual, and the copied elements become 0. */
static void split_array(const float *x, size_t n, struct rank cut, size_t k, float *residual,
                        struct ddp_sparse *out)
{
    v_u32 at = iota();
    out->count = 0;
    for (size_t i = 0; out->count < k; i += DDP_MIN(LANES, n - i), at += (uint32_t)LANES) {
        const size_t lanes = DDP_MIN(LANES, n - i);
        const v_f32 v = canonical(load_f32(x + i, lanes));
        const uint32_t take = reach_cut(v, lanes, &cut);
        if (take == 0)
            continue;
        append_lanes(out, k, at, v, take);
        if (residual != NULL)
            for (uint32_t taken = take; taken != 0; taken &= taken - 1)
                residual[i + (size_t)__builtin_ctz(taken)] = 0;
    }
    assert(out->count == k);
}

/* Collects the candidates. Takes the floor from the hint, if there is a hint. Otherwise, or if
 * fewer than k values reach this floor, takes the floor from a sample. Returns true if there are at
 * least k candidates. Otherwise candidates->count is the number of values that reach *floor, and
 * the residual, if there is one, holds the sums again. */
static bool take_candidates(const struct ddp_select *s, size_t k, uint32_t hint,
                            struct ddp_sparse *candidates, int32_t *floor)
{
    const float *in = s->in;
    for (bool hinted = hint != 0;; hinted = false) {
        *floor = hinted ? DDP_MAX((int32_t)DDP_MIN(hint, (uint32_t)ABOVE_ALL) - HINT_MARGIN, 0)
                        : sample_floor(in, s->residual, s->n, k, candidates->value);
        candidates->count =
            select_pass(in, s->residual, s->n, *floor, candidates->index, candidates->value);
        if (candidates->count >= k)
            return true;
        if (s->residual != NULL) {
            ddp_list_scatter(s->residual, candidates);
            in = NULL;
        }
        if (!hinted)
            return false;
    }
}

/* Returns the cut of the whole array x [n]. `above` is the number of values that reach `floor`, and
 * is less than k. The magnitude just below the floor is tried first, because often all missing
 * values have that magnitude. */
static struct rank find_cut(const float *x, size_t n, size_t k, int32_t floor, size_t above)
{
    if (floor > 0 && count_reaching(x, n, floor - 1) >= k)
        return (struct rank){floor - 1, k - above};
    return find_rank(x, n, k, 0);
}

static size_t select_topk(struct ddp_select *s, size_t k, uint32_t *hint, void *scratch)
{
    struct ddp_sparse candidates = {(uint32_t *)scratch, (float *)scratch + s->n, 0};
    struct rank cut;
    int32_t floor;
    if (k == 0 || s->n == 0) {
        s->out.count =
            select_pass(s->in, s->residual, s->n, ABOVE_ALL, candidates.index, candidates.value);
        return 0;
    }
    if (k >= s->n) {
        s->out.count = select_pass(s->in, s->residual, s->n, 0, s->out.index, s->out.value);
        cut = find_rank(s->out.value, s->n, s->n, 0);
    } else if (take_candidates(s, k, hint ? *hint : 0, &candidates, &floor)) {
        cut = find_rank(candidates.value, candidates.count, k, floor);
        split_candidates(&candidates, cut, k, s->residual, &s->out);
    } else {
        const float *x = s->residual ? s->residual : s->in;
        cut = find_cut(x, s->n, k, floor, candidates.count);
        split_array(x, s->n, cut, k, s->residual, &s->out);
    }
    if (hint != NULL)
        *hint = (uint32_t)cut.magnitude;
    return s->out.count;
}

#include "device/cpu/quant_kernels.inc.h"

const struct ddp_grad_kernels LEVEL(ddp_grad) = {
    .narrow = narrow,
    .widen = widen,
    .widen_add = widen_add,
    .narrow_residual = narrow_residual,
    .quantize = quantize,
    .dequantize = dequantize,
    .select_threshold = select_threshold,
    .select_topk = select_topk,
    .scatter_add = ddp_list_scatter_add,
    .scatter = ddp_list_scatter,
    .scatter_zero = ddp_list_scatter_zero,
    .merge = ddp_list_merge,
    .sgd = sgd,
    .adam = adam,
};
