/* Special cases of the CPU device: every 16-bit value, exact means of integers, the most sources
 * of a call, copies at every alignment, and the table of devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"
#include "unit/half_ref.h"

#define GUARD 0xa5

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* All 65536 values of a 16-bit type, except NaNs, are kept unchanged. Sums of neighbours and of
 * random pairs round to nearest even. */
static void all_halves(enum ddp_dtype dtype, struct half_format format)
{
    static uint16_t in[2][65536], out[65536];
    const void *src[2] = {in[0], in[1]};
    void *dst[1] = {out};

    for (int i = 0; i < 65536; i++) {
        in[0][i] = (uint16_t)i;
        in[1][i] = (uint16_t)(i % 2 ? random_bits() : (uint64_t)i + 1);
    }
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        for (int n = 1; n <= 2; n++) {
            const struct ddp_reduce r = {dst, 1, src, n, 65536, dtype, DDP_SUM, 1, 0};
            ddp_device_cpu((enum ddp_simd)level)->reduce(&r);
            for (int i = 0; i < 65536; i++) {
                const double a = half_decode(format, in[0][i]);
                const double sum = n == 1 ? a : a + half_decode(format, in[1][i]);
                if (out[i] != half_encode(format, (double)(float)sum))
                    fail_msg("%s level %d, %d sources: %04x and %04x give %04x, expected %04x",
                             ddp_dtype_name(dtype), level, n, in[0][i], in[1][i], out[i],
                             half_encode(format, (double)(float)sum));
            }
        }
}

static void test_all_f16(void **state)
{
    (void)state;
    all_halves(DDP_F16, half_f16);
}

static void test_all_bf16(void **state)
{
    (void)state;
    all_halves(DDP_BF16, half_bf16);
}

/* Means of integers are exact even if the sum exceeds the type. */
static void test_integer_mean(void **state)
{
    (void)state;
    int32_t a[3] = {INT32_MAX, INT32_MIN, -7}, b[3] = {INT32_MAX, INT32_MIN, 2}, out[3];
    uint8_t c[2] = {255, 254}, d[2] = {255, 255}, small[2];
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        const struct ddp_device *device = ddp_device_cpu((enum ddp_simd)level);
        const struct ddp_reduce wide = {
            (void *[]){out}, 1, (const void *[]){a, b}, 2, 3, DDP_I32, DDP_AVG, 2, 0};
        device->reduce(&wide);
        assert_int_equal(out[0], INT32_MAX);
        assert_int_equal(out[1], INT32_MIN);
        assert_int_equal(out[2], -2); /* -5 / 2, toward zero */
        const struct ddp_reduce bytes = {
            (void *[]){small}, 1, (const void *[]){c, d}, 2, 2, DDP_U8, DDP_AVG, 2, 0};
        device->reduce(&bytes);
        assert_int_equal(small[0], 255);
        assert_int_equal(small[1], 254);
    }
}

/* With the most sources a call allows, the sum is accumulated in f32 and rounded once. */
static void test_most_sources(void **state)
{
    (void)state;
    static uint16_t in[37], out[37];
    const void *src[DDP_REDUCE_MAX];
    for (int i = 0; i < 37; i++)
        in[i] = half_encode(half_f16, 1.0 / (i + 3));
    for (int k = 0; k < DDP_REDUCE_MAX; k++)
        src[k] = in;
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        const struct ddp_reduce r = {(void *[]){out}, 1, src, DDP_REDUCE_MAX, 37, DDP_F16, DDP_AVG,
                                     DDP_REDUCE_MAX,  0};
        ddp_device_cpu((enum ddp_simd)level)->reduce(&r);
        assert_memory_equal(out, in, sizeof(in)); /* the sum of 256 equal values is exact in f32 */
    }
}

static void test_copies(void **state)
{
    (void)state;
    static unsigned char from[70000], to[70000];
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (unsigned char)random_bits();
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        const struct ddp_device *device = ddp_device_cpu((enum ddp_simd)level);
        for (size_t bytes = 0; bytes < 66000; bytes = bytes * 5 / 4 + 1)
            for (size_t shift = 0; shift < 80; shift += 13) {
                memset(to, GUARD, sizeof(to));
                device->copy_nt(to + 64 + shift, from + 2 * shift, bytes);
                assert_memory_equal(to + 64 + shift, from + 2 * shift, bytes);
                assert_int_equal(to[63 + shift], GUARD);
                assert_int_equal(to[64 + shift + bytes], GUARD);
            }
        device->copy(to, from, sizeof(to));
        assert_memory_equal(to, from, sizeof(to));
        device->fill(to + 1, 7, 1000);
        assert_int_equal(to[0], from[0]);
        assert_int_equal(to[1], 7);
        assert_int_equal(to[1000], 7);
        assert_int_equal(to[1001], from[1001]);
    }
}

static void test_table(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_device *const *all = ddp_device_all();
    assert_non_null(all[0]);
    for (; *all != NULL; all++) {
        assert_non_null((*all)->name);
        assert_non_null((*all)->summary);
        if ((*all)->probe(&err) != 0)
            continue;
        void *block = (*all)->alloc(1000);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        (*all)->free(block, 1000);
    }
    assert_string_equal(ddp_device_cpu(DDP_SIMD_SCALAR)->name, "cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_f16),      cmocka_unit_test(test_all_bf16),
        cmocka_unit_test(test_integer_mean), cmocka_unit_test(test_most_sources),
        cmocka_unit_test(test_copies),       cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests_name("reduce cases", tests, NULL, NULL);
}
