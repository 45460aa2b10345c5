/* Compares element-wise gradient kernels of every SIMD level, bit for bit, with arithmetic in
 * double or with plain C, over kinds of input, odd sizes and addresses. Guards surround the
 * outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "unit/grad_inputs.h"
#include "unit/half_ref.h"

static struct half_format format_of(enum ddp_dtype type)
{
    return type == DDP_F16 ? half_f16 : half_bf16;
}

/* Returns the expected result for one element. */
static uint16_t narrowed(float x, enum ddp_dtype to, float scale, float clip, uint64_t *overflows)
{
    float y = x * scale;
    if (clip > 0 && y > clip)
        y = clip;
    if (clip > 0 && y < -clip)
        y = -clip;
    const uint16_t bits = half_encode(format_of(to), (double)y);
    if (isfinite(x) && !isfinite(half_decode(format_of(to), bits)))
        ++*overflows;
    return bits;
}

static float widened(uint16_t bits, enum ddp_dtype from)
{
    return grad_canonical((float)half_decode(format_of(from), bits));
}

struct narrow_case {
    int level;
    enum grad_kind kind;
    enum ddp_dtype type;
    size_t n, offset; /* offset in elements */
    float scale, clip;
};

/* Checks the conversion to 16 bits, the conversion back, the sum, and the residual. */
static void check_case(const struct narrow_case *c)
{
    const struct ddp_grad_kernels *grad = ddp_device_cpu((enum ddp_simd)c->level)->grad;
    struct guarded in = guarded_new(c->n * 4, c->offset * 4);
    struct guarded wire = guarded_new(c->n * 2, c->offset * 2);
    struct guarded out = guarded_new(c->n * 4, c->offset * 4);
    struct guarded sum = guarded_new(c->n * 4, c->offset * 4);
    const float *x = grad_fill(&in, c->kind, 3);
    uint16_t *half = (uint16_t *)guarded_at(&wire);
    float *back = (float *)guarded_at(&out), *total = grad_fill(&sum, c->kind, 4);
    float *before = (float *)ddp_calloc(c->n, 4);
    uint64_t overflows = 0;

    memcpy(before, total, c->n * 4);
    const uint64_t counted = grad->narrow(half, x, c->n, c->type, c->scale, c->clip);
    grad->widen(back, half, c->n, c->type);
    grad->widen_add(total, half, c->n, c->type);
    for (size_t i = 0; i < c->n; i++) {
        const uint16_t expected = narrowed(x[i], c->type, c->scale, c->clip, &overflows);
        const float wide = widened(expected, c->type);
        if (half[i] != expected || bits_of(back[i]) != bits_of(wide) ||
            bits_of(total[i]) != bits_of(grad_canonical(before[i] + wide)))
            fail_msg("level %d, %s, %s, n %zu, [%zu]: %g becomes %04x, expected %04x; %08x, %08x",
                     c->level, ddp_dtype_name(c->type), grad_kind_names[c->kind], c->n, i,
                     (double)x[i], half[i], expected, bits_of(back[i]), bits_of(total[i]));
    }
    assert_int_equal(counted, overflows);
    grad->narrow_residual(back, x, half, c->n, c->type);
    for (size_t i = 0; i < c->n; i++) {
        const float left = x[i] - widened(half[i], c->type);
        assert_int_equal(bits_of(back[i]), isfinite(left) ? bits_of(left) : 0);
    }
    assert_true(guarded_intact(&in) && guarded_intact(&wire) && guarded_intact(&out) &&
                guarded_intact(&sum));
    guarded_free(&in);
    guarded_free(&wire);
    guarded_free(&out);
    guarded_free(&sum);
    free(before);
}

/* Every size up to 100 and one of many blocks, with scales that overflow, underflow and give
 * NaN. */
static void test_convert(void **state)
{
    (void)state;
    static const float scales[] = {1, 0.25f, 1.0f / 3, 1e38f, 1e-38f, INFINITY};
    static const float clips[] = {0, 1, 1e6f};
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (int i = 0; i < 36; i++)
                for (size_t n = 0; n <= 101; n += n == 4 ? 7 : n < 40 ? 1 : 9)
                    check_case(&(struct narrow_case){
                        .level = level,
                        .kind = (enum grad_kind)kind,
                        .type = i % 2 ? DDP_BF16 : DDP_F16,
                        .n = n == 101 ? 3001 : n,
                        .offset = n % 32,
                        .scale = scales[i / 2 % 6],
                        .clip = clips[i / 12],
                    });
}

/* Every 16-bit pattern widens to its value and, unless it is a NaN, narrows back to itself. */
static void test_all_halves(void **state)
{
    (void)state;
    static uint16_t in[65536], out[65536];
    static float wide[65536];
    for (size_t i = 0; i < 65536; i++)
        in[i] = (uint16_t)i;
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            const struct ddp_grad_kernels *grad = ddp_device_cpu((enum ddp_simd)level)->grad;
            const enum ddp_dtype type = bf16 ? DDP_BF16 : DDP_F16;
            grad->widen(wide, in, 65536, type);
            assert_int_equal(grad->narrow(out, wide, 65536, type, 1, 0), 0);
            for (size_t i = 0; i < 65536; i++) {
                const double value = half_decode(format_of(type), in[i]);
                assert_int_equal(bits_of(wide[i]), bits_of(widened(in[i], type)));
                assert_int_equal(out[i], half_encode(format_of(type), value));
            }
        }
}

/* The values next to each half-way point between neighbouring values of f16 and bf16. */
static void test_rounding(void **state)
{
    (void)state;
    static float in[3 * 65536];
    static uint16_t out[3 * 65536];
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const enum ddp_dtype type = bf16 ? DDP_BF16 : DDP_F16;
        for (uint32_t i = 0; i < 65536; i++) {
            const double a = half_decode(format_of(type), (uint16_t)i);
            const double b = half_decode(format_of(type), (uint16_t)(i + 1));
            const float middle = (float)((a + b) / 2);
            in[3 * i] = nextafterf(middle, -INFINITY);
            in[3 * i + 1] = middle;
            in[3 * i + 2] = nextafterf(middle, INFINITY);
        }
        for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
            ddp_device_cpu((enum ddp_simd)level)->grad->narrow(out, in, 3 * 65536, type, 1, 0);
            for (size_t i = 0; i < 3 * 65536; i++)
                assert_int_equal(out[i], half_encode(format_of(type), (double)in[i]));
        }
    }
}

/* Results large enough for stores that bypass the caches, at addresses that need a head. */
static void test_large(void **state)
{
    (void)state;
    const size_t n = ((size_t)16 << 20) + 77;
    struct guarded in = guarded_new(n * 4, 0), wire = guarded_new(n * 2 + 2, 0);
    struct guarded out = guarded_new(n * 4 + 8, 0);
    float *x = grad_fill(&in, GRAD_NORMAL, 3);
    /* the scale makes these overflow, one in the head and one in a block; the next two are not
     * finite before */
    x[1] = x[90] = 3e38f;
    x[200] = INFINITY;
    x[250] = float_of(0xffc12345u);
    for (int i = 0; i < 12; i++) {
        const int level = DDP_MIN(i / 4, (int)ddp_cpu_best_simd());
        const struct ddp_grad_kernels *grad = ddp_device_cpu((enum ddp_simd)level)->grad;
        const enum ddp_dtype type = i % 2 ? DDP_BF16 : DDP_F16;
        uint16_t *half = (uint16_t *)guarded_at(&wire) + i / 2 % 2;
        float *wide = (float *)guarded_at(&out) + 1 + i / 2 % 2;
        const uint64_t counted = grad->narrow(half, x, n, type, 2, 0);
        grad->widen(wide, half, n, type);
        uint64_t wrong = 0, overflows = 0;
        for (size_t j = 0; j < n; j += j < 300 || j > n - 100 ? 1 : 37) {
            wrong += half[j] != narrowed(x[j], type, 2, 0, &overflows) ||
                     bits_of(wide[j]) != bits_of(widened(half[j], type));
        }
        assert_int_equal(wrong, 0);
        assert_int_equal(overflows, 2);
        assert_int_equal(counted, overflows);
    }
    assert_true(guarded_intact(&wire) && guarded_intact(&out));
    guarded_free(&in);
    guarded_free(&wire);
    guarded_free(&out);
}

static void test_sgd(void **state)
{
    (void)state;
    for (int kind = 0; kind < GRAD_KINDS; kind++)
        for (size_t n = 0; n <= 70; n++)
            for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
                struct guarded g[3];
                float *x[3], before[3][70];
                for (int i = 0; i < 3; i++) {
                    g[i] = guarded_new(n * 4, n % 16 * 4);
                    x[i] = grad_fill(&g[i], (enum grad_kind)kind, (uint64_t)i);
                    memcpy(before[i], x[i], n * 4);
                }
                ddp_device_cpu((enum ddp_simd)level)
                    ->grad->sgd(x[0], x[1], x[2], n, .1f, .9f, .01f);
                for (size_t i = 0; i < n; i++) {
                    const float gradient = before[2][i] + 0.01f * before[0][i];
                    const float v = 0.9f * before[1][i] + gradient;
                    assert_int_equal(bits_of(x[1][i]), bits_of(grad_canonical(v)));
                    assert_int_equal(bits_of(x[0][i]),
                                     bits_of(grad_canonical(before[0][i] - 0.1f * v)));
                }
                for (int i = 0; i < 3; i++) {
                    assert_true(guarded_intact(&g[i]));
                    guarded_free(&g[i]);
                }
            }
}

/* Compares Adam with the paper's formulas in double over 20 steps. Every SIMD level gives the
 * scalar level's bits. */
static void test_adam(void **state)
{
    (void)state;
    enum { SIZE = 133, STEPS = 20 };
    static float p[DDP_SIMD_COUNT][SIZE], m[DDP_SIMD_COUNT][SIZE], v[DDP_SIMD_COUNT][SIZE];
    double q[SIZE], first[SIZE] = {0}, second[SIZE] = {0};
    struct ddp_rng rng;
    ddp_rng_init(&rng, 11, 0);
    for (size_t i = 0; i < SIZE; i++)
        q[i] = p[0][i] = p[1][i] = p[2][i] = (float)ddp_rng_normal(&rng);
    for (int64_t t = 1; t <= STEPS; t++) {
        const struct ddp_adam adam = {1e-2f, 0.9f, 0.999f, 1e-8f, 1e-3f, t};
        float gradient[SIZE];
        for (size_t i = 0; i < SIZE; i++)
            gradient[i] = (float)ddp_rng_normal(&rng);
        for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
            ddp_device_cpu((enum ddp_simd)level)
                ->grad->adam(p[level], m[level], v[level], gradient, SIZE, &adam);
            assert_memory_equal(p[level], p[0], sizeof(p[0]));
            assert_memory_equal(m[level], m[0], sizeof(m[0]));
            assert_memory_equal(v[level], v[0], sizeof(v[0]));
        }
        for (size_t i = 0; i < SIZE; i++) {
            const double g = (double)gradient[i] + (double)adam.weight_decay * q[i];
            first[i] = 0.9 * first[i] + 0.1 * g;
            second[i] = 0.999 * second[i] + 0.001 * g * g;
            const double a = first[i] / (1 - pow(0.9, (double)t));
            const double b = second[i] / (1 - pow(0.999, (double)t));
            q[i] -= 1e-2 * a / (sqrt(b) + 1e-8);
            assert_true(fabs(q[i] - (double)p[0][i]) < 2e-6 * (double)t);
        }
    }
}

/* All levels give the same bits for NaN, infinities and denormals, too. */
static void test_adam_levels(void **state)
{
    (void)state;
    const struct ddp_adam adam = {1e-2f, 0.9f, 0.999f, 1e-8f, 1e-3f, 3};
    for (int kind = 0; kind < GRAD_KINDS; kind++)
        for (size_t n = 0; n <= 70; n++) {
            float result[3][70] = {{0}};
            for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
                struct guarded g[4];
                float *x[4];
                for (int i = 0; i < 4; i++) {
                    g[i] = guarded_new(n * 4, n % 16 * 4);
                    x[i] = grad_fill(&g[i], (enum grad_kind)kind, (uint64_t)i);
                }
                ddp_device_cpu((enum ddp_simd)level)->grad->adam(x[0], x[1], x[2], x[3], n, &adam);
                for (int i = 0; i < 4; i++) {
                    if (level == 0 && i < 3)
                        memcpy(result[i], x[i], n * 4);
                    assert_true(i == 3 || memcmp(result[i], x[i], n * 4) == 0);
                    assert_true(guarded_intact(&g[i]));
                    guarded_free(&g[i]);
                }
            }
        }
}

/* Each level has its own kernels. The device takes the kernels of a level that DDPBENCH_SIMD
 * limits. */
static void test_tables(void **state)
{
    (void)state;
    for (int a = 0; a < DDP_SIMD_COUNT; a++) {
        const struct ddp_grad_kernels *grad = ddp_device_cpu((enum ddp_simd)a)->grad;
        assert_non_null(grad);
        for (int b = 0; b < a; b++) {
            const struct ddp_grad_kernels *other = ddp_device_cpu((enum ddp_simd)b)->grad;
            assert_true(grad->narrow != other->narrow && grad->widen != other->widen);
            assert_true(grad->select_topk != other->select_topk && grad->adam != other->adam);
        }
    }
    for (const struct ddp_device *const *d = ddp_device_all(); *d; d++)
        if (strcmp((*d)->name, "cpu") == 0)
            assert_non_null((*d)->grad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convert),     cmocka_unit_test(test_all_halves),
        cmocka_unit_test(test_rounding),    cmocka_unit_test(test_large),
        cmocka_unit_test(test_sgd),         cmocka_unit_test(test_adam),
        cmocka_unit_test(test_adam_levels), cmocka_unit_test(test_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
