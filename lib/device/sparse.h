/* Sparse vectors as index-sorted lists, the kernels that produce and consume such lists, and the
 * other kernels of gradient exchange: conversion to 16 bits, quantisation and optimiser steps.
 *
 * Callers reach the kernels through struct ddp_device (member `grad`). Device cpu has one table of
 * kernels per SIMD level. Every level gives the same bits as the scalar level. The compressors, the
 * sparse all-reduce, the trainer and `ddpbench kernels` use the kernels. A kernel does not
 * communicate or allocate, and keeps no state between calls. n is below 2^32.
 *
 * Magnitudes are ordered like the bits of x without the sign, read as an unsigned integer: 0 <
 * denormals < ... < inf < NaN. Every NaN that a kernel computes or moves becomes canonical
 * (0x7fc00000), so results do not depend on the order of operands. */
#ifndef DDP_DEVICE_SPARSE_H
#define DDP_DEVICE_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "device/quant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list of entries with strictly ascending indices. */
struct ddp_sparse {
    uint32_t *index; /* [count] */
    float *value;    /* [count] */
    size_t count;
};

/* One pass of selection with error feedback:
 *   acc[i] = in[i] + residual[i]
 * Each selected entry (i, acc[i]) is stored in `out`, in index order, and residual[i] becomes +0.
 * Every other residual[i] becomes acc[i]. Therefore each acc[i] is either sent or kept, without
 * rounding. */
struct ddp_select {
    const float *in; /* [n], overlaps neither residual nor out; NULL: acc = residual */
    float *residual; /* [n], or NULL: acc = in */
    size_t n;
    struct ddp_sparse out; /* room for n entries (threshold) or k (top-K) */
};

/* Adam's coefficients. */
struct ddp_adam {
    float lr, beta1, beta2, epsilon, weight_decay;
    /* Number of the step, from 1 on, for the bias correction. The correction is computed once per
     * call, in double. */
    int64_t step;
};

struct ddp_grad_kernels {
    /* dst[i] = (to) (src[i] * scale), to f16 or bf16, rounded to nearest even. A NaN becomes
     * canonical. If clip > 0, scaled values are first limited to [-clip, clip], except NaN. Returns
     * the number of overflows, which are infinite or NaN results of a finite src[i]. Moves 6n
     * bytes. dst may not overlap src. */
    uint64_t (*narrow)(void *dst, const float *src, size_t n, enum ddp_dtype to, float scale,
                       float clip);
    /* dst[i] = (float) src[i], from f16 or bf16. Moves 6n bytes. */
    void (*widen)(float *dst, const void *src, size_t n, enum ddp_dtype from);
    /* dst[i] += (float) src[i]. Moves 10n bytes. */
    void (*widen_add)(float *dst, const void *src, size_t n, enum ddp_dtype from);
    /* Computes the error of the 16-bit encoding: residual[i] = in[i] - (float) wire[i], where
     * `wire` is `in` narrowed. A difference that is not finite becomes +0. `residual` and `in` may
     * be the same array. */
    void (*narrow_residual)(float *residual, const float *in, const void *wire, size_t n,
                            enum ddp_dtype type);

    /* Encodes src [n] * scale as blocks (quant.h). dst has room for all blocks. Reads 4n bytes. */
    void (*quantize)(void *dst, const float *src, size_t n, struct ddp_quant q, float scale);
    /* Decodes blocks to dst [n], or adds the decoded values to dst. Every NaN becomes canonical. */
    void (*dequantize)(float *dst, const void *src, size_t n, struct ddp_quant q, bool add);

    /* Selects every acc with !(|acc| < threshold), which includes NaN and inf. Sets s->out.count to
     * the number k of selected values and returns k. threshold >= 0. Moves 12n + 8k bytes if both
     * `in` and `residual` are given. */
    size_t (*select_threshold)(struct ddp_select *s, float threshold);
    /* Selects exactly the min(k, n) values of largest magnitude. Among equal magnitudes, lower
     * indices are selected first. scratch has room for n elements of 8 bytes and is uninitialised.
     * hint may be NULL. On entry *hint is 0, or the bits of a float that is probably near the k-th
     * largest magnitude. If hint is NULL or *hint is 0, the kernel uses a sample instead. If
     * anything was selected, *hint becomes the smallest selected magnitude. The hint changes the
     * time, but not the result. */
    size_t (*select_topk)(struct ddp_select *s, size_t k, uint32_t *hint, void *scratch);

    /* dst[index] += value for every entry. dst [n]; every index < n. */
    void (*scatter_add)(float *dst, const struct ddp_sparse *s);
    /* dst[index] = value for every entry. */
    void (*scatter)(float *dst, const struct ddp_sparse *s);
    /* dst[index] = 0 for every index. */
    void (*scatter_zero)(float *dst, const uint32_t *index, size_t count);
    /* out = a + b, index-sorted. The values of equal indices are added, a's value first. `out` has
     * room for a.count + b.count entries and overlaps neither `a` nor `b`. Entries that cancel to
     * zero stay in the list. */
    void (*merge)(struct ddp_sparse *out, const struct ddp_sparse *a, const struct ddp_sparse *b);

    /* g = grad + wd * p; v = momentum * v + g; p -= lr * v. Arrays [n]. Moves 20n bytes. */
    void (*sgd)(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                float weight_decay);
    /* Kingma & Ba 2015, algorithm 1, with L2 decay:
     *   g = grad + wd * p
     *   m = b1 * m + (1 - b1) * g;   v = b2 * v + (1 - b2) * g * g
     *   p -= (m * (lr / c1)) / (sqrt(v) * (1 / sqrt(c2)) + eps)
     * where c1 = 1 - b1^step and c2 = 1 - b2^step. The factors lr / c1 and 1 / sqrt(c2) are
     * computed in double and rounded once. Moves 28n bytes. */
    void (*adam)(float *p, float *m, float *v, const float *grad, size_t n,
                 const struct ddp_adam *a);
};

#ifdef __cplusplus
}
#endif
#endif
