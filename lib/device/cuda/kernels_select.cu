/* Selection kernels of device cuda: by threshold, and exact top-K, both with error feedback.
 *
 * select_ops.h contains the logic. This file adds the cooperation of threads: scans within a block,
 * look-back between tiles and counting of digits.
 *
 * Top-K works in three steps:
 *
 * 1. A sample gives a *floor*, a magnitude that probably slightly more than k elements reach.
 *
 * 2. One pass copies the *candidates*, the elements that reach the floor, in order. The
 * input is the array `in`, the residual, or their sum. If both are given, the pass also adds `in`
 * to the residual.
 *
 * 3. Radix passes over the candidates find the *cut*, the k-th largest magnitude. A last pass
 * writes the k candidates that the cut selects (struct ddp_cut) to the output list. If there is a
 * residual, the pass sets its elements with the same indices to 0.
 *
 * Step 3 reads the whole array instead of the candidates if there are fewer than k candidates, or
 * more candidates than their memory can hold. The kernels make this decision, so that the stream
 * does not wait for the host. If the array is small or k is large, there are no steps 1 and 2, and
 * step 3 always reads the whole array. */
#include <cuda_runtime.h>

#include "device/cuda/kernels_cuda.h"
#include "device/select_ops.h"

#define THREADS DDP_TILE_THREADS
#define WARPS   (THREADS / 32)
#define ALL     0xffffffffu

/* Returns the sum of `mine` over the threads before this thread. Sets *all to the sum over all
 * threads. totals [WARPS] is shared memory. */
static __device__ uint64_t block_scan(uint64_t mine, uint64_t *totals, uint64_t *all)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t sum = mine;
#pragma unroll
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        const uint64_t other = __shfl_up_sync(ALL, sum, distance);
        if (lane >= distance)
            sum += other;
    }
    if (lane == 31)
        totals[warp] = sum;
    __syncthreads();
    uint64_t before = 0;
    *all = 0;
#pragma unroll
    for (unsigned w = 0; w < WARPS; w++) {
        if (w == warp)
            before = *all;
        *all += totals[w];
    }
    return before + sum - mine;
}

/* Returns the sum of the counts of all tiles before `tile`. `own` holds the counts of `tile`. At
 * the end, sets words[tile] (select_ops.h) to the returned sum plus `own`. Until then, words[tile]
 * holds `own`, except for tile 0. All lanes of one warp call the function together. */
static __device__ uint64_t look_back(uint64_t *words, uint32_t tile, uint64_t own)
{
    const int lane = (int)(threadIdx.x % 32);
    uint64_t before = 0;
    if (lane == 0 && tile > 0)
        ddp_store_word(words + tile, (uint64_t)DDP_WORD_OWN << 62 | own);
    int last = tile == 0;
    for (int64_t at = (int64_t)tile - 1 - lane; !last;) {
        const uint64_t word = at < 0 ? ddp_word(DDP_WORD_PREFIX, 0, 0) : ddp_load_word(words + at);
        const unsigned state = ddp_word_state(word);
        const int take = ddp_window_take(__ballot_sync(ALL, state == DDP_WORD_ABSENT),
                                         __ballot_sync(ALL, state == DDP_WORD_PREFIX), &last);
        uint64_t sum = lane < take ? ddp_word_counts(word) : 0;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            sum += __shfl_xor_sync(ALL, sum, distance);
        before += sum;
        at -= take;
    }
    if (lane == 0)
        ddp_store_word(words + tile, (uint64_t)DDP_WORD_PREFIX << 62 | (before + own));
    return before;
}

/* Processes tiles until none is left. The caller has set words [tiles] and *ticket to 0. The block
 * that processes the last tile stores the number of selected values in *total. It stores the number
 * of values in the output list, which is at most a.capacity, in *count. total and count may be
 * NULL. */
template <int MODE>
static __device__ void tile_loop(const ddp_tile_args &a, uint64_t *words, uint32_t *ticket,
                                 uint32_t *total, uint32_t *count)
{
    __shared__ uint32_t next;
    __shared__ uint64_t before_tile, above_totals[WARPS], equal_totals[WARPS];
    const int thread = (int)threadIdx.x;
    const uint32_t tiles = ddp_tiles(a.n);
    for (;;) {
        /* The threads have read `next` and the totals before the last barrier of the previous tile.
         * These variables can therefore be overwritten now. */
        if (thread == 0)
            next = atomicAdd(ticket, 1);
        __syncthreads();
        const uint32_t tile = next;
        if (tile >= tiles)
            return;
        ddp_tile_thread me;
        ddp_tile_position position = {0, 0, 0, 0, 0, 0};
        ddp_tile_look(&a, MODE, tile, thread, &me);
        position.above_before =
            block_scan(ddp_tile_counts(me.above), above_totals, &position.above_all);
        if (MODE & DDP_TILE_TIES)
            position.equal_before =
                block_scan(ddp_tile_counts(me.equal), equal_totals, &position.equal_all);
        if (thread < 32) {
            const uint64_t own = ddp_word(DDP_WORD_ABSENT, ddp_tile_total(position.above_all),
                                          ddp_tile_total(position.equal_all));
            const uint64_t before = look_back(words, tile, own);
            if (thread == 0) {
                before_tile = before;
                if (tile == tiles - 1) {
                    const uint32_t selected = ddp_cut_total(a.cut, before + own);
                    if (total != NULL)
                        *total = selected;
                    if (count != NULL)
                        *count = min(selected, a.capacity);
                }
            }
        }
        __syncthreads();
        position.above = ddp_counts_above(before_tile);
        position.equal = ddp_counts_equal(before_tile);
        ddp_tile_take(&a, MODE, tile, thread, &me, &position);
    }
}

/* Blocks per multiprocessor for kernels that loop until no work is left. */
#define RESIDENT 8

/* State of a selection in device memory, zeroed before the first kernel. */
struct select_state {
    ddp_radix radix;
    uint32_t found;     /* number of magnitudes that reach the floor */
    uint32_t done;      /* number of blocks that have finished counting */
    uint32_t ticket[2]; /* next tile of the first and of the last pass */
    uint32_t bins[DDP_RADIX_BINS];
};

template <int MODE>
static __global__ void __launch_bounds__(THREADS)
    select_kernel(ddp_tile_args a, uint64_t *words, uint32_t *ticket, uint32_t *count)
{
    tile_loop<MODE>(a, words, ticket, NULL, count);
}

/* Copies the candidates. The floor is the result of the radix passes over the sample. */
template <int MODE>
static __global__ void __launch_bounds__(THREADS)
    candidate_kernel(ddp_tile_args a, uint64_t *words, select_state *state)
{
    a.cut.magnitude = (int32_t)state->radix.prefix - 1;
    a.cut.ties = 0;
    tile_loop<MODE>(a, words, &state->ticket[0], &state->found, NULL);
}

static __global__ void sample_kernel(float *sample, const float *in, const float *residual,
                                     uint32_t n)
{
    const uint32_t j = blockIdx.x * THREADS + threadIdx.x;
    const uint32_t i = ddp_sample_at(n, j / DDP_SAMPLE_LINE) + j % DDP_SAMPLE_LINE;
    sample[j] = ddp_add_residual(in ? in[i] : 0.0f, residual ? residual[i] : 0.0f, in != NULL,
                                 residual != NULL);
}

/* The data that step 3 reads: the candidates if there are at least k and all of them fit, else the
 * whole array. */
struct topk_source {
    const float *array, *candidates;
    const uint32_t *candidate_index;
    uint32_t n, capacity, k;
    int whole; /* nonzero: always read the array */
};

static __device__ bool reads_array(const topk_source &from, uint32_t found)
{
    return from.whole || found < from.k || found > from.capacity;
}

/* Adds 1 to bins[digit] for each lane with a digit >= 0. Lanes with the same digit do one addition
 * together. Most values share a few digits, so separate additions would collide. */
static __device__ void count_digit(uint32_t *bins, int digit)
{
    if (!__any_sync(ALL, digit >= 0))
        return;
    const unsigned alike = __match_any_sync(ALL, digit);
    if (digit >= 0 && __ffs((int)alike) - 1 == (int)(threadIdx.x % 32))
        atomicAdd(&bins[digit], (uint32_t)__popc(alike));
}

static __device__ void count_digits(uint32_t *bins, const float *x, uint32_t n, int pass,
                                    uint32_t prefix)
{
    const int vectors = (uintptr_t)x % 16 == 0;
    for (uint32_t tile = blockIdx.x; tile < ddp_tiles(n); tile += gridDim.x) {
        float value[DDP_TILE_VALUES];
#pragma unroll
        for (int row = 0; row < DDP_TILE_ROWS; row++) {
            const uint32_t i = ddp_tile_index(tile, (int)threadIdx.x, 4 * row);
            ddp_load4(value + 4 * row, x, i, ddp_tile_present(i, n), vectors);
        }
#pragma unroll
        for (int j = 0; j < DDP_TILE_VALUES; j++) {
            const bool present = ddp_tile_index(tile, (int)threadIdx.x, j) < n;
            const int32_t magnitude = ddp_f32_magnitude(ddp_f32_canonical(value[j]));
            count_digit(bins, present ? ddp_radix_digit(magnitude, pass, prefix) : -1);
        }
    }
}

/* One radix pass. Pass 0 starts with `rank`, the wanted rank. Later passes continue from the state.
 * The block that finishes last determines the digit. */
static __global__ void __launch_bounds__(THREADS)
    radix_kernel(topk_source from, select_state *state, int pass, uint32_t rank)
{
    __shared__ uint32_t bins[DDP_RADIX_BINS], groups[DDP_RADIX_BINS / DDP_RADIX_GROUP];
    __shared__ bool last;
    const ddp_radix radix = pass == 0 ? ddp_radix{0, rank} : state->radix;
    const bool array = reads_array(from, state->found);
    for (int i = (int)threadIdx.x; i < DDP_RADIX_BINS; i += THREADS)
        bins[i] = 0;
    __syncthreads();
    count_digits(bins, array ? from.array : from.candidates, array ? from.n : state->found, pass,
                 radix.prefix);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < DDP_RADIX_BINS; i += THREADS)
        if (bins[i] != 0)
            atomicAdd(&state->bins[i], bins[i]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(&state->done, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    for (int i = (int)threadIdx.x; i < DDP_RADIX_BINS; i += THREADS) {
        bins[i] = __ldcg(&state->bins[i]);
        state->bins[i] = 0;
    }
    __syncthreads();
    if (threadIdx.x < DDP_RADIX_BINS / DDP_RADIX_GROUP)
        groups[threadIdx.x] = ddp_radix_group(bins, (int)threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) {
        state->radix = ddp_radix_step(radix, pass, bins, groups);
        state->done = 0;
    }
}

/* Writes the values that the cut selects to the output list. If there is a residual (a.zero), sets
 * its elements with the same indices to 0. */
static __global__ void __launch_bounds__(THREADS)
    split_kernel(topk_source from, ddp_tile_args a, uint64_t *words, select_state *state,
                 uint32_t *count)
{
    a.cut.magnitude = (int32_t)state->radix.prefix;
    a.cut.ties = state->radix.rank;
    if (reads_array(from, state->found)) {
        a.in = from.array;
        a.n = from.n;
        a.vectors = (uintptr_t)from.array % 16 == 0;
        tile_loop<DDP_TILE_IN | DDP_TILE_TIES>(a, words, &state->ticket[1], NULL, count);
    } else {
        a.in = from.candidates;
        a.in_index = from.candidate_index;
        a.n = state->found;
        a.vectors = 1;
        tile_loop<DDP_TILE_LIST | DDP_TILE_TIES>(a, words, &state->ticket[1], NULL, count);
    }
}

/* Parts of the scratch memory. words, last_words, sample, index and value are offsets in bytes, and
 * multiples of 256. Each tile has one word (select_ops.h) at `words` and, for top-K, one at
 * `last_words`. `words` is for the pass that copies the candidates or selects by threshold, and
 * `last_words` for the last pass of top-K. begin() sets the first `zeroed` bytes to 0. */
struct select_layout {
    ddp_sample_plan plan;
    size_t words, last_words, zeroed, sample, index, value, bytes;
};

static size_t round_up(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static select_layout layout_of(size_t n, size_t k)
{
    select_layout l = {};
    const size_t words = round_up(ddp_tiles((uint32_t)n) * sizeof(uint64_t));
    if (k > 0 && k < n)
        l.plan = ddp_sample_plan_of((uint32_t)n, (uint32_t)k);
    l.words = round_up(sizeof(select_state));
    l.last_words = l.words + words;
    l.zeroed = l.last_words + (k > 0 ? words : 0);
    l.sample = l.zeroed;
    l.index = l.sample + (l.plan.rank > 0 ? round_up(DDP_SAMPLE * sizeof(float)) : 0);
    l.value = l.index + round_up(l.plan.capacity * sizeof(uint32_t));
    l.bytes = l.value + round_up(l.plan.capacity * sizeof(float));
    return l;
}

extern "C" size_t ddp_cuda_select_scratch(size_t n, size_t k)
{
    return layout_of(n, k).bytes;
}

static unsigned grid_of(const struct ddp_stream *s, uint32_t n)
{
    const unsigned most = (unsigned)(s->processors > 0 ? s->processors : 1) * RESIDENT;
    const unsigned tiles = ddp_tiles(n);
    return tiles < most ? tiles : most;
}

/* Starts a selection. Returns false if nothing remains to be done or an error was recorded. */
static bool begin(struct ddp_stream *s, const struct ddp_stream_select *x, const select_layout &l)
{
    if (x->n == 0) {
        ddp_cuda_streams.fill(s, x->out.count, 0, sizeof(*x->out.count));
        return false;
    }
    if (x->scratch_bytes < l.bytes || x->n >= (size_t)1 << 31) {
        ddp_cuda_note(s, cudaErrorInvalidValue,
                      "select: scratch memory too small or array too long");
        return false;
    }
    ddp_cuda_streams.fill(s, x->scratch, 0, l.zeroed);
    return true;
}

static ddp_tile_args args_of(const struct ddp_stream_select *x)
{
    ddp_tile_args a = {};
    a.in = x->in;
    a.residual = x->residual;
    a.out_index = x->out.index;
    a.out_value = x->out.value;
    a.n = (uint32_t)x->n;
    a.capacity = (uint32_t)(x->out.capacity < x->n ? x->out.capacity : x->n);
    a.vectors = ((uintptr_t)x->in | (uintptr_t)x->residual) % 16 == 0;
    return a;
}

/* Selects the values with a magnitude above `magnitude`, in one pass. */
static void select_above(struct ddp_stream *s, const struct ddp_stream_select *x,
                         const select_layout &l, int32_t magnitude)
{
    ddp_tile_args a = args_of(x);
    a.cut.magnitude = magnitude;
    char *scratch = (char *)x->scratch;
    uint64_t *words = (uint64_t *)(scratch + l.words);
    uint32_t *ticket = ((select_state *)scratch)->ticket, *count = x->out.count;
    const unsigned grid = grid_of(s, a.n);
    if (x->residual == NULL)
        select_kernel<DDP_TILE_IN><<<grid, THREADS, 0, s->handle>>>(a, words, ticket, count);
    else if (x->in == NULL)
        select_kernel<DDP_TILE_RESIDUAL><<<grid, THREADS, 0, s->handle>>>(a, words, ticket, count);
    else
        select_kernel<DDP_TILE_IN | DDP_TILE_RESIDUAL>
            <<<grid, THREADS, 0, s->handle>>>(a, words, ticket, count);
    ddp_cuda_note(s, cudaGetLastError(), "select");
}

extern "C" void ddp_cuda_select_threshold(struct ddp_stream *s, const struct ddp_stream_select *x,
                                          float threshold)
{
    const select_layout l = layout_of(x->n, 0);
    if (begin(s, x, l))
        select_above(s, x, l, ddp_f32_magnitude(threshold) - 1);
}

static void radix_passes(struct ddp_stream *s, const topk_source &from, select_state *state,
                         uint32_t n, uint32_t rank)
{
    for (int pass = 0; pass < DDP_RADIX_PASSES; pass++)
        radix_kernel<<<grid_of(s, n), THREADS, 0, s->handle>>>(from, state, pass, rank);
    ddp_cuda_note(s, cudaGetLastError(), "radix pass");
}

/* Does steps 1 and 2 of top-K: finds the floor by a sample, and copies the candidates to the
 * scratch memory. If there is a residual, adds x->in (unless it is NULL) to the residual. */
static void take_candidates(struct ddp_stream *s, const struct ddp_stream_select *x,
                            const select_layout &l, select_state *state)
{
    char *scratch = (char *)x->scratch;
    float *sample = (float *)(scratch + l.sample);
    uint64_t *words = (uint64_t *)(scratch + l.words);
    topk_source whole = {};
    whole.array = sample;
    whole.n = DDP_SAMPLE;
    whole.whole = 1;
    sample_kernel<<<DDP_SAMPLE / THREADS, THREADS, 0, s->handle>>>(sample, x->in, x->residual,
                                                                   (uint32_t)x->n);
    radix_passes(s, whole, state, DDP_SAMPLE, l.plan.rank);
    ddp_tile_args a = args_of(x);
    a.out_index = (uint32_t *)(scratch + l.index);
    a.out_value = (float *)(scratch + l.value);
    a.capacity = l.plan.capacity;
    const unsigned grid = grid_of(s, a.n);
    if (x->residual == NULL)
        candidate_kernel<DDP_TILE_IN><<<grid, THREADS, 0, s->handle>>>(a, words, state);
    else if (x->in == NULL)
        candidate_kernel<DDP_TILE_RESIDUAL | DDP_TILE_KEEP>
            <<<grid, THREADS, 0, s->handle>>>(a, words, state);
    else
        candidate_kernel<DDP_TILE_IN | DDP_TILE_RESIDUAL | DDP_TILE_KEEP>
            <<<grid, THREADS, 0, s->handle>>>(a, words, state);
    ddp_cuda_note(s, cudaGetLastError(), "candidates");
}

extern "C" void ddp_cuda_select_topk(struct ddp_stream *s, const struct ddp_stream_select *x,
                                     size_t k)
{
    const select_layout l = layout_of(x->n, k);
    if (!begin(s, x, l))
        return;
    if (k == 0 || k >= x->n) {
        select_above(s, x, l, k == 0 ? INT32_MAX : -1);
        return;
    }
    char *scratch = (char *)x->scratch;
    select_state *state = (select_state *)scratch;
    topk_source from = {};
    from.array = x->residual != NULL ? x->residual : x->in;
    from.candidates = (const float *)(scratch + l.value);
    from.candidate_index = (const uint32_t *)(scratch + l.index);
    from.n = (uint32_t)x->n;
    from.capacity = l.plan.capacity;
    from.k = (uint32_t)k;
    from.whole = l.plan.rank == 0;
    if (!from.whole)
        take_candidates(s, x, l, state);
    else if (x->residual != NULL)
        ddp_cuda_accumulate(s, x->residual, x->in, x->n);
    radix_passes(s, from, state, from.n, from.k);
    ddp_tile_args a = args_of(x);
    a.zero = x->residual;
    uint64_t *words = (uint64_t *)(scratch + l.last_words);
    split_kernel<<<grid_of(s, from.n), THREADS, 0, s->handle>>>(from, a, words, state,
                                                                x->out.count);
    ddp_cuda_note(s, cudaGetLastError(), "top-k split");
}
