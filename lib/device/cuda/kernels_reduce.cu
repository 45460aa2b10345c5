/* The reduction of device cuda. It combines the source arrays element by element, in the order of
 * the sources.
 *
 * A *share* is the part of each array that one thread processes. Usually a share has 16 bytes. At
 * the end of the arrays, and if any array is not aligned to 16 bytes, a share has one element. A
 * thread loads the shares of BATCH sources before it combines these shares. A type_* class defines
 * the memory type of an element, the accumulator type and the conversion between the two. */
#include <cuda_runtime.h>

#include "device/element_ops.h"
#include "device/cuda/kernels_cuda.h"

#define THREADS 256
#define BATCH   4

/* The arguments of the kernel, passed by value. They contain 4 KiB of pointers, and CUDA allows
 * more than 4 KiB of arguments only since version 12.1. */
struct reduce_args {
    const void *src[DDP_REDUCE_MAX];
    void *dst[DDP_REDUCE_MAX];
    int src_count, dst_count;
    ddp_op op;
    ddp_finish finish;
    size_t count;
};

static __device__ float combine(float a, float b, ddp_op op)
{
    return ddp_combine_f32(a, b, op);
}
static __device__ double combine(double a, double b, ddp_op op)
{
    return ddp_combine_f64(a, b, op);
}
static __device__ uint32_t combine(uint32_t a, uint32_t b, ddp_op op)
{
    return ddp_combine_i32(a, b, op);
}
static __device__ uint8_t combine(uint8_t a, uint8_t b, ddp_op op)
{
    return ddp_combine_u8(a, b, op);
}

/* An element has type Raw in memory and type Sum in the accumulator. Sum can represent every Raw.
 */
template <class Raw, class Sum> struct type_exact {
    typedef Raw raw;
    typedef Sum sum;
    static __device__ sum widen(raw x)
    {
        return x;
    }
    static __device__ raw finish(sum a, const reduce_args &)
    {
        return (raw)a;
    }
};

typedef type_exact<uint32_t, uint32_t> type_i32;
typedef type_exact<uint8_t, uint8_t> type_u8;

struct type_f32 : type_exact<float, float> {
    static __device__ raw finish(sum a, const reduce_args &r)
    {
        return ddp_f32_canonical(ddp_finish_f32(a, r.finish));
    }
};

struct type_f64 : type_exact<double, double> {
    static __device__ raw finish(sum a, const reduce_args &r)
    {
        return ddp_f64_canonical(ddp_finish_f64(a, r.finish));
    }
};

template <ddp_dtype TYPE> struct type_half {
    typedef uint16_t raw;
    typedef float sum;
    static __device__ sum widen(raw x)
    {
        return TYPE == DDP_F16 ? ddp_f16_widen(x) : ddp_bf16_widen(x);
    }
    static __device__ raw finish(sum a, const reduce_args &r)
    {
        return ddp_half_narrow(type_f32::finish(a, r), TYPE);
    }
};

/* Averages of integers. The sum is computed and divided in a floating-point type that holds the sum
 * exactly. The quotient is then truncated. */
struct type_i32_mean : type_exact<int32_t, double> {
    static __device__ raw finish(sum a, const reduce_args &r)
    {
        return (int32_t)ddp_finish_f64(a, r.finish);
    }
};

struct type_u8_mean : type_exact<uint8_t, float> {
    static __device__ raw finish(sum a, const reduce_args &r)
    {
        return (uint8_t)(int32_t)ddp_finish_f32(a, r.finish);
    }
};

template <class Raw, int N> struct alignas(sizeof(Raw) * N) share {
    Raw at[N];
};

template <class Type, int N>
static __device__ void combine_all(typename Type::sum (&acc)[N],
                                   const share<typename Type::raw, N> &x, ddp_op op)
{
#pragma unroll
    for (int j = 0; j < N; j++)
        acc[j] = combine(acc[j], Type::widen(x.at[j]), op);
}

/* Combines a share of one source with acc. The operation is tested once per share and not once per
 * element. */
template <class Type, int N>
static __device__ void combine_share(typename Type::sum (&acc)[N],
                                     const share<typename Type::raw, N> &x, ddp_op op)
{
    if (op == DDP_PROD)
        combine_all<Type, N>(acc, x, DDP_PROD);
    else if (op == DDP_MIN)
        combine_all<Type, N>(acc, x, DDP_MIN);
    else if (op == DDP_MAX)
        combine_all<Type, N>(acc, x, DDP_MAX);
    else
        combine_all<Type, N>(acc, x, DDP_SUM);
}

/* Reduces elements [from, end), N elements per thread. end - from is a multiple of N. */
template <class Type, int N>
static __global__ void __launch_bounds__(THREADS)
    reduce_kernel(const __grid_constant__ reduce_args r, size_t from, size_t end)
{
    typedef share<typename Type::raw, N> part;
    const size_t i = from / N + (size_t)blockIdx.x * THREADS + threadIdx.x;
    typename Type::sum acc[N];
    part x[BATCH];
    if (i * N >= end)
        return;
    x[0] = ((const part *)r.src[0])[i];
#pragma unroll
    for (int j = 0; j < N; j++)
        acc[j] = Type::widen(x[0].at[j]);
    int k = 1;
    for (; k + BATCH <= r.src_count; k += BATCH) {
#pragma unroll
        for (int w = 0; w < BATCH; w++)
            x[w] = ((const part *)r.src[k + w])[i];
#pragma unroll
        for (int w = 0; w < BATCH; w++)
            combine_share<Type, N>(acc, x[w], r.op);
    }
    for (; k < r.src_count; k++) {
        x[0] = ((const part *)r.src[k])[i];
        combine_share<Type, N>(acc, x[0], r.op);
    }
    part result;
#pragma unroll
    for (int j = 0; j < N; j++)
        result.at[j] = Type::finish(acc[j], r);
    for (int d = 0; d < r.dst_count; d++)
        ((part *)r.dst[d])[i] = result;
}

template <class Type, int N>
static void reduce_range(struct ddp_stream *s, const reduce_args &r, size_t from, size_t end)
{
    if (from >= end)
        return;
    const size_t threads = (end - from) / N;
    const unsigned blocks = (unsigned)((threads + THREADS - 1) / THREADS);
    reduce_kernel<Type, N><<<blocks, THREADS, 0, s->handle>>>(r, from, end);
    ddp_cuda_note(s, cudaGetLastError(), "reduce");
}

template <class Type> static void reduce(struct ddp_stream *s, const reduce_args &r, bool aligned)
{
    constexpr int N = 16 / (int)sizeof(typename Type::raw);
    const size_t whole = aligned ? r.count / N * N : 0;
    reduce_range<Type, N>(s, r, 0, whole);
    reduce_range<Type, 1>(s, r, whole, r.count);
}

extern "C" void ddp_cuda_reduce(struct ddp_stream *s, const struct ddp_reduce *r)
{
    reduce_args args = {};
    uintptr_t all = 0;
    if (r->count == 0)
        return;
    for (int k = 0; k < r->src_count; k++)
        all |= (uintptr_t)(args.src[k] = r->src[k]);
    for (int d = 0; d < r->dst_count; d++)
        all |= (uintptr_t)(args.dst[d] = r->dst[d]);
    args.src_count = r->src_count;
    args.dst_count = r->dst_count;
    args.op = r->op == DDP_AVG ? DDP_SUM : r->op;
    args.finish = ddp_finish_of(r->divisor);
    args.count = r->count;
    const bool aligned = all % 16 == 0;
    if (r->divisor > 1 && r->dtype == DDP_I32)
        reduce<type_i32_mean>(s, args, aligned);
    else if (r->divisor > 1 && r->dtype == DDP_U8)
        reduce<type_u8_mean>(s, args, aligned);
    else if (r->dtype == DDP_F32)
        reduce<type_f32>(s, args, aligned);
    else if (r->dtype == DDP_F16)
        reduce<type_half<DDP_F16>>(s, args, aligned);
    else if (r->dtype == DDP_BF16)
        reduce<type_half<DDP_BF16>>(s, args, aligned);
    else if (r->dtype == DDP_F64)
        reduce<type_f64>(s, args, aligned);
    else if (r->dtype == DDP_I32)
        reduce<type_i32>(s, args, aligned);
    else
        reduce<type_u8>(s, args, aligned);
}
