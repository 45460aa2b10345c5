/* The gradient kernels of one SIMD level: the template behind kernels_*.c.
 *
 * Each level file includes this template once. Before that it defines VB and LEVEL(name), as for
 * kernels_cpu.inc.h, and:
 *   lane_mask                a type that selects lanes of a vector
 *   at_least(mag, floor)     the mask of lanes where mag >= floor (signed)
 *   mask_bits(mask)          the mask as an integer; lane 0 is the lowest bit
 *   zero_where(mask, v)      v with +0 in the selected lanes
 *   vec_max(a, b)            the larger value of each pair of signed lanes
 *   pack_lanes(to, v, bits)  stores the lanes of v set in bits, then undefined lanes
 *   count_bits(bits)         the number of bits set in bits (at most LANES)
 *
 * The results do not depend on the level, because lanes are never combined with each other and no
 * operation is contracted. */
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
 * Each kernel runs a *step* per vector. For whole vectors the step is inlined with the constant
 * LANES. For partial vectors it is inlined with a smaller count. Steps load before they store.
 * Therefore two f32 arrays may be the same array, but must not overlap partly. */

#define LANES ((size_t)VB / sizeof(float))
/* Number of vectors that are processed together. */
#define BLOCK ((size_t)8)
/* Prefetch distance for kernels that read one array and write little. They prefetch only if the
 * hardware prefetcher falls behind (prefetcher_lags). Kernels that rewrite the array they read do
 * not prefetch, because prefetching does not make them faster (results/notes/kernels.md). */
#define AHEAD_BYTES 2048
/* narrow and widen write results of at least this size with non-temporal stores, because the caches
 * would not hold the results until their next use. */
#define STREAM_BYTES ((size_t)32 << 20)

INLINE v_f32 load_f32(const float *p, size_t lanes)
{
    v_f32 v;
    if (lanes != LANES)
        return (v_f32)vec_load_part((const unsigned char *)p, lanes * sizeof(float));
    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE void store_f32(float *p, v_f32 v, size_t lanes, bool stream)
{
    if (lanes != LANES)
        vec_store_part((unsigned char *)p, (raw_full)v, lanes * sizeof(float));
    else if (stream)
        vec_stream_full((unsigned char *)p, (raw_full)v);
    else
        memcpy(p, &v, sizeof(v));
}

INLINE v_f32 load_half(const unsigned char *p, size_t lanes, enum ddp_dtype type)
{
    raw_half raw;
    if (lanes != LANES) {
        const raw_full part = vec_load_part(p, lanes * 2);
        memcpy(&raw, &part, sizeof(raw));
    } else {
        memcpy(&raw, p, sizeof(raw));
    }
    return canonical(type == DDP_F16 ? widen_f16(raw) : widen_bf16(raw));
}

INLINE raw_half narrowed(v_f32 v, enum ddp_dtype type)
{
    return type == DDP_F16 ? narrow_f16(v) : narrow_bf16(v);
}

/* NaNs in v must be canonical. */
INLINE void store_half(unsigned char *p, v_f32 v, size_t lanes, enum ddp_dtype type)
{
    const raw_half raw = narrowed(v, type);
    if (lanes != LANES) {
        raw_full part = {0};
        memcpy(&part, &raw, sizeof(raw));
        vec_store_part(p, part, lanes * 2);
    } else {
        memcpy(p, &raw, sizeof(raw));
    }
}

/* Stores v and then w, like two calls of store_half. A non-temporal store writes a whole vector,
 * because with AVX-512 two half-line stores are slower (results/notes/kernels.md). */
INLINE void store_halves(unsigned char *p, v_f32 v, v_f32 w, enum ddp_dtype type, bool stream)
{
    const raw_full both = vec_join(narrowed(v, type), narrowed(w, type));
    if (stream)
        vec_stream_full(p, both);
    else
        memcpy(p, &both, sizeof(both));
}

INLINE v_i32 magnitude(v_f32 v)
{
    return (v_i32)v & 0x7fffffff;
}

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

/* Returns how many of the first `lanes` lanes have a finite x but a y that is infinite or NaN in
 * the 16-bit type. */
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

/* Converts BLOCK vectors and returns the number of overflows. Lanes are checked one by one only if
 * the greatest magnitude of the block overflows. */
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

/* Runs STEP(i, lanes) for every vector of n elements. */
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

#include "device/cpu/grad_select.inc.h"

const struct ddp_grad_kernels LEVEL(ddp_grad) = {
    .narrow = narrow,
    .widen = widen,
    .widen_add = widen_add,
    .narrow_residual = narrow_residual,
    .select_threshold = select_threshold,
    .select_topk = select_topk,
    .scatter_add = ddp_list_scatter_add,
    .scatter = ddp_list_scatter,
    .scatter_zero = ddp_list_scatter_zero,
    .merge = ddp_list_merge,
    .sgd = sgd,
    .adam = adam,
};
