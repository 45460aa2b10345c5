/* The layers' kernels of device cuda. They apply the functions of nn_element.h to all elements. A
 * map uses one thread per element. For a sum, each row of elements is cut into `splits` parts, and
 * each part uses one block. If there are several parts, a second kernel adds them. */
#include <cuda_runtime.h>

#include "device/cuda/dev_cuda.h"
#include "model/nn_stream.h"

#define THREADS DDP_NN_THREADS

static void note_launch(struct ddp_stream *s, const char *location)
{
    ddp_cuda_note(s, cudaGetLastError(), location);
}

template <class Args, void (*at)(const Args *, uint32_t)>
static __global__ void __launch_bounds__(THREADS) map_kernel(uint32_t count, const Args args)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count)
        at(&args, i);
}

static __device__ ddp_nn_pair plus(ddp_nn_pair x, ddp_nn_pair y)
{
    const ddp_nn_pair sum = {x.a + y.a, x.b + y.b};
    return sum;
}

/* Adds the values of all threads of the block. In the first round the lower half of the threads
 * adds the values of the upper half. Each further round involves half as many threads. The result
 * is valid in thread 0 only. */
template <class T, class Plus> static __device__ T halve(T *lane, T own, Plus add)
{
    lane[threadIdx.x] = own;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            lane[threadIdx.x] = add(lane[threadIdx.x], lane[threadIdx.x + half]);
    }
    /* The other threads must not read lane[0], which thread 0 has just written. */
    return threadIdx.x == 0 ? lane[0] : own;
}

template <class Args, ddp_nn_pair (*term)(const Args *, uint32_t, uint32_t),
          void (*end)(const Args *, uint32_t, uint32_t, ddp_nn_pair)>
static __global__ void __launch_bounds__(THREADS)
    sum_kernel(uint32_t count, uint32_t splits, const Args args, ddp_nn_pair *parts)
{
    __shared__ ddp_nn_pair lane[THREADS];
    const uint32_t row = blockIdx.x / splits, split = blockIdx.x % splits;
    ddp_nn_pair own = {0.0f, 0.0f};
    for (uint32_t j = split * THREADS + threadIdx.x; j < count; j += splits * THREADS)
        own = plus(own, term(&args, row, j));
    const ddp_nn_pair sum =
        halve(lane, own, [](ddp_nn_pair x, ddp_nn_pair y) { return plus(x, y); });
    if (threadIdx.x != 0)
        return;
    if (splits == 1)
        end(&args, row, count, sum);
    else
        parts[row * splits + split] = sum;
}

template <class Args, void (*end)(const Args *, uint32_t, uint32_t, ddp_nn_pair)>
static __global__ void __launch_bounds__(THREADS)
    parts_kernel(uint32_t rows, uint32_t count, uint32_t splits, const Args args,
                 const ddp_nn_pair *parts)
{
    const uint32_t row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows)
        return;
    ddp_nn_pair sum = parts[row * splits];
    for (uint32_t split = 1; split < splits; split++)
        sum = plus(sum, parts[row * splits + split]);
    end(&args, row, count, sum);
}

static __global__ void __launch_bounds__(THREADS)
    tally_kernel(uint32_t n, const double *each, const int *hit, double *loss, int *correct)
{
    __shared__ double lane[THREADS];
    __shared__ int hits[THREADS];
    double own = 0.0;
    int own_hits = 0;
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
        own += each[i];
        own_hits += hit[i];
    }
    const double sum = halve(lane, own, [](double x, double y) { return x + y; });
    const int count = halve(hits, own_hits, [](int x, int y) { return x + y; });
    if (threadIdx.x == 0) {
        *loss = sum;
        *correct = count;
    }
}

static uint32_t blocks_for(uint32_t count)
{
    return (count + THREADS - 1) / THREADS;
}

template <class Args, void (*at)(const Args *, uint32_t)>
static void map(struct ddp_stream *s, uint32_t count, const Args &args, const char *location)
{
    if (count == 0)
        return;
    map_kernel<Args, at><<<blocks_for(count), THREADS, 0, s->handle>>>(count, args);
    note_launch(s, location);
}

template <class Args, ddp_nn_pair (*term)(const Args *, uint32_t, uint32_t),
          void (*end)(const Args *, uint32_t, uint32_t, ddp_nn_pair)>
static void sum(struct ddp_stream *s, uint32_t rows, uint32_t count, const Args &args,
                ddp_nn_pair *parts, const char *location)
{
    const uint32_t splits = ddp_nn_splits(count);
    if (rows == 0)
        return;
    sum_kernel<Args, term, end>
        <<<rows * splits, THREADS, 0, s->handle>>>(count, splits, args, parts);
    if (splits > 1)
        parts_kernel<Args, end>
            <<<blocks_for(rows), THREADS, 0, s->handle>>>(rows, count, splits, args, parts);
    note_launch(s, location);
}

#define MAP(name)                                                                                  \
    static void name##_all(struct ddp_stream *s, uint32_t count, const struct ddp_nn_##name *args) \
    {                                                                                              \
        map<struct ddp_nn_##name, ddp_nn_##name##_at>(s, count, *args, "layers: " #name);          \
    }
DDP_NN_MAPS(MAP)

#define SUM(name)                                                                                  \
    static void name##_all(struct ddp_stream *s, uint32_t rows, uint32_t count,                    \
                           const struct ddp_nn_##name *args, struct ddp_nn_pair *parts)            \
    {                                                                                              \
        sum<struct ddp_nn_##name, ddp_nn_##name##_term, ddp_nn_##name##_end>(                      \
            s, rows, count, *args, parts, "layers: " #name);                                       \
    }
DDP_NN_SUMS(SUM)

static void tally(struct ddp_stream *s, uint32_t n, const double *each, const int *hit,
                  double *loss, int *correct)
{
    tally_kernel<<<1, THREADS, 0, s->handle>>>(n, each, hit, loss, correct);
    note_launch(s, "layers: tally");
}

extern "C" const struct ddp_nn_stream ddp_nn_stream_cuda = {
#define ROW(name) name##_all,
    DDP_NN_MAPS(ROW) DDP_NN_SUMS(ROW)
#undef ROW
        tally,
};
