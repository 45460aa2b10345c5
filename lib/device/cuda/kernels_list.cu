/* Kernels of device cuda on index-sorted lists. The lengths of the lists are in device memory. The
 * host does not know the lengths, so it chooses the number of blocks by the capacity of a list. It
 * launches at most as many blocks as fill the GPU. The threads loop until they have processed
 * `count` entries. */
#include <cuda_runtime.h>

#include "device/element_ops.h"
#include "device/cuda/kernels_cuda.h"

#define THREADS  256
#define RESIDENT 8
#define WARPS    (THREADS / 32)

enum how { ADD, SET, ZERO };

/* Atomics are not needed, because no index occurs twice in a list. */
template <how HOW>
static __global__ void __launch_bounds__(THREADS)
    scatter_kernel(float *dst, const uint32_t *index, const float *value, const uint32_t *count)
{
    const uint32_t n = *count;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        const uint32_t at = index[i];
        if (HOW == ADD)
            dst[at] = ddp_f32_canonical(dst[at] + value[i]);
        else
            dst[at] = HOW == SET ? ddp_f32_canonical(value[i]) : 0.0f;
    }
}

static unsigned grid_of(const struct ddp_stream *s, size_t capacity)
{
    const size_t most = (size_t)(s->processors > 0 ? s->processors : 1) * RESIDENT;
    const size_t blocks = (capacity + THREADS - 1) / THREADS;
    return (unsigned)(blocks < most ? blocks : most);
}

template <how HOW>
static void scatter(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list)
{
    if (list->capacity == 0)
        return;
    scatter_kernel<HOW><<<grid_of(s, list->capacity), THREADS, 0, s->handle>>>(
        dst, list->index, list->value, list->count);
    ddp_cuda_note(s, cudaGetLastError(), "scatter");
}

extern "C" void ddp_cuda_scatter_add(struct ddp_stream *s, float *dst,
                                     const struct ddp_stream_list *list)
{
    scatter<ADD>(s, dst, list);
}

extern "C" void ddp_cuda_scatter(struct ddp_stream *s, float *dst,
                                 const struct ddp_stream_list *list)
{
    scatter<SET>(s, dst, list);
}

extern "C" void ddp_cuda_scatter_zero(struct ddp_stream *s, float *dst,
                                      const struct ddp_stream_list *list)
{
    scatter<ZERO>(s, dst, list);
}

/* Merging two lists: an entry of b is *new* if its index does not occur in a. The output position
 * of entry i of a is i plus the number of new entries with a smaller index. Therefore the new
 * entries are counted first. Then each thread computes the output position of its entry. */

/* Sets offset_in_block[j] to the number of new entries that precede entry j of b in the block of
 * THREADS entries that contains j. Sets block_offset[i] to the number of new entries in block i. */
static __global__ void __launch_bounds__(THREADS)
    merge_count(const uint32_t *a, const uint32_t *a_count, const uint32_t *b,
                const uint32_t *b_count, uint32_t *offset_in_block, uint32_t *block_offset)
{
    __shared__ uint32_t totals[WARPS];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, na = *a_count, nb = *b_count;
    for (uint32_t from = blockIdx.x * THREADS; from < nb; from += gridDim.x * THREADS) {
        const uint32_t j = from + threadIdx.x;
        bool is_new = false;
        if (j < nb) {
            const uint32_t at = ddp_lower_bound(a, na, b[j]);
            is_new = at == na || a[at] != b[j];
        }
        const unsigned mask = __ballot_sync(0xffffffffu, is_new);
        if (lane == 0)
            totals[warp] = (uint32_t)__popc(mask);
        __syncthreads();
        uint32_t before = 0, all = 0;
        for (uint32_t w = 0; w < WARPS; w++) {
            before += w < warp ? totals[w] : 0;
            all += totals[w];
        }
        if (j < nb)
            offset_in_block[j] = before + (uint32_t)__popc(mask & ((1u << lane) - 1));
        if (threadIdx.x == 0)
            block_offset[from / THREADS] = all;
        __syncthreads();
    }
}

/* Replaces block_offset[i] by the number of new entries before block i and sets *out_count to the
 * length of the merged list. One thread block suffices, because block_offset has only one number
 * per THREADS entries. */
static __global__ void __launch_bounds__(THREADS)
    merge_scan(const uint32_t *a_count, const uint32_t *b_count, uint32_t *block_offset,
               uint32_t *out_count)
{
    __shared__ uint32_t sums[THREADS];
    const uint32_t count = (*b_count + THREADS - 1) / THREADS;
    uint32_t carry = 0;
    for (uint32_t from = 0; from < count; from += THREADS) {
        const uint32_t i = from + threadIdx.x, mine = i < count ? block_offset[i] : 0;
        sums[threadIdx.x] = mine;
        __syncthreads();
        for (uint32_t distance = 1; distance < THREADS; distance *= 2) {
            const uint32_t other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
            __syncthreads();
            sums[threadIdx.x] += other;
            __syncthreads();
        }
        if (i < count)
            block_offset[i] = carry + sums[threadIdx.x] - mine;
        carry += sums[THREADS - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *out_count = *a_count + carry;
}

struct merge_lists {
    const uint32_t *a_index, *b_index, *a_count, *b_count;
    const float *a_value, *b_value;
    uint32_t *out_index;
    float *out_value;
};

static __global__ void __launch_bounds__(THREADS)
    merge_place(merge_lists l, const uint32_t *offset_in_block, const uint32_t *block_offset,
                const uint32_t *out_count)
{
    const uint32_t na = *l.a_count, nb = *l.b_count;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < na + nb; i += gridDim.x * THREADS) {
        const bool of_a = i < na;
        const uint32_t index = of_a ? l.a_index[i] : l.b_index[i - na];
        const uint32_t other =
            of_a ? ddp_lower_bound(l.b_index, nb, index) : ddp_lower_bound(l.a_index, na, index);
        if (of_a) {
            const bool both = other < nb && l.b_index[other] == index;
            const uint32_t new_before = other < nb
                                            ? block_offset[other / THREADS] + offset_in_block[other]
                                            : *out_count - na;
            l.out_index[i + new_before] = index;
            l.out_value[i + new_before] = ddp_merged(l.a_value[i], both ? l.b_value[other] : -0.0f);
        } else if (other == na || l.a_index[other] != index) {
            const uint32_t at = other + block_offset[(i - na) / THREADS] + offset_in_block[i - na];
            l.out_index[at] = index;
            l.out_value[at] = ddp_merged(-0.0f, l.b_value[i - na]);
        }
    }
}

extern "C" size_t ddp_cuda_merge_scratch(size_t b_capacity)
{
    return (b_capacity + b_capacity / THREADS + 2) * sizeof(uint32_t);
}

extern "C" void ddp_cuda_merge(struct ddp_stream *s, const struct ddp_stream_list *out,
                               const struct ddp_stream_list *a, const struct ddp_stream_list *b,
                               void *scratch)
{
    uint32_t *offset_in_block = (uint32_t *)scratch, *block_offset = offset_in_block + b->capacity;
    const merge_lists l = {a->index, b->index, a->count,   b->count,
                           a->value, b->value, out->index, out->value};
    const size_t capacity = a->capacity + b->capacity;
    if (b->capacity != 0)
        merge_count<<<grid_of(s, b->capacity), THREADS, 0, s->handle>>>(
            a->index, a->count, b->index, b->count, offset_in_block, block_offset);
    merge_scan<<<1, THREADS, 0, s->handle>>>(a->count, b->count, block_offset, out->count);
    if (capacity != 0)
        merge_place<<<grid_of(s, capacity), THREADS, 0, s->handle>>>(l, offset_in_block,
                                                                     block_offset, out->count);
    ddp_cuda_note(s, cudaGetLastError(), "merge");
}

static __global__ void __launch_bounds__(THREADS)
    split_kernel(const uint32_t *index, const uint32_t *count, const uint32_t *bound,
                 uint32_t bounds, uint32_t *before)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i < bounds)
        before[i] = ddp_lower_bound(index, *count, bound[i]);
}

extern "C" void ddp_cuda_split(struct ddp_stream *s, const struct ddp_stream_list *list,
                               const uint32_t *bound, size_t bounds, uint32_t *before)
{
    if (bounds == 0)
        return;
    split_kernel<<<(unsigned)((bounds + THREADS - 1) / THREADS), THREADS, 0, s->handle>>>(
        list->index, list->count, bound, (uint32_t)bounds, before);
    ddp_cuda_note(s, cudaGetLastError(), "split");
}

/* Each block counts in shared memory first, so that a block adds at most 16 numbers to `count`. */
static __global__ void __launch_bounds__(THREADS)
    count_digits_kernel(const float *value, uint32_t n, uint32_t prefix, int shift, uint32_t *count)
{
    __shared__ uint32_t found[DDP_DIGITS];
    if (threadIdx.x < DDP_DIGITS)
        found[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        const int digit = ddp_digit_of(value[i], prefix, shift);
        if (digit >= 0)
            atomicAdd(&found[digit], 1u);
    }
    __syncthreads();
    if (threadIdx.x < DDP_DIGITS && found[threadIdx.x] != 0)
        atomicAdd(&count[threadIdx.x], found[threadIdx.x]);
}

extern "C" void ddp_cuda_count_digits(struct ddp_stream *s, const float *value, size_t n,
                                      uint32_t prefix, int shift, uint32_t *count)
{
    if (n == 0)
        return;
    count_digits_kernel<<<grid_of(s, n), THREADS, 0, s->handle>>>(value, (uint32_t)n, prefix, shift,
                                                                  count);
    ddp_cuda_note(s, cudaGetLastError(), "count_digits");
}
