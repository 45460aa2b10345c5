/* Kernels of device cuda that write the inputs of verified collectives and compare results
 * (input_ops.h). Each thread loops over elements, because an array may have 2^32 elements or more.
 */
#include <cuda_runtime.h>

#include "base/dtype_info.h"
#include "device/cuda/kernels_cuda.h"
#include "device/input_ops.h"

#define THREADS  256
#define RESIDENT 8

static __global__ void __launch_bounds__(THREADS)
    write_kernel(void *dst, ddp_expected e, int bytes, uint64_t first, uint64_t count)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
        ddp_element_store(dst, i, bytes, ddp_expected_bits(&e, first + i));
}

static __global__ void __launch_bounds__(THREADS)
    count_wrong_kernel(const void *data, ddp_expected e, int bytes, uint64_t first, uint64_t count,
                       unsigned long long *wrong)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    unsigned found = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
        found += ddp_element_bits(data, i, bytes) != ddp_expected_bits(&e, first + i);
    found = __reduce_add_sync(~0u, found);
    if (threadIdx.x % 32 == 0 && found != 0)
        atomicAdd(wrong, (unsigned long long)found);
}

static unsigned grid_of(const struct ddp_stream *s, uint64_t count)
{
    const uint64_t most = (uint64_t)(s->processors > 0 ? s->processors : 1) * RESIDENT;
    const uint64_t blocks = (count + THREADS - 1) / THREADS;
    return (unsigned)(blocks < most ? blocks : most);
}

extern "C" void ddp_cuda_write_expected(struct ddp_stream *s, void *dst,
                                        const struct ddp_expected *e, size_t first, size_t count)
{
    if (count == 0)
        return;
    write_kernel<<<grid_of(s, count), THREADS, 0, s->handle>>>(
        dst, *e, (int)ddp_dtype_size(e->dtype), first, count);
    ddp_cuda_note(s, cudaGetLastError(), "write_expected");
}

extern "C" void ddp_cuda_count_wrong(struct ddp_stream *s, const void *data,
                                     const struct ddp_expected *e, size_t first, size_t count,
                                     uint64_t *wrong)
{
    if (count == 0)
        return;
    count_wrong_kernel<<<grid_of(s, count), THREADS, 0, s->handle>>>(
        data, *e, (int)ddp_dtype_size(e->dtype), first, count, (unsigned long long *)wrong);
    ddp_cuda_note(s, cudaGetLastError(), "count_wrong");
}
