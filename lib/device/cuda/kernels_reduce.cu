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

/* The arguments of the kernel, passed by value. They contain 4 KiB of pointers and a few more
 * members. CUDA allows more than 4 KiB of arguments only since version 12.1, so older versions
 * cannot compile the kernel. */
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
/* Combines integers. Sums and products wrap around. */
template <class Raw> static __device__ Raw combine(Raw a, Raw b, ddp_op op)
{
    if (op == DDP_MIN)
        return a < b ? a : b;
    if (op == DDP_MAX)
        return a > b ? a : b;
    return (Raw)(op == DDP_PROD ? (uint64_t)a * (uint64_t)b : (uint64_t)a + (uint64_t)b);
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

template <class Raw> using type_integer = type_exact<Raw, Raw>;

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

template <ddp_dtype TYPE> struct type_fp8 {
    typedef uint8_t raw;
    typedef float sum;
    static __device__ sum widen(raw x)
    {
        return ddp_fp8_widen(x, TYPE);
    }
    static __device__ raw finish(sum a, const reduce_args &r)
    {
        return ddp_fp8_result(type_f32::finish(a, r), TYPE);
    }
};

/* Averages of 32-bit (type_mean) and 8-bit (type_small_mean) integers. The sum is computed and
 * divided in a floating-point type that holds the sum exactly. The quotient is then truncated. */
template <class Raw> struct type_mean : type_exact<Raw, double> {
    static __device__ Raw finish(double a, const reduce_args &r)
    {
        return (Raw)ddp_finish_f64(a, r.finish);
    }
};

template <class Raw> struct type_small_mean : type_exact<Raw, float> {
    static __device__ Raw finish(float a, const reduce_args &r)
    {
        return (Raw)(int32_t)ddp_finish_f32(a, r.finish);
    }
};

/* Averages of 64-bit integers. The sum wraps around before it is divided. */
template <class Raw> struct type_wrapped_mean : type_integer<Raw> {
    static __device__ Raw finish(Raw a, const reduce_args &r)
    {
        return a / (Raw)r.finish.divisor;
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

/* Reduces elements [from, end), N elements per thread. `from` and `end` are multiples of N. */
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

/* Calls the kernel for integers. The kernel uses class Mean if there is a division, else
 * type_integer. */
template <class Raw, class Mean>
static void reduce_integer(struct ddp_stream *s, const reduce_args &r, bool aligned)
{
    if (r.finish.divisor > 1)
        reduce<Mean>(s, r, aligned);
    else
        reduce<type_integer<Raw>>(s, r, aligned);
}

static void dispatch(struct ddp_stream *s, const reduce_args &r, ddp_dtype dtype, bool aligned)
{
    switch (dtype) {
    case DDP_F16:
        return reduce<type_half<DDP_F16>>(s, r, aligned);
    case DDP_BF16:
        return reduce<type_half<DDP_BF16>>(s, r, aligned);
    case DDP_F64:
        return reduce<type_f64>(s, r, aligned);
    case DDP_I32:
        return reduce_integer<int32_t, type_mean<int32_t>>(s, r, aligned);
    case DDP_U32:
        return reduce_integer<uint32_t, type_mean<uint32_t>>(s, r, aligned);
    case DDP_I8:
        return reduce_integer<int8_t, type_small_mean<int8_t>>(s, r, aligned);
    case DDP_U8:
        return reduce_integer<uint8_t, type_small_mean<uint8_t>>(s, r, aligned);
    case DDP_I64:
        return reduce_integer<int64_t, type_wrapped_mean<int64_t>>(s, r, aligned);
    case DDP_U64:
        return reduce_integer<uint64_t, type_wrapped_mean<uint64_t>>(s, r, aligned);
    case DDP_FP8_E4M3:
        return reduce<type_fp8<DDP_FP8_E4M3>>(s, r, aligned);
    case DDP_FP8_E5M2:
        return reduce<type_fp8<DDP_FP8_E5M2>>(s, r, aligned);
    default:
        return reduce<type_f32>(s, r, aligned);
    }
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
    dispatch(s, args, r->dtype, all % 16 == 0);
}
