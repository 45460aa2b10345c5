/* Element-wise kernels of device cuda: conversion and optimiser steps.
 *
 * A block processes BLOCK_ELEMENTS consecutive elements as ROWS rows. In each row a thread takes a
 * *share* of 4 consecutive elements, so the threads of a warp access neighbouring memory. A thread
 * loads all its shares before it computes, so that several loads are in flight at once. Each thread
 * stores only elements that it has loaded, so an f32 input and an f32 output of a kernel may be the
 * same array. element_ops.h has the arithmetic. */
#include <cuda_runtime.h>

#include "device/element_ops.h"
#include "device/cuda/kernels_cuda.h"

#define THREADS        256
#define ROWS           4
#define SHARE          4
#define BLOCK_ELEMENTS (THREADS * ROWS * SHARE)

static bool aligned(const void *p, size_t to)
{
    return (uintptr_t)p % to == 0;
}

static unsigned blocks_for(size_t n, size_t per_block)
{
    return (unsigned)((n + per_block - 1) / per_block);
}

static void launched(struct ddp_stream *s, const char *call)
{
    ddp_cuda_note(s, cudaGetLastError(), call);
}

static __device__ void load_halves(uint16_t *to, const uint16_t *from, uint32_t i, int present,
                                   int vectors)
{
    if (vectors && present == 4) {
        const ushort4 v = __ldcs((const ushort4 *)(from + i));
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
        return;
    }
    for (int j = 0; j < 4; j++)
        to[j] = j < present ? from[i + j] : (uint16_t)0;
}

static __device__ void store_halves(uint16_t *to, const uint16_t *from, uint32_t i, int present,
                                    int vectors)
{
    if (vectors && present == 4) {
        __stcs((ushort4 *)(to + i), make_ushort4(from[0], from[1], from[2], from[3]));
        return;
    }
    for (int j = 0; j < 4; j++)
        if (j < present)
            to[i + j] = from[j];
}

/* Runs a Step on n elements. load() reads the values of one share. store() computes and writes the
 * results of the share, and returns a count: in narrow_step the number of overflows, in other steps
 * 0. end() receives the sum of the counts of a thread. All threads of a warp call end(). */
template <class Step>
static __global__ void __launch_bounds__(THREADS) map_kernel(uint32_t n, int vectors, Step step)
{
    typename Step::values v[ROWS];
    const uint32_t from = blockIdx.x * BLOCK_ELEMENTS + threadIdx.x * SHARE;
    unsigned found = 0;
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
        const uint32_t i = from + row * THREADS * SHARE;
        step.load(v[row], i, i >= n ? 0 : min(n - i, 4u), vectors);
    }
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
        const uint32_t i = from + row * THREADS * SHARE;
        found += step.store(v[row], i, i >= n ? 0 : min(n - i, 4u), vectors);
    }
    step.end(found);
}

template <class Step>
static void map(struct ddp_stream *s, size_t n, int vectors, const Step &step, const char *call)
{
    if (n == 0)
        return;
    map_kernel<<<blocks_for(n, BLOCK_ELEMENTS), THREADS, 0, s->handle>>>((uint32_t)n, vectors,
                                                                         step);
    launched(s, call);
}

/* Base of the steps whose counts are not used. */
struct plain_step {
    __device__ void end(unsigned) const
    {
    }
};

template <ddp_dtype TYPE> struct narrow_step {
    struct values {
        float x[4];
    };
    uint16_t *dst;
    const float *src;
    float scale, clip;
    unsigned long long *overflows;

    __device__ void load(values &v, uint32_t i, int present, int vectors) const
    {
        ddp_load4(v.x, src, i, present, vectors);
    }
    __device__ unsigned store(values &v, uint32_t i, int present, int vectors) const
    {
        uint16_t half[4];
        unsigned found = 0;
        for (int j = 0; j < 4; j++) {
            const float y = ddp_narrow_value(v.x[j], scale, clip);
            half[j] = ddp_half_narrow(y, TYPE);
            found += j < present && ddp_narrow_overflows(v.x[j], y, TYPE);
        }
        store_halves(dst, half, i, present, vectors);
        return found;
    }
    __device__ void end(unsigned found) const
    {
        if (overflows == NULL || !__any_sync(~0u, found != 0))
            return;
        found = __reduce_add_sync(~0u, found);
        if (threadIdx.x % 32 == 0)
            atomicAdd(overflows, (unsigned long long)found);
    }
};

template <ddp_dtype TYPE, bool ADD> struct widen_step : plain_step {
    struct values {
        uint16_t half[4];
        float sum[4];
    };
    float *dst;
    const uint16_t *src;

    __device__ void load(values &v, uint32_t i, int present, int vectors) const
    {
        load_halves(v.half, src, i, present, vectors);
        if (ADD)
            ddp_load4(v.sum, dst, i, present, vectors);
    }
    __device__ unsigned store(values &v, uint32_t i, int present, int vectors) const
    {
        float x[4];
        for (int j = 0; j < 4; j++) {
            x[j] = ddp_half_widen(v.half[j], TYPE);
            if (ADD)
                x[j] = ddp_f32_canonical(v.sum[j] + x[j]);
        }
        ddp_store4(dst, x, i, present, vectors);
        return 0;
    }
};

template <ddp_dtype TYPE> struct residual_step : plain_step {
    struct values {
        uint16_t half[4];
        float in[4];
    };
    float *residual;
    const float *in;
    const uint16_t *wire;

    __device__ void load(values &v, uint32_t i, int present, int vectors) const
    {
        load_halves(v.half, wire, i, present, vectors);
        ddp_load4(v.in, in, i, present, vectors);
    }
    __device__ unsigned store(values &v, uint32_t i, int present, int vectors) const
    {
        float left[4];
        for (int j = 0; j < 4; j++)
            left[j] = ddp_narrow_left(v.in[j], v.half[j], TYPE);
        ddp_store4(residual, left, i, present, vectors);
        return 0;
    }
};

struct accumulate_step : plain_step {
    struct values {
        float in[4], residual[4];
    };
    float *residual;
    const float *in;

    __device__ void load(values &v, uint32_t i, int present, int vectors) const
    {
        if (in != NULL)
            ddp_load4(v.in, in, i, present, vectors);
        ddp_load4(v.residual, residual, i, present, vectors);
    }
    __device__ unsigned store(values &v, uint32_t i, int present, int vectors) const
    {
        for (int j = 0; j < 4; j++)
            v.residual[j] = ddp_add_residual(v.in[j], v.residual[j], in != NULL, 1);
        ddp_store4(residual, v.residual, i, present, vectors);
        return 0;
    }
};

struct sgd_step : plain_step {
    struct values {
        float p[4], v[4], grad[4];
    };
    float *p, *v;
    const float *grad;
    float lr, momentum, weight_decay;

    __device__ void load(values &x, uint32_t i, int present, int vectors) const
    {
        ddp_load4(x.p, p, i, present, vectors);
        ddp_load4(x.v, v, i, present, vectors);
        ddp_load4(x.grad, grad, i, present, vectors);
    }
    __device__ unsigned store(values &x, uint32_t i, int present, int vectors) const
    {
        for (int j = 0; j < 4; j++)
            ddp_sgd_element(&x.p[j], &x.v[j], x.grad[j], lr, momentum, weight_decay);
        ddp_store4(p, x.p, i, present, vectors);
        ddp_store4(v, x.v, i, present, vectors);
        return 0;
    }
};

struct adam_step : plain_step {
    struct values {
        float p[4], m[4], v[4], grad[4];
    };
    float *p, *m, *v;
    const float *grad;
    struct ddp_adam_factors factors;

    __device__ void load(values &x, uint32_t i, int present, int vectors) const
    {
        ddp_load4(x.p, p, i, present, vectors);
        ddp_load4(x.m, m, i, present, vectors);
        ddp_load4(x.v, v, i, present, vectors);
        ddp_load4(x.grad, grad, i, present, vectors);
    }
    __device__ unsigned store(values &x, uint32_t i, int present, int vectors) const
    {
        for (int j = 0; j < 4; j++)
            ddp_adam_element(&x.p[j], &x.m[j], &x.v[j], x.grad[j], factors);
        ddp_store4(p, x.p, i, present, vectors);
        ddp_store4(m, x.m, i, present, vectors);
        ddp_store4(v, x.v, i, present, vectors);
        return 0;
    }
};

template <ddp_dtype TYPE>
static void narrow(struct ddp_stream *s, void *dst, const float *src, size_t n, float scale,
                   float clip, uint64_t *overflows)
{
    narrow_step<TYPE> step;
    step.dst = (uint16_t *)dst;
    step.src = src;
    step.scale = scale;
    step.clip = clip > 0 ? clip : INFINITY;
    step.overflows = (unsigned long long *)overflows;
    map(s, n, aligned(dst, 8) && aligned(src, 16), step, "narrow");
}

extern "C" void ddp_cuda_narrow(struct ddp_stream *s, void *dst, const float *src, size_t n,
                                enum ddp_dtype to, float scale, float clip, uint64_t *overflows)
{
    if (to == DDP_F16)
        narrow<DDP_F16>(s, dst, src, n, scale, clip, overflows);
    else
        narrow<DDP_BF16>(s, dst, src, n, scale, clip, overflows);
}

template <ddp_dtype TYPE, bool ADD>
static void widen(struct ddp_stream *s, float *dst, const void *src, size_t n)
{
    widen_step<TYPE, ADD> step;
    step.dst = dst;
    step.src = (const uint16_t *)src;
    map(s, n, aligned(dst, 16) && aligned(src, 8), step, ADD ? "widen_add" : "widen");
}

extern "C" void ddp_cuda_widen(struct ddp_stream *s, float *dst, const void *src, size_t n,
                               enum ddp_dtype from)
{
    from == DDP_F16 ? widen<DDP_F16, false>(s, dst, src, n)
                    : widen<DDP_BF16, false>(s, dst, src, n);
}

extern "C" void ddp_cuda_widen_add(struct ddp_stream *s, float *dst, const void *src, size_t n,
                                   enum ddp_dtype from)
{
    from == DDP_F16 ? widen<DDP_F16, true>(s, dst, src, n) : widen<DDP_BF16, true>(s, dst, src, n);
}

template <ddp_dtype TYPE>
static void narrow_residual(struct ddp_stream *s, float *residual, const float *in,
                            const void *wire, size_t n)
{
    residual_step<TYPE> step;
    step.residual = residual;
    step.in = in;
    step.wire = (const uint16_t *)wire;
    map(s, n, aligned(residual, 16) && aligned(in, 16) && aligned(wire, 8), step,
        "narrow_residual");
}

extern "C" void ddp_cuda_narrow_residual(struct ddp_stream *s, float *residual, const float *in,
                                         const void *wire, size_t n, enum ddp_dtype type)
{
    if (type == DDP_F16)
        narrow_residual<DDP_F16>(s, residual, in, wire, n);
    else
        narrow_residual<DDP_BF16>(s, residual, in, wire, n);
}

extern "C" void ddp_cuda_accumulate(struct ddp_stream *s, float *residual, const float *in,
                                    size_t n)
{
    accumulate_step step;
    step.residual = residual;
    step.in = in;
    map(s, n, aligned(residual, 16) && aligned(in, 16), step, "accumulate");
}

extern "C" void ddp_cuda_sgd(struct ddp_stream *s, float *p, float *v, const float *grad, size_t n,
                             float lr, float momentum, float weight_decay)
{
    sgd_step step;
    step.p = p;
    step.v = v;
    step.grad = grad;
    step.lr = lr;
    step.momentum = momentum;
    step.weight_decay = weight_decay;
    map(s, n, aligned(p, 16) && aligned(v, 16) && aligned(grad, 16), step, "sgd");
}

extern "C" void ddp_cuda_adam(struct ddp_stream *s, float *p, float *m, float *v, const float *grad,
                              size_t n, const struct ddp_adam *a)
{
    adam_step step;
    step.p = p;
    step.m = m;
    step.v = v;
    step.grad = grad;
    step.factors = ddp_adam_factors_of(a);
    map(s, n, aligned(p, 16) && aligned(m, 16) && aligned(v, 16) && aligned(grad, 16), step,
        "adam");
}
