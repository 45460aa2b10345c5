/* Compares the reduce kernels of every SIMD level, dtype, operation and shape with an
 * element-wise reference in this file, bit for bit, including NaN, infinities and denormals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "device/device.h"
#include "unit/half_ref.h"

/* The scalar kernels once more, for a CPU that the test chooses: the loop over two arrays
 * depends on the CPU's maker, and a machine has only one. */
static bool is_amd;
void ddp_reduce_chosen(const struct ddp_reduce *r);
void ddp_copy_nt_chosen(void *dst, const void *src, size_t bytes);
#define __builtin_cpu_is(maker) ((void)(maker), is_amd)
#define VB                      16
#define LEVEL(name)             name##_chosen
#include "device/cpu/kernels_cpu.inc.h"

#define SOURCES_MAX 9
#define BYTES_MAX   (76 << 10)
#define SHORT_MAX   (8 << 10)
#define GUARD       0xa5

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Returns random bits; every fourth value is an extreme one. */
static uint64_t random_value(enum ddp_dtype dtype)
{
    static const float floats[] = {0.0f,      -0.0f,     INFINITY, -INFINITY, NAN,     1.0f,
                                   0x1p-149f, 0x1p-127f, 0x1p127f, 65504.0f,  0x1p-24f};
    static const uint32_t nans[] = {0x7f800001u, 0xffc00000u, 0xff812345u};
    const uint64_t r = random_bits();
    const uint64_t pick = random_bits() % (DDP_COUNT_OF(floats) + DDP_COUNT_OF(nans));
    uint32_t word;
    float value;

    if (r % 4 != 0 || ddp_dtypes[dtype].kind == DDP_UNSIGNED)
        return random_bits();
    if (ddp_dtypes[dtype].kind == DDP_SIGNED)
        return ((uint64_t)1 << ddp_dtypes[dtype].digits) - (pick % 2);
    if (pick >= DDP_COUNT_OF(floats))
        word = nans[pick - DDP_COUNT_OF(floats)];
    else
        memcpy(&word, &floats[pick], sizeof(word));
    memcpy(&value, &word, sizeof(value));
    if (dtype == DDP_F64) {
        const double wide = value;
        uint64_t bits;
        memcpy(&bits, &wide, sizeof(bits));
        return bits;
    }
    if (ddp_dtypes[dtype].size == 1)
        return half_encode(half_of(dtype), (double)value);
    if (dtype == DDP_F16)
        return half_encode(half_f16, (double)value) | (isnan(value) ? r & 0x81ff : 0);
    return dtype == DDP_BF16 ? word >> 16 : word;
}

static uint64_t element(const void *array, enum ddp_dtype dtype, size_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const unsigned char *)array + i * ddp_dtype_size(dtype), ddp_dtype_size(dtype));
    return bits;
}

/* Computes a op b in f32 and in f64. volatile: each operation is rounded to its type, in this
 * order. */
static float reference_f32(enum ddp_op op, float a, float b)
{
    volatile float r = op == DDP_PROD ? a * b : a + b;
    if (op == DDP_MIN || op == DDP_MAX) {
        if (isnan(a) || isnan(b))
            return NAN;
        return (op == DDP_MIN ? a < b : a > b) ? a : b;
    }
    return r;
}

static double reference_f64(enum ddp_op op, double a, double b)
{
    volatile double r = op == DDP_PROD ? a * b : a + b;
    if (op == DDP_MIN || op == DDP_MAX) {
        if (isnan(a) || isnan(b))
            return (double)NAN;
        return (op == DDP_MIN ? a < b : a > b) ? a : b;
    }
    return r;
}

/* Wraps a value to the integer type. */
static int64_t wrap(enum ddp_dtype dtype, int64_t value)
{
    const int unused = 64 - 8 * (int)ddp_dtype_size(dtype);
    const uint64_t high = (uint64_t)value << unused;
    return ddp_dtypes[dtype].kind == DDP_SIGNED ? (int64_t)high >> unused
                                                : (int64_t)(high >> unused);
}

/* Returns whether x < y in the type. Both are wrapped to it. */
static bool less(enum ddp_dtype dtype, int64_t x, int64_t y)
{
    return ddp_dtypes[dtype].kind == DDP_SIGNED ? x < y : (uint64_t)x < (uint64_t)y;
}

/* Sums of 64 bits wrap around by the conversions to uint64_t. Other sums do not reach 64 bits. */
static uint64_t reference_int(const struct ddp_reduce *r, size_t i)
{
    int64_t value = 0;

    for (int k = 0; k < r->src_count; k++) {
        const int64_t x = wrap(r->dtype, (int64_t)element(r->src[k], r->dtype, i));
        if (k == 0)
            value = x;
        else if (r->op == DDP_PROD) /* wrapped at each step */
            value = wrap(r->dtype, (int64_t)((uint64_t)value * (uint64_t)x));
        else if (r->op == DDP_MIN || r->op == DDP_MAX)
            value = (r->op == DDP_MIN) == less(r->dtype, x, value) ? x : value;
        else
            value = (int64_t)((uint64_t)value + (uint64_t)x);
    }
    if (r->dtype == DDP_U64)
        value = (int64_t)((uint64_t)value / (uint64_t)r->divisor);
    else
        value = wrap(r->dtype, value / r->divisor);
    return (uint64_t)value & (~(uint64_t)0 >> (64 - 8 * ddp_dtype_size(r->dtype)));
}

static uint64_t reference(const struct ddp_reduce *r, size_t i)
{
    uint64_t bits = 0;

    if (ddp_dtype_is_integer(r->dtype))
        return reference_int(r, i);
    if (r->dtype == DDP_F64) {
        double value = 0;
        for (int k = 0; k < r->src_count; k++) {
            const uint64_t word = element(r->src[k], DDP_F64, i);
            double x;
            memcpy(&x, &word, sizeof(x));
            value = k == 0 ? x : reference_f64(r->op, value, x);
        }
        value /= r->divisor;
        memcpy(&bits, &value, sizeof(value));
        return isnan(value) ? 0x7ff8000000000000u : bits;
    }
    float value = 0;
    for (int k = 0; k < r->src_count; k++) {
        const uint32_t word = (uint32_t)element(r->src[k], r->dtype, i);
        float x;
        if (r->dtype == DDP_F32)
            memcpy(&x, &word, sizeof(x));
        else
            x = (float)half_decode(half_of(r->dtype), (uint16_t)word);
        value = k == 0 ? x : reference_f32(r->op, value, x);
    }
    value /= (float)r->divisor;
    if (r->dtype != DDP_F32)
        return half_encode(half_of(r->dtype), (double)value);
    memcpy(&bits, &value, sizeof(value));
    return isnan(value) ? 0x7fc00000u : bits;
}

struct reducer {
    const char *name;
    void (*reduce)(const struct ddp_reduce *r);
};

/* One call in separate memory. in_place: the destination d is the source d. same_offsets: all
 * arrays start at the same offset in a cache line. */
struct trial {
    const struct reducer *by;
    enum ddp_dtype dtype;
    enum ddp_op op;
    int nsrc, ndst, divisor;
    size_t count;
    bool in_place, same_offsets;
};

static unsigned char arena[2 * SOURCES_MAX][BYTES_MAX + 2 * 128] __attribute__((aligned(64)));

static void run_trial(const struct trial *t)
{
    const size_t elem = ddp_dtype_size(t->dtype);
    static uint64_t expected[BYTES_MAX];
    const void *src[SOURCES_MAX];
    void *dst[SOURCES_MAX];
    const size_t shared_offset = random_bits() % 32;
    const struct ddp_reduce r = {
        .dst = dst,
        .dst_count = t->ndst,
        .src = src,
        .src_count = t->nsrc,
        .count = t->count,
        .dtype = t->dtype,
        .op = t->op,
        .divisor = t->divisor,
        .remote = (int)(random_bits() % (uint64_t)t->nsrc),
    };

    memset(arena, GUARD, sizeof(arena));
    for (int k = 0; k < t->nsrc; k++) {
        unsigned char *at =
            arena[k] + 64 + (t->same_offsets ? shared_offset : random_bits() % 32) * elem % 64;
        src[k] = at;
        for (size_t i = 0; i < t->count; i++) {
            const uint64_t bits = random_value(t->dtype);
            memcpy(at + i * elem, &bits, elem);
        }
    }
    for (int d = 0; d < t->ndst; d++)
        dst[d] = t->in_place && d < t->nsrc
                     ? (void *)(uintptr_t)src[d]
                     : arena[SOURCES_MAX + d] + 64 +
                           (t->same_offsets ? shared_offset : random_bits() % 32) * elem % 64;
    for (size_t i = 0; i < t->count; i++)
        expected[i] = reference(&r, i);

    t->by->reduce(&r);

    for (int d = 0; d < t->ndst; d++) {
        const unsigned char *at = dst[d];
        for (size_t i = 0; i < t->count; i++)
            if (element(at, t->dtype, i) != expected[i])
                fail_msg("%s %s %s, %d sources, %d destinations, divisor %d, count %zu: element "
                         "%zu of destination %d is %llx, expected %llx",
                         t->by->name, ddp_dtype_name(t->dtype), ddp_op_name(t->op), t->nsrc,
                         t->ndst, t->divisor, t->count, i, d,
                         (unsigned long long)element(at, t->dtype, i),
                         (unsigned long long)expected[i]);
        assert_int_equal(at[-1], GUARD);
        assert_int_equal(at[t->count * elem], GUARD);
    }
}

static void every_dtype_op_shape(const struct reducer *by)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 511, 1009};
    static const int shapes[][2] = {{1, 1}, {2, 1}, {2, 2}, {3, 2}, {4, 4}, {4, 1}, {9, 9}, {8, 3}};
    for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DDP_OP_COUNT; op++)
            for (size_t s = 0; s < DDP_COUNT_OF(shapes); s++)
                for (size_t c = 0; c < DDP_COUNT_OF(counts); c++) {
                    struct trial t = {.by = by,
                                      .dtype = (enum ddp_dtype)dtype,
                                      .op = (enum ddp_op)op,
                                      .nsrc = shapes[s][0],
                                      .ndst = shapes[s][1],
                                      .divisor = op == DDP_AVG ? shapes[s][0] : 1,
                                      .count = counts[c],
                                      .in_place = random_bits() % 2,
                                      .same_offsets = random_bits() % 2};
                    if (t.count * ddp_dtype_size(t.dtype) <= SHORT_MAX)
                        run_trial(&t);
                }
}

/* Two sources and two destinations, long enough for prefetching and, on CPUs whose prefetcher
 * lags, for a loop over two ranges at once. Each type and operation has every second length. */
static void long_paired(const struct reducer *by)
{
    static const size_t bytes[] = {9000,     16 << 10,       (16 << 10) + 8, (20 << 10) - 64,
                                   20744,    24 << 10,       33 << 10,       (64 << 10) - 256,
                                   64 << 10, (64 << 10) + 8, 72 << 10};
    for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DDP_OP_COUNT; op++)
            for (size_t b = (size_t)(dtype + op) % 2; b < DDP_COUNT_OF(bytes); b += 2) {
                const size_t elem = ddp_dtype_size((enum ddp_dtype)dtype);
                const struct trial t = {.by = by,
                                        .dtype = (enum ddp_dtype)dtype,
                                        .op = (enum ddp_op)op,
                                        .nsrc = 2,
                                        .ndst = 2,
                                        .divisor = op == DDP_AVG ? 2 : 1,
                                        .count = bytes[b] / elem + random_bits() % 8,
                                        .in_place = random_bits() % 2,
                                        .same_offsets = random_bits() % 2};
                run_trial(&t);
            }
}

/* Every number of sources and destinations near the shapes that have kernels of their own. A kernel
 * for another shape would leave destinations as they are or add too few sources. */
static void every_shape(const struct reducer *by)
{
    enum { SHAPE_SOURCES = 20, COUNT = 3 };
    static float from[SHAPE_SOURCES][COUNT], to[DDP_REDUCE_MAX + 1][COUNT];
    const void *src[SHAPE_SOURCES];
    void *dst[DDP_REDUCE_MAX];
    for (int k = 0; k < SHAPE_SOURCES; k++) {
        src[k] = from[k];
        for (int i = 0; i < COUNT; i++)
            from[k][i] = (float)((k + 1) * (i + 1));
    }
    for (int d = 0; d < DDP_REDUCE_MAX; d++)
        dst[d] = to[d];
    for (int nsrc = 1; nsrc <= SHAPE_SOURCES; nsrc++)
        for (int ndst = 1; ndst <= DDP_REDUCE_MAX; ndst++) {
            const struct ddp_reduce r = {.dst = dst,
                                         .dst_count = ndst,
                                         .src = src,
                                         .src_count = nsrc,
                                         .count = COUNT,
                                         .dtype = DDP_F32,
                                         .op = DDP_SUM,
                                         .divisor = 1};
            memset(to, 0, sizeof(to));
            by->reduce(&r);
            for (int d = 0; d <= DDP_REDUCE_MAX; d++)
                for (int i = 0; i < COUNT; i++) {
                    const int sum = d < ndst ? nsrc * (nsrc + 1) / 2 * (i + 1) : 0;
                    if (to[d][i] != (float)sum)
                        fail_msg("%s, %d sources, %d destinations: element %d of destination %d "
                                 "is %g, expected %d",
                                 by->name, nsrc, ndst, i, d, (double)to[d][i], sum);
                }
        }
}

static void every_trial(enum ddp_simd level)
{
    if (level > ddp_cpu_best_simd())
        skip();
    const struct reducer by = {ddp_simd_name(level), ddp_device_cpu(level)->reduce};
    every_shape(&by);
    every_dtype_op_shape(&by);
    long_paired(&by);
}

static void test_scalar(void **state)
{
    (void)state;
    every_trial(DDP_SIMD_SCALAR);
}

static void test_avx2(void **state)
{
    (void)state;
    every_trial(DDP_SIMD_AVX2);
}

static void test_avx512(void **state)
{
    (void)state;
    every_trial(DDP_SIMD_AVX512);
}

/* The loops of AMD's and of other CPUs, at the scalar level. */
static void test_makers(void **state)
{
    (void)state;
    const struct reducer amd = {"scalar, AMD's", ddp_reduce_chosen};
    const struct reducer other = {"scalar, not AMD's", ddp_reduce_chosen};
    is_amd = true;
    long_paired(&amd);
    is_amd = false;
    long_paired(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
        cmocka_unit_test(test_makers),
    };
    return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
