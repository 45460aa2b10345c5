/* The reduce and copy kernels of one SIMD level: the template behind kernels_*.c.
 *
 * Each level file defines VB, which kernels_level.inc.h explains, and LEVEL(name), which appends
 * the level to the name of a function. Then the file includes this template once.
 *
 * A kernel goes through all arrays once. It loads a *tile* of a few vectors from source 0 and
 * widens it to the accumulator's type. It combines the same tile of every other source into the
 * accumulator, in index order. Then it finishes the tile (division, canonical NaN), narrows it and
 * stores it to every destination. No intermediate result is stored in memory, and a destination may
 * be a source. The head and the tail of an array are partial vectors. The kernel processes partial
 * and whole vectors with the same operations, so that the bits of a result do not depend on its
 * position in the array.
 *
 * All kernels share one set of inline functions. Each kernel inlines these functions with a
 * constant dtype and a constant operation, so that its loops have no branch on the dtype or the
 * operation. Kernels for frequent shapes also have a constant number of arrays.
 *
 * The results do not depend on the vector size VB, because lanes are never combined with each other
 * and no operation is contracted (-ffp-contract=off). Every NaN becomes the canonical quiet NaN,
 * because the payload of a NaN depends on the order of operands. */
#ifndef VB
#error "kernels_cpu.inc.h is a template: include kernels_cpu.h"
#endif

#include <assert.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "device/cpu/kernels_cpu.h"
#include "device/cpu/kernels_level.inc.h"
#include "device/element_ops.h"

/* Vectors per tile. Four independent additions hide the latency of an addition, and four vectors
 * fit in the registers. */
#define TILE 4
/* Vectors per tile in the loop of reduce_all that prefetches: as many as fill two cache lines, but
 * at most TILE (results/notes/kernels.md). */
#define PAIR_TILE(step) DDP_MIN(TILE, (int)(2 * DDP_CACHE_LINE / (step)))
/* Arrays longer than this many vectors start with a partial vector, so that the stores to the first
 * destination are aligned. */
#define HEAD_STEPS 16

/* Two sources and two destinations occur if two ranks each reduce half of a message and store the
 * sum in both ranks' memory. Half of the cache lines then lie in the other core's cache, and the
 * time depends on how many of these lines are requested at once. Three measures reduce the time
 * (results/notes/kernels.md):
 *
 * 1. The kernels prefetch the lines of source `remote` AHEAD bytes before their use. They do not
 * prefetch beyond the end of the arrays, because the other rank works on the memory after them.
 * Arrays of LONG_BYTES and more are prefetched only if the hardware prefetcher falls behind
 * (prefetcher_lags).
 *
 * 2. If the hardware prefetcher falls behind, arrays of at least PAIRED_BYTES are divided into two
 * ranges, and the kernels take a vector from each in turn.
 *
 * 3. The distance between these two ranges is never a multiple of 4 KiB (ALIAS_BYTES), because
 * accesses whose addresses agree in the low twelve bits delay each other. */
#define AHEAD        ((size_t)1 << 10)
#define PAIRED_BYTES ((size_t)16 << 10)
#define LONG_BYTES   ((size_t)64 << 10)
#define ALIAS_BYTES  ((size_t)4 << 10)

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

INLINE v_f32 divide_f32(v_f32 a, struct ddp_finish f)
{
    if (f.how == DDP_FINISH_MULTIPLY)
        return a * (float)f.scale;
    return f.how == DDP_FINISH_DIVIDE ? a / (float)f.scale : a;
}

INLINE v_f64 divide_f64(v_f64 a, struct ddp_finish f)
{
    if (f.how == DDP_FINISH_MULTIPLY)
        return a * f.scale;
    return f.how == DDP_FINISH_DIVIDE ? a / f.scale : a;
}

INLINE v_f64 select_f64(v_u64 mask, v_f64 yes, v_f64 no)
{
    return (v_f64)((mask & (v_u64)yes) | (~mask & (v_u64)no));
}

INLINE v_f64 canonical_f64(v_f64 a)
{
    return select_f64((v_u64)(a == a), a, (v_f64)((v_u64){0} + 0x7ff8000000000000u));
}

/* A vector of accumulators, in the member that acc_type() determines. The compiler removes the
 * other members. If the struct had a single member that is cast to other vector types, GCC would
 * copy registers in the loops over the sources (results/notes/kernels.md). */
typedef struct {
    v_f32 f32;
    v_f64 f64; /* also holds 64-bit integers; with a fifth member GCC would copy the struct */
    v_u32 u32;
    v_u8 u8;
} v_acc;

/* Returns whether the kernel computes an exact average of integers. The accumulators are floats, in
 * which the sum is exact: |sum| is at most 2^40 in f64, and below 2^24 in f32. The rounding error
 * of the quotient is smaller than its distance to the next integer, so truncation gives the exact
 * result. The sums of 64-bit integers wrap around, so their averages are not exact. */
INLINE bool is_integer_mean(enum ddp_dtype dtype, enum ddp_op op)
{
    return op == DDP_AVG && ddp_dtype_is_integer(dtype) && ddp_dtypes[dtype].size < 8;
}

INLINE enum ddp_dtype acc_type(enum ddp_dtype dtype, enum ddp_op op)
{
    if (is_integer_mean(dtype, op))
        return ddp_dtypes[dtype].size == 4 ? DDP_F64 : DDP_F32;
    return ddp_dtype_is_narrow(dtype) ? DDP_F32 : dtype;
}

/* Returns the bytes in memory of the elements that one vector of accumulators holds. */
INLINE size_t step_bytes(enum ddp_dtype dtype, enum ddp_op op)
{
    return VB * ddp_dtypes[dtype].size / ddp_dtypes[acc_type(dtype, op)].size;
}

/* Converts half a vector of u32 to f64. The OR gives the bits of 2^52 + x. Then 2^52 is subtracted.
 */
INLINE v_f64 widen_u32(const unsigned char *p)
{
    v_u32h half;
    memcpy(&half, p, sizeof(half));
    const v_u64 x = __builtin_convertvector(half, v_u64) | 0x4330000000000000u;
    return (v_f64)x - 0x1p52;
}

/* Converts 8-bit elements to f32. */
INLINE v_f32 widen_quarter(raw_quarter quarter, enum ddp_dtype dtype)
{
    if (!ddp_dtype_is_integer(dtype))
        return widen_fp8(quarter, dtype);
    const v_i32 x = dtype == DDP_I8 ? __builtin_convertvector((v_i8q)quarter, v_i32)
                                    : __builtin_convertvector(quarter, v_i32);
    return __builtin_convertvector(x, v_f32);
}

INLINE raw_quarter narrow_quarter(v_f32 a, enum ddp_dtype dtype)
{
    if (!ddp_dtype_is_integer(dtype))
        return narrow_fp8(a, dtype);
    return (raw_quarter) __builtin_convertvector(__builtin_convertvector(a, v_i32), raw_quarter);
}

/* Loads step_bytes() bytes from p and widens the elements to accumulators. */
INLINE v_acc load_acc(const unsigned char *p, enum ddp_dtype dtype, enum ddp_op op)
{
    v_acc a = {0};
    raw_half half;
    raw_quarter quarter;
    if (acc_type(dtype, op) == dtype) {
        if (ddp_dtypes[dtype].size == 8)
            memcpy(&a.f64, p, VB);
        else if (dtype == DDP_F32)
            memcpy(&a.f32, p, VB);
        else if (ddp_dtypes[dtype].size == 4)
            memcpy(&a.u32, p, VB);
        else
            memcpy(&a.u8, p, VB);
    } else if (step_bytes(dtype, op) == VB / 4) {
        memcpy(&quarter, p, sizeof(quarter));
        a.f32 = widen_quarter(quarter, dtype);
    } else if (ddp_dtypes[dtype].size == 4) {
        a.f64 = dtype == DDP_I32 ? widen_i32(p) : widen_u32(p);
    } else {
        memcpy(&half, p, sizeof(half));
        a.f32 = dtype == DDP_F16 ? widen_f16(half) : widen_bf16(half);
    }
    return a;
}

/* Narrows accumulators to elements and stores step_bytes() bytes at p. */
INLINE void store_acc(unsigned char *p, v_acc a, enum ddp_dtype dtype, enum ddp_op op)
{
    raw_half half;
    if (acc_type(dtype, op) == dtype) {
        if (ddp_dtypes[dtype].size == 8)
            memcpy(p, &a.f64, VB);
        else if (dtype == DDP_F32)
            memcpy(p, &a.f32, VB);
        else if (ddp_dtypes[dtype].size == 4)
            memcpy(p, &a.u32, VB);
        else
            memcpy(p, &a.u8, VB);
        return;
    }
    if (step_bytes(dtype, op) == VB / 4) {
        const raw_quarter quarter = narrow_quarter(a.f32, dtype);
        memcpy(p, &quarter, sizeof(quarter));
        return;
    }
    if (dtype == DDP_I32)
        half = (raw_half) __builtin_convertvector(a.f64, v_i32h);
    else if (dtype == DDP_U32)
        half = (raw_half) __builtin_convertvector(a.f64, v_u32h);
    else
        half = dtype == DDP_F16 ? narrow_f16(a.f32) : narrow_bf16(a.f32);
    memcpy(p, &half, sizeof(half));
}

INLINE v_f32 combine_f32(v_f32 a, v_f32 b, enum ddp_op op)
{
    /* The condition a != a selects a if a is NaN. If b is NaN, the comparison is false, which
     * selects b. */
    if (op == DDP_MIN || op == DDP_MAX)
        return select_f32((v_i32)((op == DDP_MIN ? a < b : a > b) | (a != a)), a, b);
    return op == DDP_PROD ? a * b : a + b;
}

INLINE v_f64 combine_f64(v_f64 a, v_f64 b, enum ddp_op op)
{
    if (op == DDP_MIN || op == DDP_MAX)
        return select_f64((v_u64)((op == DDP_MIN ? a < b : a > b) | (a != a)), a, b);
    return op == DDP_PROD ? a * b : a + b;
}

/* Defines combine_<name> for an integer type. bits: a vector type with unsigned elements. type: the
 * vector type whose elements have the integer type. */
#define COMBINE_INTEGERS(name, bits, type)                                                         \
    INLINE bits combine_##name(bits a, bits b, enum ddp_op op)                                     \
    {                                                                                              \
        const bits less = (bits)((type)a < (type)b), more = (bits)((type)a > (type)b);             \
        const bits mask = op == DDP_MIN ? less : more;                                             \
        if (op == DDP_MIN || op == DDP_MAX)                                                        \
            return (mask & a) | (~mask & b);                                                       \
        return op == DDP_PROD ? a * b : a + b;                                                     \
    }
COMBINE_INTEGERS(i8, v_u8, v_i8)
COMBINE_INTEGERS(u8, v_u8, v_u8)
COMBINE_INTEGERS(i32, v_u32, v_i32)
COMBINE_INTEGERS(u32, v_u32, v_u32)
COMBINE_INTEGERS(i64, v_u64, v_i64)
COMBINE_INTEGERS(u64, v_u64, v_u64)

INLINE v_acc combine(v_acc a, v_acc b, enum ddp_dtype dtype, enum ddp_op op)
{
    switch (acc_type(dtype, op)) {
    case DDP_F64:
        a.f64 = combine_f64(a.f64, b.f64, op);
        return a;
    case DDP_I32:
        a.u32 = combine_i32(a.u32, b.u32, op);
        return a;
    case DDP_U32:
        a.u32 = combine_u32(a.u32, b.u32, op);
        return a;
    case DDP_I8:
        a.u8 = combine_i8(a.u8, b.u8, op);
        return a;
    case DDP_U8:
        a.u8 = combine_u8(a.u8, b.u8, op);
        return a;
    case DDP_I64:
        a.f64 = (v_f64)combine_i64((v_u64)a.f64, (v_u64)b.f64, op);
        return a;
    case DDP_U64:
        a.f64 = (v_f64)combine_u64((v_u64)a.f64, (v_u64)b.f64, op);
        return a;
    default:
        a.f32 = combine_f32(a.f32, b.f32, op);
        return a;
    }
}

INLINE v_acc finish(v_acc a, enum ddp_dtype dtype, enum ddp_op op, struct ddp_finish f)
{
    const bool is_float = !is_integer_mean(dtype, op);
    if (acc_type(dtype, op) == DDP_F64) {
        a.f64 = divide_f64(a.f64, f);
        a.f64 = is_float ? canonical_f64(a.f64) : a.f64;
    } else if (acc_type(dtype, op) == DDP_F32) {
        a.f32 = divide_f32(a.f32, f);
        a.f32 = is_float ? canonical(a.f32) : a.f32;
    } else if (op == DDP_AVG && acc_type(dtype, op) == DDP_I64) {
        a.f64 = (v_f64)((v_i64)a.f64 / (int64_t)f.divisor);
    } else if (op == DDP_AVG && acc_type(dtype, op) == DDP_U64) {
        a.f64 = (v_f64)((v_u64)a.f64 / (uint64_t)f.divisor);
    }
    return a;
}

INLINE v_acc load_part(const void *src, size_t at, size_t bytes, enum ddp_dtype dtype,
                       enum ddp_op op)
{
    const raw_full part = vec_load_part((const unsigned char *)src + at, bytes);
    return load_acc((const unsigned char *)&part, dtype, op);
}

/* Reduces the `bytes` bytes at offset `at`, which are less than a vector. */
INLINE void reduce_part(const struct ddp_reduce *r, size_t at, size_t bytes, struct ddp_finish f)
{
    v_acc a = load_part(r->src[0], at, bytes, r->dtype, r->op);
    for (int k = 1; k < r->src_count; k++)
        a = combine(a, load_part(r->src[k], at, bytes, r->dtype, r->op), r->dtype, r->op);
    raw_full part = {0};
    store_acc((unsigned char *)&part, finish(a, r->dtype, r->op, f), r->dtype, r->op);
    for (int d = 0; d < r->dst_count; d++)
        vec_store_part((unsigned char *)r->dst[d] + at, part, bytes);
}

/* Reduces `vectors` whole vectors (at most TILE) at offset `at`. The pragmas make GCC unroll the
 * loops before it splits v_acc into its members. Without the pragmas, GCC stores the unused members
 * to memory in some kernels (results/notes/kernels.md). */
INLINE void reduce_tile(const struct ddp_reduce *r, size_t at, int vectors, struct ddp_finish f)
{
    const size_t step = step_bytes(r->dtype, r->op);
    v_acc a[TILE];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        a[v] = load_acc((const unsigned char *)r->src[0] + at + v * step, r->dtype, r->op);
    for (int k = 1; k < r->src_count; k++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const unsigned char *from = (const unsigned char *)r->src[k] + at + v * step;
            a[v] = combine(a[v], load_acc(from, r->dtype, r->op), r->dtype, r->op);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        a[v] = finish(a[v], r->dtype, r->op, f);
    for (int d = 0; d < r->dst_count; d++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            store_acc((unsigned char *)r->dst[d] + at + v * step, a[v], r->dtype, r->op);
    }
}

/* Divides the bytes from `at` to `bytes` into two ranges and reduces the ranges side by side. Up to
 * 8,191 bytes at the end are in neither range. Returns the offset at which the second range ends.
 * The call has two sources and two destinations. These counts are constants here, so the compiler
 * unrolls the loops. */
INLINE size_t reduce_paired(const struct ddp_reduce *r, size_t at, size_t bytes,
                            struct ddp_finish f)
{
    const size_t step = step_bytes(r->dtype, r->op), half = paired_distance(bytes - at);
    struct ddp_reduce two = *r;
    two.src_count = two.dst_count = 2;
    for (const size_t end = at + half; at != end; at += step) {
        if (end - at > AHEAD) {
            ddp_prefetch(r->src[r->remote], at + AHEAD, step);
            ddp_prefetch(r->src[r->remote], at + half + AHEAD, step);
        }
        reduce_tile(&two, at, 1, f);
        reduce_tile(&two, at + half, 1, f);
    }
    return at + half;
}

INLINE void reduce_all(const struct ddp_reduce *r, struct ddp_finish f)
{
    const size_t elem = ddp_dtypes[r->dtype].size, bytes = r->count * elem;
    const size_t step = step_bytes(r->dtype, r->op), tile = TILE * step;
    const size_t pair_tile = (size_t)PAIR_TILE(step) * step;
    const bool pair = r->src_count == 2 && r->dst_count == 2;
    size_t at = bytes > HEAD_STEPS * step ? head_bytes(r->dst[0], step, elem) : 0;
    if (at != 0)
        reduce_part(r, 0, at, f);
    const bool ahead = pair && (bytes - at < LONG_BYTES || prefetcher_lags());
    if (pair && bytes - at >= PAIRED_BYTES && prefetcher_lags())
        at = reduce_paired(r, at, bytes, f);
    if (ahead && bytes - at >= AHEAD)
        ddp_prefetch(r->src[r->remote], at, AHEAD);
    for (; ahead && bytes - at >= pair_tile; at += pair_tile) {
        if (bytes - at >= AHEAD + pair_tile)
            ddp_prefetch(r->src[r->remote], at + AHEAD, pair_tile);
        reduce_tile(r, at, PAIR_TILE(step), f);
    }
    for (; bytes - at >= tile; at += tile)
        reduce_tile(r, at, TILE, f);
    for (; bytes - at >= step; at += step)
        reduce_tile(r, at, 1, f);
    if (at != bytes)
        reduce_part(r, at, bytes - at, f);
}

/* Reduces with a constant dtype and a constant operation. */
INLINE void reduce_as(const struct ddp_reduce *r, enum ddp_dtype dtype, enum ddp_op op)
{
    struct ddp_reduce fixed = *r;
    fixed.dtype = dtype;
    fixed.op = op;
    reduce_all(&fixed, ddp_finish_of(r->divisor));
}

#define KERNEL(name, dtype, op)                                                                    \
    OUT_OF_LINE void name(const struct ddp_reduce *r)                                              \
    {                                                                                              \
        reduce_as(r, dtype, op);                                                                   \
    }
#define KERNELS(name, dtype)                                                                       \
    KERNEL(name##_sum, dtype, DDP_SUM)                                                             \
    KERNEL(name##_prod, dtype, DDP_PROD)                                                           \
    KERNEL(name##_min, dtype, DDP_MIN)                                                             \
    KERNEL(name##_max, dtype, DDP_MAX)

KERNELS(f32, DDP_F32)
KERNELS(f16, DDP_F16)
KERNELS(bf16, DDP_BF16)
KERNELS(f64, DDP_F64)
KERNELS(i32, DDP_I32)
KERNELS(u8, DDP_U8)
KERNELS(i8, DDP_I8)
KERNELS(u32, DDP_U32)
KERNELS(i64, DDP_I64)
KERNELS(u64, DDP_U64)
KERNELS(e4m3, DDP_FP8_E4M3)
KERNELS(e5m2, DDP_FP8_E5M2)
KERNEL(i32_mean, DDP_I32, DDP_AVG)
KERNEL(u8_mean, DDP_U8, DDP_AVG)
KERNEL(i8_mean, DDP_I8, DDP_AVG)
KERNEL(u32_mean, DDP_U32, DDP_AVG)
KERNEL(i64_mean, DDP_I64, DDP_AVG)
KERNEL(u64_mean, DDP_U64, DDP_AVG)

/* Kernels for the most frequent shapes: sums of two arrays into one or two arrays, and of four
 * arrays into four arrays. With constant counts the compiler keeps every pointer in a register and
 * unrolls the loops. The pointers are copied to local arrays, so that the compiler knows that no
 * store changes the pointers. */
INLINE void sum_fixed(const struct ddp_reduce *r, enum ddp_dtype dtype, int src_count,
                      int dst_count)
{
    const void *src[4];
    void *dst[4];
    struct ddp_reduce fixed = *r;
    memcpy(src, r->src, (size_t)src_count * sizeof(*src));
    memcpy(dst, r->dst, (size_t)dst_count * sizeof(*dst));
    fixed.src = src;
    fixed.dst = dst;
    fixed.src_count = src_count;
    fixed.dst_count = dst_count;
    fixed.dtype = dtype;
    fixed.op = DDP_SUM;
    const struct ddp_finish f = ddp_finish_of(r->divisor);
    if (f.how == DDP_FINISH_NONE)
        reduce_all(&fixed, (struct ddp_finish){DDP_FINISH_NONE, 1, 1});
    else
        reduce_all(&fixed, f);
}

#define SUM_FIXED(name, dtype, src_count, dst_count)                                               \
    OUT_OF_LINE void name##_sum_##src_count##_##dst_count(const struct ddp_reduce *r)              \
    {                                                                                              \
        sum_fixed(r, dtype, src_count, dst_count);                                                 \
    }
#define SUMS(name, dtype)                                                                          \
    SUM_FIXED(name, dtype, 2, 1)                                                                   \
    SUM_FIXED(name, dtype, 2, 2)                                                                   \
    SUM_FIXED(name, dtype, 4, 4)                                                                   \
    static void name##_sum_any(const struct ddp_reduce *r)                                         \
    {                                                                                              \
        sum_any(r, name##_sum_2_1, name##_sum_2_2, name##_sum_4_4, name##_sum);                    \
    }

typedef void kernel(const struct ddp_reduce *r);

/* Calls the kernel for the numbers of sources and destinations. */
INLINE void sum_any(const struct ddp_reduce *r, kernel *sum_2_1, kernel *sum_2_2, kernel *sum_4_4,
                    kernel *sum)
{
    const int nsrc = r->src_count, ndst = r->dst_count;
    if (nsrc == 2 && ndst == 1)
        sum_2_1(r);
    else if (nsrc == 2 && ndst == 2)
        sum_2_2(r);
    else if (nsrc == 4 && ndst == 4)
        sum_4_4(r);
    else
        sum(r);
}

SUMS(f32, DDP_F32)
SUMS(f64, DDP_F64)

void LEVEL(ddp_reduce)(const struct ddp_reduce *r)
{
    static kernel *const table[DDP_DTYPE_COUNT][DDP_OP_COUNT] = {
        [DDP_F32] = {f32_sum_any, f32_sum_any, f32_prod, f32_min, f32_max},
        [DDP_F16] = {f16_sum, f16_sum, f16_prod, f16_min, f16_max},
        [DDP_BF16] = {bf16_sum, bf16_sum, bf16_prod, bf16_min, bf16_max},
        [DDP_F64] = {f64_sum_any, f64_sum_any, f64_prod, f64_min, f64_max},
        [DDP_I32] = {i32_sum, i32_mean, i32_prod, i32_min, i32_max},
        [DDP_U8] = {u8_sum, u8_mean, u8_prod, u8_min, u8_max},
        [DDP_I8] = {i8_sum, i8_mean, i8_prod, i8_min, i8_max},
        [DDP_U32] = {u32_sum, u32_mean, u32_prod, u32_min, u32_max},
        [DDP_I64] = {i64_sum, i64_mean, i64_prod, i64_min, i64_max},
        [DDP_U64] = {u64_sum, u64_mean, u64_prod, u64_min, u64_max},
        [DDP_FP8_E4M3] = {e4m3_sum, e4m3_sum, e4m3_prod, e4m3_min, e4m3_max},
        [DDP_FP8_E5M2] = {e5m2_sum, e5m2_sum, e5m2_prod, e5m2_min, e5m2_max},
    };
    assert(r->src_count >= 1 && r->src_count <= DDP_REDUCE_MAX && r->dst_count >= 1);
    assert(r->remote >= 0 && r->remote < r->src_count);
    assert(r->divisor == 1 || r->op == DDP_SUM || r->op == DDP_AVG);
    if (r->count == 0)
        return;
    /* Sums that are divided need the kernels of averages, which sum small integers without
     * overflow. An average without a division is a plain sum. */
    const enum ddp_op sum = r->divisor > 1 ? DDP_AVG : DDP_SUM;
    table[r->dtype][r->op == DDP_SUM || r->op == DDP_AVG ? sum : r->op](r);
}

void LEVEL(ddp_copy_nt)(void *dst, const void *src, size_t bytes)
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
