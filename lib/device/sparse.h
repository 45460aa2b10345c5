/* Sparse vectors as index-sorted lists, and the kernels that make and consume them, with the other
 * element-wise kernels of gradient exchange: conversion to 16 bits and optimiser steps.
 *
 * Reached through struct ddp_device (member `grad`), one table a SIMD level; every level gives the
 * scalar level's bits. Users: compressors, sparse all-reduce, trainer, `ddpbench kernels`.
 * What it does not do: communicate, allocate, keep state between calls. n is below 2^32.
 *
 * Magnitude: the order of |x| is the order of the bits of x without the sign, as an unsigned
 * integer: 0 < denormals < ... < inf < NaN. A NaN that a kernel computes or moves becomes canonical
 * (0x7fc00000), so results do not depend on the order of operands. */
#ifndef DDP_DEVICE_SPARSE_H
#define DDP_DEVICE_SPARSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Entries [count]: index strictly ascending. */
struct ddp_sparse {
    uint32_t *index; /* [count] */
    float *value;    /* [count] */
    size_t count;
};

/* One pass of selection with error feedback. in [n]; residual [n], NULL: none (then acc = in).
 *   acc[i] = in[i] + residual[i]
 * Selected entries (i, acc[i]) go to out in index order and residual[i] becomes +0; every other
 * residual[i] becomes acc[i]. So sent + new residual == in + old residual, bit for bit (as float
 * addition gives it). in may not overlap residual or out; in == NULL: acc = residual (select again
 * from what was kept). */
struct ddp_select {
    const float *in;
    float *residual;
    size_t n;
    struct ddp_sparse out; /* index and value: room for n entries (threshold) or k (top-K) */
};

/* Adam's coefficients; step: 1-based, for the bias correction (computed once a call, in double). */
struct ddp_adam {
    float lr, beta1, beta2, epsilon, weight_decay;
    int64_t step;
};

struct ddp_grad_kernels {
    /* dst[i] = (to) (src[i] * scale), to f16 or bf16, nearest even, NaN canonical. clip > 0: values
     * are first limited to [-clip, clip] after scaling (NaN stays NaN). Returns how many results
     * are infinite or NaN though src[i] was finite (overflows). 6n bytes. dst may not overlap src.
     */
    uint64_t (*narrow)(void *dst, const float *src, size_t n, enum ddp_dtype to, float scale,
                       float clip);
    /* dst[i] = (float) src[i], from f16 or bf16. 6n bytes. */
    void (*widen)(float *dst, const void *src, size_t n, enum ddp_dtype from);
    /* dst[i] += (float) src[i]. 10n bytes. */
    void (*widen_add)(float *dst, const void *src, size_t n, enum ddp_dtype from);
    /* residual[i] = in[i] - (float) wire[i] where in has been narrowed to wire: what a lossy 16-bit
     * encoding left behind; +0 where that is not finite. residual may be in. */
    void (*narrow_residual)(float *residual, const float *in, const void *wire, size_t n,
                            enum ddp_dtype type);

    /* Keeps acc with !(|acc| < threshold): NaN and inf travel. Returns the number selected, and
     * sets s->out.count. threshold >= 0. 12n + 8k bytes. */
    size_t (*select_threshold)(struct ddp_select *s, float threshold);
    /* Exactly the min(k, n) of largest magnitude, ties to the lowest index. scratch [n] elements of
     * 8 bytes at least, contents undefined. hint: NULL, or in: a magnitude (as bits) that is
     * expected to let about k pass (a floor 3 to 6 % below it is used), 0: none (then estimated
     * from a sample); out, when something was selected: the magnitude of the k-th. The result does
     * not depend on it. Counted as 16n + 8k bytes, 12n + 8k with a hint; twice the time when most
     * magnitudes are equal or the guess was wrong, linear in n whatever the values are. */
    size_t (*select_topk)(struct ddp_select *s, size_t k, uint32_t *hint, void *scratch);

    /* dst[index] += value. dst [n], every index < n. */
    void (*scatter_add)(float *dst, const struct ddp_sparse *s);
    /* dst[index] = value; dst[index] = 0. */
    void (*scatter)(float *dst, const struct ddp_sparse *s);
    void (*scatter_zero)(float *dst, const uint32_t *index, size_t count);
    /* out = a + b, index-sorted; equal indices are added, a's value first. out: room for a.count +
     * b.count, overlaps neither. Entries that cancel to zero stay. */
    void (*merge)(struct ddp_sparse *out, const struct ddp_sparse *a, const struct ddp_sparse *b);

    /* g = grad + wd * p; v = momentum * v + g; p -= lr * v. 20n bytes. [n] each. */
    void (*sgd)(float *p, float *v, const float *grad, size_t n, float lr, float momentum,
                float weight_decay);
    /* g = grad + wd * p; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g g; p -= lr * (m / c1) /
     * (sqrt(v / c2) + eps), c = 1 - b^step (Kingma & Ba 2015, algorithm 1; L2 decay). Computed as
     * p -= (m * (lr / c1)) / (sqrt(v) * (1 / sqrt(c2)) + eps), the factors in double, then rounded.
     * 28n bytes. */
    void (*adam)(float *p, float *m, float *v, const float *grad, size_t n,
                 const struct ddp_adam *a);
};

#ifdef __cplusplus
}
#endif
#endif
