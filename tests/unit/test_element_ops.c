/* Compares the arithmetic that the GPU's kernels share, compiled for the CPU, with the CPU's
 * kernels, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/dtype_info.h"
#include "base/mem.h"
#include "device/element_ops.h"
#include "unit/grad_inputs.h"
#include "unit/half_ref.h"

#define N ((size_t)20000)

static const struct ddp_grad_kernels *grad(void)
{
    return ddp_device_cpu(DDP_SIMD_SCALAR)->grad;
}

static float *values(enum grad_kind kind, uint64_t seed)
{
    const struct guarded whole = {(unsigned char *)ddp_calloc(N + 2 * GUARD_BYTES, 4), 0, N * 4};
    return grad_fill(&whole, kind, seed);
}

static void release(float *x)
{
    free((unsigned char *)x - GUARD_BYTES);
}

static void same(const void *a, const void *b, size_t bytes, const char *what)
{
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%s differs", what);
}

static void test_halves(void **state)
{
    static const enum ddp_dtype types[] = {DDP_F16, DDP_BF16};
    static uint16_t all[65536];
    static float wide[65536], mine[65536];
    for (int i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        grad()->widen(wide, all, 65536, types[t]);
        for (int i = 0; i < 65536; i++)
            mine[i] = ddp_half_widen(all[i], types[t]);
        same(wide, mine, sizeof(wide), "widen");
    }
}

/* The codecs of 8-bit floats: all codes, and the neighbours of each rounding boundary. */
static void test_fp8_codes(void **state)
{
    static const enum ddp_dtype types[] = {DDP_FP8_E4M3, DDP_FP8_E5M2};
    for (int t = 0; t < 2; t++) {
        const struct half_format format = half_of(types[t]);
        for (int c = 0; c < 256; c++) {
            const double wide = half_decode(format, (uint16_t)c);
            const float got = ddp_fp8_widen((uint8_t)c, types[t]);
            assert_true(isnan(wide) ? isnan(got) : (double)got == wide);
            assert_int_equal(signbit(got) != 0, c >> 7);
            if (!isnan(got))
                assert_int_equal(ddp_fp8_narrow(got, types[t]), c);
        }
        assert_int_equal(ddp_fp8_narrow(-NAN, types[t]), half_nan(format) | 0x80);
        assert_int_equal(ddp_fp8_result(-NAN, types[t]), half_nan(format));
        assert_int_equal(ddp_fp8_narrow(-1e9f, types[t]), half_beyond(format) | 0x80);
        assert_int_equal(ddp_fp8_result(-1e9f, types[t]), half_encode(format, -1e9));
    }
}

/* Every f32 whose lower 16 bits are 0, 1, 0x7fff, 0x8000, 0x8001 or 0xffff. Only these lower bits
 * can change the rounding to 8 bits. */
static void test_fp8_rounding(void **state)
{
    static const uint32_t lows[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    static const enum ddp_dtype types[] = {DDP_FP8_E4M3, DDP_FP8_E5M2};
    for (int t = 0; t < 2; t++)
        for (uint32_t high = 0; high < 65536; high++)
            for (size_t l = 0; l < DDP_COUNT_OF(lows); l++) {
                const float x = ddp_f32_from(high << 16 | lows[l]);
                if (ddp_fp8_result(x, types[t]) != half_encode(half_of(types[t]), (double)x))
                    fail_msg("%s of %a", ddp_dtype_name(types[t]), (double)x);
            }
}

/* Every pair of codes, combined by the kernels of each SIMD level and by the shared arithmetic. */
static void test_fp8_pairs(void **state)
{
    static const enum ddp_dtype types[] = {DDP_FP8_E4M3, DDP_FP8_E5M2};
    static const int divisors[] = {1, 2, 3, 7, 1000};
    static uint8_t a[65536], b[65536], got[65536], mine[65536];
    const void *const src[] = {a, b};
    void *const dst[] = {got};
    for (int i = 0; i < 65536; i++) {
        a[i] = (uint8_t)i;
        b[i] = (uint8_t)(i >> 8);
    }
    for (int t = 0; t < 2; t++)
        for (int op = 0; op < DDP_OP_COUNT; op++)
            for (size_t d = 0; d < (op <= DDP_AVG ? DDP_COUNT_OF(divisors) : 1); d++) {
                const struct ddp_finish f = ddp_finish_of(divisors[d]);
                for (int i = 0; i < 65536; i++)
                    mine[i] = ddp_fp8_result(
                        ddp_finish_f32(ddp_combine_f32(ddp_fp8_widen(a[i], types[t]),
                                                       ddp_fp8_widen(b[i], types[t]),
                                                       op == DDP_AVG ? DDP_SUM : (enum ddp_op)op),
                                       f),
                        types[t]);
                for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
                    ddp_device_cpu((enum ddp_simd)level)
                        ->reduce(&(struct ddp_reduce){.dst = dst,
                                                      .dst_count = 1,
                                                      .src = src,
                                                      .src_count = 2,
                                                      .count = 65536,
                                                      .dtype = types[t],
                                                      .op = (enum ddp_op)op,
                                                      .divisor = divisors[d]});
                    same(got, mine, sizeof(got), ddp_simd_name((enum ddp_simd)level));
                }
            }
}

static void test_narrow(void **state)
{
    static const float scales[] = {1, 1.0f / 3, 1e4f, 1e-6f}, clips[] = {0, 2.5f};
    uint16_t *wire = (uint16_t *)ddp_calloc(N, 2);
    float *left = (float *)ddp_calloc(N, 4), *added = (float *)ddp_calloc(N, 4);
    for (int kind = 0; kind < GRAD_KINDS; kind++)
        for (int c = 0; c < 16; c++) {
            const enum ddp_dtype type = c & 1 ? DDP_F16 : DDP_BF16;
            const float scale = scales[c / 4], clip = clips[c / 2 % 2];
            float *x = values((enum grad_kind)kind, 3);
            uint64_t found = 0;
            const uint64_t overflows = grad()->narrow(wire, x, N, type, scale, clip);
            grad()->narrow_residual(left, x, wire, N, type);
            memcpy(added, x, N * 4);
            grad()->widen_add(added, wire, N, type);
            for (size_t i = 0; i < N; i++) {
                const float y = ddp_narrow_value(x[i], scale, clip > 0 ? clip : INFINITY);
                found += (uint64_t)ddp_narrow_overflows(x[i], y, type);
                assert_int_equal(wire[i], ddp_half_narrow(y, type));
                assert_int_equal(bits_of(left[i]), bits_of(ddp_narrow_left(x[i], wire[i], type)));
                assert_int_equal(bits_of(added[i]),
                                 bits_of(ddp_f32_canonical(x[i] + ddp_half_widen(wire[i], type))));
            }
            assert_int_equal(found, overflows);
            release(x);
        }
    free(wire);
    free(left);
    free(added);
}

static void test_optimisers(void **state)
{
    const struct ddp_adam adam = {0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 7};
    const struct ddp_adam_factors f = ddp_adam_factors_of(&adam);
    for (int kind = 0; kind < GRAD_KINDS; kind++) {
        float *x[8];
        for (int i = 0; i < 8; i++)
            x[i] = values((enum grad_kind)kind, (uint64_t)(i % 4));
        grad()->sgd(x[0], x[1], x[3], N, 0.1f, 0.9f, 0.01f);
        for (size_t i = 0; i < N; i++)
            ddp_sgd_element(&x[4][i], &x[5][i], x[7][i], 0.1f, 0.9f, 0.01f);
        same(x[0], x[4], N * 4, "sgd: p");
        same(x[1], x[5], N * 4, "sgd: v");
        grad()->adam(x[0], x[1], x[2], x[3], N, &adam);
        for (size_t i = 0; i < N; i++)
            ddp_adam_element(&x[4][i], &x[5][i], &x[6][i], x[7][i], f);
        for (int i = 0; i < 3; i++)
            same(x[i], x[4 + i], N * 4, "adam");
        for (int i = 0; i < 8; i++)
            release(x[i]);
    }
}

/* Combines element i of three sources of random bits with the shared arithmetic. */
static float combine_float(const void *const *src, size_t i, enum ddp_dtype dtype, enum ddp_op op)
{
    float a = 0;
    for (int k = 0; k < 3; k++) {
        const float x = dtype == DDP_F32    ? ((const float *)src[k])[i]
                        : dtype == DDP_F16  ? ddp_f16_widen(((const uint16_t *)src[k])[i])
                        : dtype == DDP_BF16 ? ddp_bf16_widen(((const uint16_t *)src[k])[i])
                                            : ddp_fp8_widen(((const uint8_t *)src[k])[i], dtype);
        a = k == 0 ? x : ddp_combine_f32(a, x, op);
    }
    return a;
}

static double combine_double(const void *const *src, size_t i, enum ddp_op op)
{
    double a = ((const double *)src[0])[i];
    for (int k = 1; k < 3; k++)
        a = ddp_combine_f64(a, ((const double *)src[k])[i], op);
    return a;
}

static void combine_element(void *out, const void *const *src, size_t i, enum ddp_dtype dtype,
                            enum ddp_op op, int divisor)
{
    const struct ddp_finish f = ddp_finish_of(divisor);
    if (dtype == DDP_F64) {
        ((double *)out)[i] = ddp_f64_canonical(ddp_finish_f64(combine_double(src, i, op), f));
        return;
    }
    const float a = ddp_f32_canonical(ddp_finish_f32(combine_float(src, i, dtype, op), f));
    if (dtype == DDP_F32)
        ((float *)out)[i] = a;
    else if (ddp_dtype_size(dtype) == 2)
        ((uint16_t *)out)[i] = ddp_half_narrow(a, dtype);
    else
        ((uint8_t *)out)[i] = ddp_fp8_result(a, dtype);
}

/* Floats. The integers of the GPU are tested in gpu_cases.h. */
static void test_reduce(void **state)
{
    static const int divisors[] = {1, 3, 4};
    float *x[3];
    unsigned char *got = (unsigned char *)ddp_calloc(N, 4),
                  *mine = (unsigned char *)ddp_calloc(N, 4);
    for (int i = 0; i < 3; i++)
        x[i] = values(GRAD_BITS, (uint64_t)i);
    const void *const src[] = {x[0], x[1], x[2]};
    void *const dst[] = {got};
    for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DDP_OP_COUNT; op++)
            for (int d = 0; d < 3; d++) {
                if (ddp_dtypes[dtype].kind != DDP_FLOAT || (divisors[d] > 1 && op > DDP_AVG))
                    continue;
                const size_t count = N * 4 / ddp_dtype_size((enum ddp_dtype)dtype);
                ddp_device_cpu(DDP_SIMD_SCALAR)
                    ->reduce(&(struct ddp_reduce){.dst = dst,
                                                  .dst_count = 1,
                                                  .src = src,
                                                  .src_count = 3,
                                                  .count = count,
                                                  .dtype = (enum ddp_dtype)dtype,
                                                  .op = (enum ddp_op)op,
                                                  .divisor = divisors[d]});
                for (size_t i = 0; i < count; i++)
                    combine_element(mine, src, i, (enum ddp_dtype)dtype,
                                    op == DDP_AVG ? DDP_SUM : (enum ddp_op)op, divisors[d]);
                same(got, mine, N * 4, ddp_dtype_name((enum ddp_dtype)dtype));
            }
    for (int i = 0; i < 3; i++)
        release(x[i]);
    free(got);
    free(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),       cmocka_unit_test(test_fp8_codes),
        cmocka_unit_test(test_fp8_rounding), cmocka_unit_test(test_fp8_pairs),
        cmocka_unit_test(test_narrow),       cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
