/* The loop in which the blocks of a grid process the tiles of select_tile.h, with the scan of a
 * block and the look-back. Part of kernels_select.cu. */
#ifndef DDP_DEVICE_CUDA_KERNELS_CUDA_H
#error "tile_loop.inc.h is part of kernels_select.cu"
#endif

#include "device/select_tile.h"

#define THREADS DDP_TILE_THREADS
#define WARPS   (THREADS / 32)
#define ALL     0xffffffffu

/* Returns the sum of `mine` over the threads before this one; *all is the sum over all threads.
 * totals [WARPS] is shared memory. */
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

/* Returns the sum of the counts of all tiles before `tile`. `own` holds the counts of this tile.
 * All lanes of one warp call the function together. */
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
 * that processes the last tile stores the number of selected values in *total and the number of
 * sent values in *count. total and count may be NULL. */
template <int MODE>
static __device__ void tile_loop(const ddp_tile_args &a, uint64_t *words, uint32_t *ticket,
                                 uint32_t *total, uint32_t *count)
{
    __shared__ uint32_t next;
    __shared__ uint64_t before_tile, above_totals[WARPS], equal_totals[WARPS];
    const int thread = (int)threadIdx.x;
    const uint32_t tiles = ddp_tiles(a.n);
    for (;;) {
        /* The threads have read `next` and the totals of the previous tile before its last barrier,
         * so these can be overwritten now. */
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
                    const uint32_t sent = ddp_cut_total(a.cut, before + own);
                    if (total != NULL)
                        *total = sent;
                    if (count != NULL)
                        *count = min(sent, a.capacity);
                }
            }
        }
        __syncthreads();
        position.above = ddp_counts_above(before_tile);
        position.equal = ddp_counts_equal(before_tile);
        ddp_tile_take(&a, MODE, tile, thread, &me, &position);
    }
}
