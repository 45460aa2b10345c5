/* Compares the arithmetic that the GPU's kernels share, compiled for the CPU, with the CPU's
 * kernels, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/element_ops.h"
#include "unit/grad_inputs.h"

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

/* Combines three sources of random bits of type `dtype` with the shared arithmetic. */
static void combine(void *out, const void *const *src, size_t count, enum ddp_dtype dtype,
                    enum ddp_op op, int divisor)
{
    const struct ddp_finish f = ddp_finish_of(divisor);
    for (size_t i = 0; i < count; i++) {
        float a = 0;
        double d = 0;
        uint32_t w = 0;
        uint8_t b = 0;
        for (int k = 0; k < 3; k++) {
            const float x = dtype == DDP_F32    ? ((const float *)src[k])[i]
                            : dtype == DDP_F16  ? ddp_f16_widen(((const uint16_t *)src[k])[i])
                            : dtype == DDP_BF16 ? ddp_bf16_widen(((const uint16_t *)src[k])[i])
                            : dtype == DDP_U8   ? (float)((const uint8_t *)src[k])[i]
                                                : 0;
            const double y = dtype == DDP_F64   ? ((const double *)src[k])[i]
                             : dtype == DDP_I32 ? ((const int32_t *)src[k])[i]
                                                : 0;
            const uint32_t z = dtype == DDP_I32 ? ((const uint32_t *)src[k])[i] : 0;
            const uint8_t c = dtype == DDP_U8 ? ((const uint8_t *)src[k])[i] : 0;
            a = k == 0 ? x : ddp_combine_f32(a, x, op);
            d = k == 0 ? y : ddp_combine_f64(d, y, op);
            w = k == 0 ? z : ddp_combine_i32(w, z, op);
            b = k == 0 ? c : ddp_combine_u8(b, c, op);
        }
        a = ddp_f32_canonical(ddp_finish_f32(a, f));
        if (dtype == DDP_F32)
            ((float *)out)[i] = a;
        else if (dtype == DDP_F16 || dtype == DDP_BF16)
            ((uint16_t *)out)[i] = ddp_half_narrow(a, dtype);
        else if (dtype == DDP_F64)
            ((double *)out)[i] = ddp_f64_canonical(ddp_finish_f64(d, f));
        else if (dtype == DDP_I32)
            ((int32_t *)out)[i] = divisor > 1 ? (int32_t)ddp_finish_f64(d, f) : (int32_t)w;
        else
            ((uint8_t *)out)[i] = divisor > 1 ? (uint8_t)(int32_t)a : b;
    }
}

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
                if (divisors[d] > 1 && op > DDP_AVG)
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
                combine(mine, src, count, (enum ddp_dtype)dtype,
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
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
