/* Kernels of device cuda that the sync strategies need in addition to the gradient kernels. A
 * thread processes one element. */
#include <cuda_runtime.h>

#include "device/element_ops.h"
#include "device/cuda/kernels_cuda.h"

#define THREADS 256

static __global__ void __launch_bounds__(THREADS) scale_kernel(float *a, uint32_t n, double factor)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        a[i] = ddp_scaled(a[i], factor);
}

template <ddp_dtype TYPE>
static __global__ void __launch_bounds__(THREADS)
    widen_back_kernel(float *dst, const uint16_t *src, uint32_t n, unsigned long long *overflows)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    unsigned found = 0;
    if (i < n) {
        found = (unsigned)ddp_half_overflowed(src[i], dst[i], TYPE);
        dst[i] = ddp_half_widen(src[i], TYPE);
    }
    if (!__any_sync(~0u, found != 0))
        return;
    found = __reduce_add_sync(~0u, found);
    if (threadIdx.x % 32 == 0)
        atomicAdd(overflows, (unsigned long long)found);
}

static __global__ void add_count_kernel(unsigned long long *sum, const uint32_t *count)
{
    *sum += *count;
}

static unsigned blocks_for(size_t n)
{
    return (unsigned)((n + THREADS - 1) / THREADS);
}

extern "C" void ddp_cuda_scale(struct ddp_stream *s, float *a, size_t n, double factor)
{
    if (n == 0)
        return;
    scale_kernel<<<blocks_for(n), THREADS, 0, s->handle>>>(a, (uint32_t)n, factor);
    ddp_cuda_note(s, cudaGetLastError(), "scale");
}

template <ddp_dtype TYPE>
static void widen_back(struct ddp_stream *s, float *dst, const void *src, size_t n,
                       uint64_t *overflows)
{
    widen_back_kernel<TYPE><<<blocks_for(n), THREADS, 0, s->handle>>>(
        dst, (const uint16_t *)src, (uint32_t)n, (unsigned long long *)overflows);
    ddp_cuda_note(s, cudaGetLastError(), "widen_back");
}

extern "C" void ddp_cuda_widen_back(struct ddp_stream *s, float *dst, const void *src, size_t n,
                                    enum ddp_dtype from, uint64_t *overflows)
{
    if (n == 0)
        return;
    if (from == DDP_F16)
        widen_back<DDP_F16>(s, dst, src, n, overflows);
    else
        widen_back<DDP_BF16>(s, dst, src, n, overflows);
}

extern "C" void ddp_cuda_add_count(struct ddp_stream *s, uint64_t *sum, const uint32_t *count)
{
    add_count_kernel<<<1, 1, 0, s->handle>>>((unsigned long long *)sum, count);
    ddp_cuda_note(s, cudaGetLastError(), "add_count");
}
