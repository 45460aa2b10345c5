/* Block quantisation: the kernels of every SIMD level against the reference in lib/compress, over
 * kinds of input, sizes of blocks and arrays. Guards surround the outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "base/mem.h"
#include "compress/compress.h"
#include "device/element_ops.h"
#include "unit/grad_inputs.h"

static const char *const names[] = {"q8", "q4", "fp8-e4m3", "fp8-e5m2", "sign"};
enum { NAMES = DDP_COUNT_OF(names) };

static const struct ddp_grad_kernels *kernels(int level)
{
    return ddp_device_cpu((enum ddp_simd)level)->grad;
}

/* Returns the compressor with this size of a block, or with the least size of sign. */
static struct ddp_compress_spec spec_of(const char *name, size_t block)
{
    if (strcmp(name, "sign") == 0)
        block = DDP_MAX(block, (size_t)DDP_QUANT_SIGN_BLOCK_MIN);
    return ddp_compress_with(ddp_compressor_find(name), (double)block);
}

struct quant_case {
    const char *name;
    size_t block, n, offset; /* offset of the arrays in elements */
    enum grad_kind kind;
    float scale;
    bool stochastic;
};

#define KEY UINT64_C(0x123456789abcdef0)

/* Encodes and decodes an array with the kernels of a level, and compares the values with the
 * reference. `scalar` [bytes]: receives the encoded blocks of the scalar level, and is compared
 * with those of the other levels. */
static void check_level(const struct quant_case *c, int level, unsigned char *scalar)
{
    struct ddp_compress_spec spec = spec_of(c->name, c->block);
    spec.stochastic = c->stochastic;
    struct ddp_quant quant = ddp_compress_quant(&spec);
    quant.key = KEY;
    quant.first = 7 * quant.block;
    const size_t bytes = ddp_quant_blocks(quant, c->n) * ddp_quant_block_bytes(quant);
    struct guarded in = guarded_new(c->n * 4, c->offset * 4), wire = guarded_new(bytes, c->offset);
    struct guarded out = guarded_new(c->n * 4, c->offset * 4);
    float *x = grad_fill(&in, c->kind, 11), *back = guarded_at(&out);
    float *scaled = ddp_calloc(c->n, 4), *want = ddp_calloc(c->n, 4);
    kernels(level)->quantize(guarded_at(&wire), x, c->n, quant, c->scale);
    if (level == DDP_SIMD_SCALAR)
        memcpy(scalar, guarded_at(&wire), bytes);
    assert_memory_equal(scalar, guarded_at(&wire), bytes);
    kernels(level)->dequantize(back, guarded_at(&wire), c->n, quant, false);
    for (size_t i = 0; i < c->n; i++)
        scaled[i] = x[i] * c->scale;
    spec.compressor->rounded(&spec, c->scale, KEY, quant.first, scaled, c->n, want);
    for (size_t i = 0; i < c->n; i++)
        if (back[i] != want[i] && bits_of(back[i]) != bits_of(grad_canonical(want[i])))
            fail_msg("%s, %s, level %d, element %zu of %zu: %g, expected %g", spec.text,
                     grad_kind_names[c->kind], level, i, c->n, (double)back[i], (double)want[i]);
    /* A second decoding adds to the array. */
    kernels(level)->dequantize(back, guarded_at(&wire), c->n, quant, true);
    for (size_t i = 0; i < c->n; i++)
        assert_int_equal(bits_of(back[i] + 0.0f),
                         bits_of(grad_canonical(want[i] + want[i]) + 0.0f));
    assert_true(guarded_intact(&in) && guarded_intact(&wire) && guarded_intact(&out));
    guarded_free(&in);
    guarded_free(&wire);
    guarded_free(&out);
    free(scaled);
    free(want);
}

static void test_reference(void **state)
{
    (void)state;
    static const size_t blocks[] = {32, 128, 2048}, sizes[] = {1, 31, 32, 33, 129, 4099};
    static unsigned char scalar[1 << 15];
    const size_t cases = NAMES * DDP_COUNT_OF(blocks) * DDP_COUNT_OF(sizes);
    for (size_t i = 0; i < 2 * cases; i++)
        for (int kind = 0; kind < GRAD_KINDS; kind++)
            for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
                const struct quant_case c = {
                    .stochastic = i >= cases && i % NAMES < NAMES - 1,
                    .name = names[i % NAMES],
                    .block = blocks[i / NAMES % 3],
                    .n = sizes[i / NAMES / 3 % DDP_COUNT_OF(sizes)],
                    .offset = i % 3,
                    .kind = (enum grad_kind)kind,
                    .scale = kind % 2 == 0 ? 1 : 0.25f,
                };
                check_level(&c, level, scalar);
            }
}

/* Returns n bytes at a cache line. */
static void *lines_of(size_t n)
{
    void *array = aligned_alloc(DDP_CACHE_LINE, ddp_round_to_line(n));
    assert_non_null(array);
    return array;
}

/* 10^7 values: the kernels prefetch the input and write the result with non-temporal stores. */
static void test_large(void **state)
{
    (void)state;
    enum { N = 10000003 };
    float *x = lines_of(4 * N), *want = lines_of(4 * N), *got = lines_of(4 * N);
    unsigned char *wire = lines_of(2 * N), *scalar = lines_of(2 * N);
    for (uint32_t i = 0; i < N; i++) {
        /* Magnitudes between 2^-12 and 2^19, of both signs. */
        const uint32_t h = (i ^ i >> 15) * 0x2c1b3c6du, hash = (h ^ h >> 12) * 0x297a2d39u;
        x[i] = float_of((hash & 0x8f9fffffu) + 0x39800000u);
    }
    for (size_t k = 0; k < NAMES; k++) {
        const struct ddp_compress_spec spec = spec_of(names[k], 128);
        const struct ddp_quant quant = ddp_compress_quant(&spec);
        const size_t bytes = ddp_quant_blocks(quant, N) * ddp_quant_block_bytes(quant);
        kernels(DDP_SIMD_SCALAR)->quantize(scalar, x, N, quant, 1);
        spec.compressor->rounded(&spec, 1, 0, 0, x, N, want);
        for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
            kernels(level)->quantize(wire, x, N, quant, 1);
            assert_true(memcmp(wire, scalar, bytes) == 0);
            kernels(level)->dequantize(got, wire, N, quant, false);
            for (size_t i = 0; i < N; i++)
                if (got[i] != want[i])
                    fail_msg("%s, level %d, element %zu: %g, expected %g", names[k], level, i,
                             (double)got[i], (double)want[i]);
        }
    }
    free(x);
    free(want);
    free(got);
    free(wire);
    free(scalar);
}

/* Over many keys, the mean of the sent values is the value. A nearest value may be off by half the
 * distance of two codes, which is at most 2^-3 of the magnitude for fp8-e5m2, or a step. */
static void test_mean(void **state)
{
    (void)state;
    enum { BLOCK = 32, KEYS = 4096 };
    static const double relative[] = {0, 0, 0.125, 0.25};
    float x[BLOCK], sent[BLOCK];
    struct ddp_rng rng;
    ddp_rng_init(&rng, 9, 0);
    for (int i = 0; i < BLOCK; i++)
        x[i] = (float)ddp_rng_normal(&rng);
    for (size_t k = 0; k < NAMES - 1; k++) {
        struct ddp_compress_spec spec = spec_of(names[k], BLOCK);
        double sum[BLOCK] = {0}, max = 0;
        int biased = 0;
        for (int i = 0; i < BLOCK; i++)
            max = fmax(max, fabs((double)x[i]));
        for (int stochastic = 0; stochastic < 2; stochastic++) {
            spec.stochastic = stochastic != 0;
            memset(sum, 0, sizeof sum);
            for (uint64_t key = 0; key < KEYS; key++) {
                unsigned char wire[sizeof(float) + BLOCK];
                struct ddp_quant quant = ddp_compress_quant(&spec);
                quant.key = ddp_compress_key(1, (int)(key % 8), key / 8);
                kernels(ddp_cpu_best_simd())->quantize(wire, x, BLOCK, quant, 1);
                kernels(ddp_cpu_best_simd())->dequantize(sent, wire, BLOCK, quant, false);
                for (int i = 0; i < BLOCK; i++)
                    sum[i] += (double)sent[i];
            }
            for (int i = 0; i < BLOCK; i++) {
                const double step = max / (double)ddp_quant_top(ddp_compress_quant(&spec).code);
                const double gap = relative[k] > 0 ? fabs((double)x[i]) * relative[k] : step;
                const bool off =
                    fabs(sum[i] / KEYS - (double)x[i]) > 5 * gap / 2 / sqrt(KEYS) + 1e-6 * max;
                biased += off && !stochastic;
                if (off && stochastic)
                    fail_msg("%s: the mean of %g is %g", names[k], (double)x[i], sum[i] / KEYS);
            }
        }
        assert_true(biased > BLOCK / 4);
    }
}

/* Returns the code of element i of a block. */
static float code_of(struct ddp_quant quant, const unsigned char *codes, size_t i)
{
    const size_t half = quant.block / 2;
    switch (quant.code) {
    case DDP_QUANT_I8:
        return (int8_t)codes[i];
    case DDP_QUANT_I4: {
        const int nibble = i < half ? codes[i] & 15 : codes[i - half] >> 4;
        return (float)(nibble < 8 ? nibble : nibble - 16);
    }
    case DDP_QUANT_SIGN:
        return codes[i % (quant.block / 8)] >> i / (quant.block / 8) & 1 ? -1 : 1;
    default:
        return ddp_fp8_widen(codes[i], quant.code == DDP_QUANT_E4M3 ? DDP_FP8_E4M3 : DDP_FP8_E5M2);
    }
}

/* Every code decodes to its value, including codes that no encoding produces. */
static void test_all_codes(void **state)
{
    (void)state;
    enum { BLOCK = 512 };
    for (size_t k = 0; k < DDP_COUNT_OF(names); k++)
        for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
            const struct ddp_compress_spec spec = spec_of(names[k], BLOCK);
            const struct ddp_quant quant = ddp_compress_quant(&spec);
            const float scale = 0.75f;
            unsigned char wire[sizeof scale + BLOCK];
            float got[BLOCK];
            memcpy(wire, &scale, sizeof scale);
            for (int i = 0; i < BLOCK; i++)
                wire[sizeof scale + (size_t)i] = (unsigned char)i;
            kernels(level)->dequantize(got, wire, BLOCK, quant, false);
            for (size_t i = 0; i < BLOCK; i++) {
                const float want = code_of(quant, wire + sizeof scale, i) * scale;
                assert_int_equal(bits_of(got[i]), bits_of(grad_canonical(want)));
            }
        }
}

/* The sent value and the residual add up to the input: exactly, or for signs, whose error may have
 * more bits than a float, up to the rounding of the residual. */
static void test_residual(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float in[N], residual[N], before[N], sent[N];
    static unsigned char wire[2 * N];
    struct ddp_rng rng;
    ddp_rng_init(&rng, 3, 0);
    for (size_t k = 0; k < DDP_COUNT_OF(names); k++) {
        const struct ddp_compress_spec spec = spec_of(names[k], 128);
        struct ddp_encode e = {.device = ddp_device_cpu(ddp_cpu_best_simd()),
                               .spec = &spec,
                               .in = in,
                               .residual = residual,
                               .n = N,
                               .scale = 0.5f,
                               .dense = wire};
        memset(residual, 0, sizeof residual);
        for (int step = 0; step < 8; step++) {
            for (size_t i = 0; i < N; i++) {
                in[i] = (float)ddp_rng_normal(&rng);
                before[i] = in[i] * 0.5f + residual[i];
            }
            ddp_feedback_encode(&e);
            e.device->grad->dequantize(sent, wire, N, ddp_compress_quant(&spec), false);
            const double rounding = strcmp(names[k], "sign") == 0 ? 0x1p-24 : 0;
            for (size_t i = 0; i < N; i++) {
                assert_true(residual[i] == before[i] - sent[i]);
                assert_true(fabs((double)sent[i] + (double)residual[i] - (double)before[i]) <=
                            rounding * fabs((double)residual[i]));
            }
        }
    }
}

static void test_arguments(void **state)
{
    (void)state;
    static const char *const bad[] = {"q8:100",  "q8:16", "q4:4096", "fp8-e4m3:0",
                                      "q8:-128", "q8:",   "sign:64", "sign:4096"};
    struct ddp_compress_spec spec;
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++) {
        struct ddp_err err = DDP_ERR_INIT;
        assert_int_equal(ddp_compress_parse(bad[i], &spec, &err), DDP_EUSAGE);
    }
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_compress_parse("q4", &spec, &err), 0);
    assert_int_equal(ddp_compress_quant(&spec).block, 128);
    assert_int_equal(ddp_quant_block_bytes(ddp_compress_quant(&spec)), 68);
    assert_true(ddp_compress_keeps(&spec, DDP_FEEDBACK_AUTO));
    assert_int_equal(ddp_compress_parse("q8:64", &spec, &err), 0);
    assert_int_equal(ddp_quant_block_bytes(ddp_compress_quant(&spec)), 68);
    assert_false(ddp_compress_keeps(&spec, DDP_FEEDBACK_AUTO));
    assert_int_equal(ddp_compress_parse("sign:256", &spec, &err), 0);
    assert_int_equal(ddp_quant_block_bytes(ddp_compress_quant(&spec)), 36);
    assert_true(ddp_compress_keeps(&spec, DDP_FEEDBACK_AUTO));
}

/* The mean of a block whose last elements are missing is the mean of the elements that it has. A
 * negative zero is negative. */
static void test_signs(void **state)
{
    (void)state;
    static const float in[5] = {1, -2, -0.0f, 6, 0}, want[5] = {1.8f, -1.8f, -1.8f, 1.8f, 1.8f};
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++) {
        const struct ddp_quant quant = {.code = DDP_QUANT_SIGN, .block = DDP_QUANT_SIGN_BLOCK_MIN};
        unsigned char wire[4 + DDP_QUANT_SIGN_BLOCK_MIN / 8];
        float got[5];
        kernels(level)->quantize(wire, in, 5, quant, 1);
        kernels(level)->dequantize(got, wire, 5, quant, false);
        for (size_t i = 0; i < 5; i++)
            assert_true(got[i] == want[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),     cmocka_unit_test(test_reference),
        cmocka_unit_test(test_large),    cmocka_unit_test(test_all_codes),
        cmocka_unit_test(test_residual), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
