/* The reduce kernels of one SIMD level: the template behind kernels_cpu_*.c.
 *
 * Each level file includes kernels_level_*.inc.h and defines REDUCE_SYMBOL and COPY_NT_SYMBOL, the
 * names of the two functions. Then it includes this template once.
 *
 * A kernel goes through all arrays once. It loads a *tile* of a few vectors from source 0 and
 * widens it to the accumulator's type. It combines the same tile of every other source into the
 * accumulator, in index order. Then it finishes the tile (division, canonical NaN), narrows it and
 * stores it to every destination. No intermediate result is stored in memory, and a destination may
 * be a source. The head and the tail of an array are partial vectors. The same operations process
 * them, so that their results have the same bits.
 *
 * The results do not depend on the vector size VB, because lanes are never combined with each other
 * and no operation is contracted (-ffp-contract=off). Every NaN becomes the canonical quiet NaN,
 * because the payload of a NaN depends on the order of operands. */
#ifndef VB
#error "kernels_cpu.inc.h is a template: include kernels_cpu.h"
#endif

#include <assert.h>
#include <stdbool.h>

#include "base/mem.h"

/* Vectors per tile. Four independent additions hide the latency of an addition, and four vectors
 * fit in the registers. */
#define TILE 4
/* Vectors per tile in loops that prefetch: as many as fill two cache lines, but at most TILE
 * (results/notes/kernels.md). */
#define PAIR_TILE(RAW) DDP_MIN(TILE, (int)(2 * DDP_CACHE_LINE / sizeof(RAW)))
/* Arrays longer than this many vectors start with a partial vector that aligns the stores. */
#define HEAD_STEPS 16

/* Two sources and two destinations occur if two ranks each reduce half of a message and store the
 * sum in both ranks' memory. Half of the cache lines then lie in the other core's cache, and the
 * time depends on how many of these lines are requested at once. Three measures reduce the time
 * (results/notes/kernels.md):
 *
 * 1. The kernels prefetch lines AHEAD bytes before their use. They do not prefetch beyond the end
 * of the range, because the other rank works there. Ranges of LONG_BYTES and more are prefetched
 * only if the hardware prefetcher falls behind (prefetcher_lags).
 *
 * 2. If the hardware prefetcher falls behind, ranges of at least PAIRED_BYTES are processed as two
 * ranges side by side, one vector at a time.
 *
 * 3. The distance of these two ranges is never a multiple of 4 KiB (ALIAS_BYTES), because accesses
 * whose addresses agree in the low twelve bits delay each other. */
#define AHEAD        ((size_t)1 << 10)
#define PAIRED_BYTES ((size_t)16 << 10)
#define LONG_BYTES   ((size_t)64 << 10)
#define ALIAS_BYTES  ((size_t)4 << 10)

#include "device/cpu/kernels_ops.inc.h"

/* Kernels are not inlined into the functions that choose among them. Otherwise these functions
 * would save and restore the registers of all kernels in every call. */
#define OUT_OF_LINE static __attribute__((noinline))

/* Returns the distance between the two ranges of an array of `bytes` bytes, which is also the
 * length of each range. It is the greatest odd multiple of ALIAS_BYTES / 2 that is at most half of
 * `bytes`. */
INLINE size_t paired_distance(size_t bytes)
{
    const size_t off = ALIAS_BYTES / 2;
    return (bytes / 2 + off) / ALIAS_BYTES * ALIAS_BYTES - off;
}

/* Returns the number of bytes before the first boundary of `step` bytes in dst, or 0 if this is not
 * a whole number of elements. */
INLINE size_t head_bytes(const void *dst, size_t step, size_t elem)
{
    const size_t head = -(uintptr_t)dst & (step - 1);
    return head % elem == 0 ? head : 0;
}

/* Returns whether non-temporal stores are possible. They need destinations that are aligned to
 * `elem` bytes and all have the same offset from a boundary of `step` bytes. */
static bool can_stream(void *const *dst, int ndst, size_t step, size_t elem)
{
    for (int d = 0; d < ndst; d++)
        if ((((uintptr_t)dst[d] ^ (uintptr_t)dst[0]) & (step - 1)) != 0 ||
            (uintptr_t)dst[d] % elem != 0)
            return false;
    return true;
}

INLINE void stream_raw_full(unsigned char *p, raw_full v)
{
    vec_stream_full(p, v);
}
INLINE void stream_raw_half(unsigned char *p, raw_half v)
{
    vec_stream_half(p, v);
}
INLINE void stream_raw_quarter(unsigned char *p, raw_quarter v)
{
    memcpy(p, &v, sizeof(v)); /* only averages of u8 use this, so a plain store suffices */
}

/* Defines kernel NAME. RAW holds the elements of one accumulator vector as they lie in memory. ELEM
 * is the size of an element in bytes, and ACC is the type of the accumulator. Kernels for frequent
 * shapes inline NAME##_loop with constant nsrc and ndst. */
#define DEFINE_KERNEL(NAME, RAW, ACC, ELEM, WIDEN, NARROW, COMBINE, FINISH)                        \
    INLINE ACC NAME##_part(const void *const *src, int nsrc, size_t at, size_t bytes,              \
                           struct finisher f)                                                      \
    {                                                                                              \
        RAW raw;                                                                                   \
        raw_full part = vec_load_part((const unsigned char *)src[0] + at, bytes);                  \
        memcpy(&raw, &part, sizeof(raw));                                                          \
        ACC a = WIDEN(raw);                                                                        \
        for (int k = 1; k < nsrc; k++) {                                                           \
            part = vec_load_part((const unsigned char *)src[k] + at, bytes);                       \
            memcpy(&raw, &part, sizeof(raw));                                                      \
            ACC b = WIDEN(raw);                                                                    \
            a = COMBINE(a, b);                                                                     \
        }                                                                                          \
        return FINISH(a, f);                                                                       \
    }                                                                                              \
    INLINE void NAME##_edge(void *const *dst, int ndst, const void *const *src, int nsrc,          \
                            size_t at, size_t bytes, struct finisher f)                            \
    {                                                                                              \
        const RAW raw = NARROW(NAME##_part(src, nsrc, at, bytes, f));                              \
        raw_full part = {0};                                                                       \
        memcpy(&part, &raw, sizeof(raw));                                                          \
        for (int d = 0; d < ndst; d++)                                                             \
            vec_store_part((unsigned char *)dst[d] + at, part, bytes);                             \
    }                                                                                              \
    INLINE void NAME##_tile(void *const *dst, int ndst, const void *const *src, int nsrc,          \
                            size_t at, int vectors, bool stream, struct finisher f)                \
    {                                                                                              \
        ACC a[TILE];                                                                               \
        RAW raw;                                                                                   \
        for (int v = 0; v < vectors; v++) {                                                        \
            memcpy(&raw, (const unsigned char *)src[0] + at + v * sizeof(RAW), sizeof(RAW));       \
            a[v] = WIDEN(raw);                                                                     \
        }                                                                                          \
        for (int k = 1; k < nsrc; k++)                                                             \
            for (int v = 0; v < vectors; v++) {                                                    \
                memcpy(&raw, (const unsigned char *)src[k] + at + v * sizeof(RAW), sizeof(RAW));   \
                ACC b = WIDEN(raw);                                                                \
                a[v] = COMBINE(a[v], b);                                                           \
            }                                                                                      \
        for (int v = 0; v < vectors; v++)                                                          \
            a[v] = FINISH(a[v], f);                                                                \
        for (int d = 0; d < ndst; d++)                                                             \
            for (int v = 0; v < vectors; v++) {                                                    \
                raw = NARROW(a[v]);                                                                \
                unsigned char *to = (unsigned char *)dst[d] + at + v * sizeof(RAW);                \
                if (stream)                                                                        \
                    stream_##RAW(to, raw);                                                         \
                else                                                                               \
                    memcpy(to, &raw, sizeof(RAW));                                                 \
            }                                                                                      \
    }                                                                                              \
    INLINE size_t NAME##_paired(void *const *dst, const void *const *src, size_t at, size_t bytes, \
                                int remote, struct finisher f)                                     \
    {                                                                                              \
        const size_t half = paired_distance(bytes - at);                                           \
        for (const size_t end = at + half; at != end; at += sizeof(RAW)) {                         \
            if (end - at > AHEAD) {                                                                \
                ddp_prefetch(src[remote], at + AHEAD, sizeof(RAW));                                \
                ddp_prefetch(src[remote], at + half + AHEAD, sizeof(RAW));                         \
            }                                                                                      \
            NAME##_tile(dst, 2, src, 2, at, 1, false, f);                                          \
            NAME##_tile(dst, 2, src, 2, at + half, 1, false, f);                                   \
        }                                                                                          \
        return at + half;                                                                          \
    }                                                                                              \
    INLINE void NAME##_loop(void *const *dst, int ndst, const void *const *src, int nsrc,          \
                            size_t bytes, bool stream, int remote, struct finisher f)              \
    {                                                                                              \
        const size_t step = sizeof(RAW), tile = TILE * step, pair_tile = PAIR_TILE(RAW) * step;    \
        const bool pair = nsrc == 2 && ndst == 2 && !stream;                                       \
        size_t at = bytes > HEAD_STEPS * step ? head_bytes(dst[0], step, ELEM) : 0;                \
        if (at != 0)                                                                               \
            NAME##_edge(dst, ndst, src, nsrc, 0, at, f);                                           \
        const bool ahead = pair && (bytes - at < LONG_BYTES || prefetcher_lags());                 \
        if (pair && bytes - at >= PAIRED_BYTES && prefetcher_lags())                               \
            at = NAME##_paired(dst, src, at, bytes, remote, f);                                    \
        if (ahead && bytes - at >= AHEAD)                                                          \
            ddp_prefetch(src[remote], at, AHEAD);                                                  \
        for (; ahead && bytes - at >= pair_tile; at += pair_tile) {                                \
            if (bytes - at >= AHEAD + pair_tile)                                                   \
                ddp_prefetch(src[remote], at + AHEAD, pair_tile);                                  \
            NAME##_tile(dst, ndst, src, nsrc, at, PAIR_TILE(RAW), stream, f);                      \
        }                                                                                          \
        for (; bytes - at >= tile; at += tile)                                                     \
            NAME##_tile(dst, ndst, src, nsrc, at, TILE, stream, f);                                \
        for (; bytes - at >= step; at += step)                                                     \
            NAME##_tile(dst, ndst, src, nsrc, at, 1, false, f);                                    \
        if (at != bytes)                                                                           \
            NAME##_edge(dst, ndst, src, nsrc, at, bytes - at, f);                                  \
    }                                                                                              \
    OUT_OF_LINE void NAME(const struct ddp_reduce *r)                                              \
    {                                                                                              \
        const size_t bytes = r->count * ELEM;                                                      \
        const bool stream = r->nontemporal && bytes > HEAD_STEPS * sizeof(RAW) &&                  \
                            can_stream(r->dst, r->dst_count, sizeof(RAW), ELEM);                   \
        NAME##_loop(r->dst, r->dst_count, r->src, r->src_count, bytes, stream, r->remote,          \
                    finisher_of(r->divisor));                                                      \
        if (stream)                                                                                \
            vec_stream_end();                                                                      \
    }

/*            name       memory     accumulator elem widen narrow combine finish */
DEFINE_KERNEL(any_f32_sum, raw_full, v_f32, 4, TO_F32, TO_RAW, ADD, finish_f32)
DEFINE_KERNEL(f32_prod, raw_full, v_f32, 4, TO_F32, TO_RAW, MUL, finish_f32)
DEFINE_KERNEL(f32_min, raw_full, v_f32, 4, TO_F32, TO_RAW, MIN_F32, finish_f32)
DEFINE_KERNEL(f32_max, raw_full, v_f32, 4, TO_F32, TO_RAW, MAX_F32, finish_f32)
DEFINE_KERNEL(f16_sum, raw_half, v_f32, 2, widen_f16, narrow_f16, ADD, finish_f32)
DEFINE_KERNEL(f16_prod, raw_half, v_f32, 2, widen_f16, narrow_f16, MUL, finish_f32)
DEFINE_KERNEL(f16_min, raw_half, v_f32, 2, widen_f16, narrow_f16, MIN_F32, finish_f32)
DEFINE_KERNEL(f16_max, raw_half, v_f32, 2, widen_f16, narrow_f16, MAX_F32, finish_f32)
DEFINE_KERNEL(bf16_sum, raw_half, v_f32, 2, widen_bf16, narrow_bf16, ADD, finish_f32)
DEFINE_KERNEL(bf16_prod, raw_half, v_f32, 2, widen_bf16, narrow_bf16, MUL, finish_f32)
DEFINE_KERNEL(bf16_min, raw_half, v_f32, 2, widen_bf16, narrow_bf16, MIN_F32, finish_f32)
DEFINE_KERNEL(bf16_max, raw_half, v_f32, 2, widen_bf16, narrow_bf16, MAX_F32, finish_f32)
DEFINE_KERNEL(f64_sum, raw_full, v_f64, 8, TO_F64, TO_RAW, ADD, finish_f64)
DEFINE_KERNEL(f64_prod, raw_full, v_f64, 8, TO_F64, TO_RAW, MUL, finish_f64)
DEFINE_KERNEL(f64_min, raw_full, v_f64, 8, TO_F64, TO_RAW, MIN_F64, finish_f64)
DEFINE_KERNEL(f64_max, raw_full, v_f64, 8, TO_F64, TO_RAW, MAX_F64, finish_f64)
DEFINE_KERNEL(i32_sum, raw_full, v_u32, 4, TO_U32, TO_RAW, ADD, AS_IS)
DEFINE_KERNEL(i32_prod, raw_full, v_u32, 4, TO_U32, TO_RAW, MUL, AS_IS)
DEFINE_KERNEL(i32_min, raw_full, v_u32, 4, TO_U32, TO_RAW, MIN_I32, AS_IS)
DEFINE_KERNEL(i32_max, raw_full, v_u32, 4, TO_U32, TO_RAW, MAX_I32, AS_IS)
DEFINE_KERNEL(i32_mean, raw_half, v_f64, 4, WIDEN_I32, NARROW_I32, ADD, finish_mean_i32)
DEFINE_KERNEL(u8_sum, raw_full, v_u8, 1, TO_U8, TO_RAW, ADD, AS_IS)
DEFINE_KERNEL(u8_prod, raw_full, v_u8, 1, TO_U8, TO_RAW, MUL, AS_IS)
DEFINE_KERNEL(u8_min, raw_full, v_u8, 1, TO_U8, TO_RAW, MIN_U8, AS_IS)
DEFINE_KERNEL(u8_max, raw_full, v_u8, 1, TO_U8, TO_RAW, MAX_U8, AS_IS)
DEFINE_KERNEL(u8_mean, raw_quarter, v_f32, 1, widen_u8, narrow_u8, ADD, finish_mean_u8)

/* Kernels for the most frequent shapes of dense gradient exchange: f32 sums of two arrays into one
 * or two, and of four into four. With constant counts the compiler keeps every pointer in a
 * register and unrolls the loops. */
#define FIXED_F32_SUM(nsrc, ndst, stream)                                                          \
    do {                                                                                           \
        const void *src[nsrc];                                                                     \
        void *dst[ndst];                                                                           \
        memcpy(src, r->src, sizeof(src));                                                          \
        memcpy(dst, r->dst, sizeof(dst));                                                          \
        const struct finisher f = finisher_of(r->divisor);                                         \
        if (f.how == FINISH_NONE)                                                                  \
            any_f32_sum_loop(dst, ndst, src, nsrc, r->count * 4, stream, r->remote,                \
                             (struct finisher){FINISH_NONE, 1});                                   \
        else                                                                                       \
            any_f32_sum_loop(dst, ndst, src, nsrc, r->count * 4, stream, r->remote, f);            \
    } while (0)

OUT_OF_LINE void f32_sum_2_1(const struct ddp_reduce *r)
{
    FIXED_F32_SUM(2, 1, false);
}
OUT_OF_LINE void f32_sum_2_2(const struct ddp_reduce *r)
{
    FIXED_F32_SUM(2, 2, false);
}
OUT_OF_LINE void f32_sum_4_4(const struct ddp_reduce *r)
{
    FIXED_F32_SUM(4, 4, false);
}

static void f32_sum(const struct ddp_reduce *r)
{
    const int shape = r->nontemporal ? 0 : r->src_count * 16 + r->dst_count;
    if (shape == 2 * 16 + 1)
        f32_sum_2_1(r);
    else if (shape == 2 * 16 + 2)
        f32_sum_2_2(r);
    else if (shape == 4 * 16 + 4)
        f32_sum_4_4(r);
    else
        any_f32_sum(r);
}

typedef void kernel(const struct ddp_reduce *r);

void REDUCE_SYMBOL(const struct ddp_reduce *r)
{
    static kernel *const table[DDP_DTYPE_COUNT][DDP_OP_COUNT] = {
        [DDP_F32] = {f32_sum, f32_sum, f32_prod, f32_min, f32_max},
        [DDP_F16] = {f16_sum, f16_sum, f16_prod, f16_min, f16_max},
        [DDP_BF16] = {bf16_sum, bf16_sum, bf16_prod, bf16_min, bf16_max},
        [DDP_F64] = {f64_sum, f64_sum, f64_prod, f64_min, f64_max},
        [DDP_I32] = {i32_sum, i32_sum, i32_prod, i32_min, i32_max},
        [DDP_U8] = {u8_sum, u8_sum, u8_prod, u8_min, u8_max},
    };
    assert(r->src_count >= 1 && r->src_count <= DDP_REDUCE_MAX && r->dst_count >= 1);
    assert(r->remote >= 0 && r->remote < r->src_count);
    assert(r->divisor == 1 || r->op == DDP_SUM || r->op == DDP_AVG);
    if (r->count == 0)
        return;
    if (r->divisor > 1 && r->dtype == DDP_I32)
        i32_mean(r);
    else if (r->divisor > 1 && r->dtype == DDP_U8)
        u8_mean(r);
    else
        table[r->dtype][r->op](r);
}

void COPY_NT_SYMBOL(void *dst, const void *src, size_t bytes)
{
    unsigned char *to = (unsigned char *)dst;
    const unsigned char *from = (const unsigned char *)src;
    size_t head = -(uintptr_t)to & (VB - 1);
    if (bytes < 16 * VB) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, head);
    size_t at = head;
    for (; bytes - at >= TILE * VB; at += TILE * VB) {
        raw_full v[TILE];
        memcpy(v, from + at, sizeof(v));
        for (int i = 0; i < TILE; i++)
            vec_stream_full(to + at + (size_t)i * VB, v[i]);
    }
    vec_stream_end();
    memcpy(to + at, from + at, bytes - at);
}
