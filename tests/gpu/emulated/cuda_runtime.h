/* Emulates the part of CUDA that lib/device/kernels_*.cu use, so that g++ can compile the shipped
 * kernels and the processor can run them.
 *
 * A block is a thread of the operating system. Several blocks run at a time, so that they race as
 * on a GPU. The threads of a block are fibers that take turns at every __syncthreads and warp
 * function. Shared memory is thread_local. The emulation does not cover the memory model of a GPU,
 * its speed, its alignment rules, or the code under DDP_ON_GPU (16-byte accesses and conversions).
 */
#ifndef DDP_TEST_EMULATED_CUDA_RUNTIME_H
#define DDP_TEST_EMULATED_CUDA_RUNTIME_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__

typedef int cudaError_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1 };

static inline cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

namespace emulated
{
struct index {
    unsigned x;
};
/* Returns the values of the warp's 32 lanes; `mine` is the caller's. All 32 lanes must call it. */
const uint64_t *exchange(uint64_t mine);
void meet_block(void);
unsigned lane(void);
void launch(unsigned grid, unsigned threads, size_t shared, const void *stream,
            const std::function<void(void)> &kernel);
extern thread_local index thread_index, block_index, grid_size;
} // namespace emulated

#define threadIdx emulated::thread_index
#define blockIdx  emulated::block_index
#define gridDim   emulated::grid_size

using std::min;

struct float4 {
    float x, y, z, w;
};
struct ushort4 {
    unsigned short x, y, z, w;
};

static inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z,
                                   unsigned short w)
{
    return ushort4{x, y, z, w};
}

template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcg(const T *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
template <class T> static inline void __stcs(T *p, T value)
{
    *p = value;
}
template <class T> static inline T atomicAdd(T *p, T value)
{
    return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
}
static inline uint32_t atomicAdd(uint32_t *p, int value)
{
    return __atomic_fetch_add(p, (uint32_t)value, __ATOMIC_RELAXED);
}

static inline void __threadfence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __syncthreads(void)
{
    emulated::meet_block();
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

/* The masks are ignored: all lanes always take part. */
static inline uint64_t __shfl_up_sync(unsigned, uint64_t value, unsigned distance)
{
    const uint64_t *all = emulated::exchange(value);
    const unsigned lane = emulated::lane();
    return all[lane >= distance ? lane - distance : lane];
}
static inline uint64_t __shfl_xor_sync(unsigned, uint64_t value, int distance)
{
    return emulated::exchange(value)[emulated::lane() ^ (unsigned)distance];
}
static inline unsigned __ballot_sync(unsigned, bool yes)
{
    const uint64_t *all = emulated::exchange(yes);
    unsigned mask = 0;
    for (int i = 0; i < 32; i++)
        mask |= (unsigned)(all[i] != 0) << i;
    return mask;
}
static inline bool __any_sync(unsigned mask, bool yes)
{
    return __ballot_sync(mask, yes) != 0;
}
static inline unsigned __match_any_sync(unsigned, int value)
{
    const uint64_t mine = (uint64_t)(int64_t)value, *all = emulated::exchange(mine);
    unsigned mask = 0;
    for (int i = 0; i < 32; i++)
        mask |= (unsigned)(all[i] == mine) << i;
    return mask;
}
static inline unsigned __reduce_add_sync(unsigned, unsigned value)
{
    const uint64_t *all = emulated::exchange(value);
    uint64_t sum = 0;
    for (int i = 0; i < 32; i++)
        sum += all[i];
    return (unsigned)sum;
}

#endif
