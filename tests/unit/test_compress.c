/* Compressors: their names and options, the values they send and the values they keep, over
 * inputs of every kind and at every SIMD level. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "compress/compress.h"
#include "device/element_ops.h"
#include "names.h"

#define N 5003 /* not a multiple of any block size */

static void refuse(const char *text, const char *says)
{
    struct ddp_compress_spec spec;
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_compress_parse(text, &spec, &err) != DDP_EUSAGE)
        fail_msg("'%s' was taken", text);
    if (!text_names(err.text, says) && !text_names(err.hint, says))
        fail_msg("'%s': '%s' (%s) does not say '%s'", text, err.text, err.hint, says);
}

static void parse(const char *text, struct ddp_compress_spec *spec)
{
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_compress_parse(text, spec, &err) != 0)
        fail_msg("'%s': %s", text, err.text);
    assert_string_equal(spec->text, text);
}

static void test_names(void **state)
{
    (void)state;
    struct ddp_compress_spec spec;
    parse("none", &spec);
    assert_true(isnan(spec.argument));
    parse("fp16", &spec);
    assert_true(isnan(spec.argument));
    parse("fp16:2.5", &spec);
    assert_true(spec.argument == 2.5);
    parse("topk:0.01", &spec);
    assert_string_equal(spec.compressor->name, "topk");
    assert_true(spec.argument == 0.01);
    parse("threshold:1e-3", &spec);
    parse("oktopk:1", &spec);
    assert_true(spec.compressor->global_topk);
    refuse("topk", "topk:D");
    refuse("topk:0", "0");
    refuse("topk:1.01", "1.01");
    refuse("topk:-1", "-1");
    refuse("topk:nan", "nan");
    refuse("topk:x", "'x'");
    refuse("topk:", "''");
    refuse("threshold:0", "0");
    refuse("threshold:1e-60", "1e-60");
    refuse("threshold:inf", "inf");
    refuse("fp16:0", "0");
    refuse("fp16:1e6", "1e+06");
    refuse("none:1", "'");
    refuse("bf16:1", "'");
    refuse("tpok:0.1", "'topk'");
    refuse("gzip", "'gzip'");
    refuse("gzip",
           "none, fp16[:CLIP], bf16, q8[:BLOCK][+sr], q4[:BLOCK][+sr], fp8-e4m3[:BLOCK][+sr], "
           "fp8-e5m2[:BLOCK][+sr], sign[:BLOCK], powersgd:R[:N], topk:D, threshold:T, oktopk:D");
    refuse("", "''");
    refuse("topk:0.010000000000000000000000000000", "topk:0.01");
}

static void test_lists(void **state)
{
    (void)state;
    static struct ddp_string_list texts = {3, {"none", "fp16", "topk:0.01"}};
    static struct ddp_compress_list list;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_compress_parse_list(&texts, &list, &err), 0);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.v[2].text, "topk:0.01");
    strcpy(texts.v[0], "fp16");
    assert_int_equal(ddp_compress_parse_list(&texts, &list, &err), DDP_EUSAGE);
    assert_true(text_names(err.text, "'fp16'"));
    err = DDP_ERR_INIT;
    strcpy(texts.v[1], "tokp:0.1");
    assert_int_equal(ddp_compress_parse_list(&texts, &list, &err), DDP_EUSAGE);
    assert_true(text_names(err.text, "'tokp'"));
}

static void test_k(void **state)
{
    (void)state;
    assert_int_equal(ddp_compress_k(0.01, 0), 0);
    assert_int_equal(ddp_compress_k(1e-9, 1), 1);
    assert_int_equal(ddp_compress_k(1e-9, 1000), 1);
    assert_int_equal(ddp_compress_k(0.01, 100), 1);
    assert_int_equal(ddp_compress_k(0.01, 101), 2);
    /* 0.07 * 100 is slightly more than 7 in binary */
    assert_int_equal(ddp_compress_k(0.07, 100), 7);
    assert_int_equal(ddp_compress_k(0.01, 431080), 4311);
    assert_int_equal(ddp_compress_k(1, 431080), 431080);
    assert_int_equal(ddp_compress_k(0.999999, 10), 10);
}

/* Kinds of inputs. */
enum { NORMAL, HEAVY, CONSTANT, DENORMAL, STRANGE, ZERO, INPUTS };

static void make_input(int kind, uint64_t seed, float *in)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, seed, (uint64_t)kind);
    for (size_t i = 0; i < N; i++) {
        const double x = ddp_rng_normal(&rng);
        in[i] = (float)(kind == HEAVY      ? x * x * x * x * x
                        : kind == CONSTANT ? 0.25
                        : kind == DENORMAL ? x * 0x1p-140
                        : kind == ZERO     ? 0
                                           : x);
        if (kind == STRANGE && i % 97 == 0)
            in[i] = i % 2 != 0 ? NAN : i % 3 != 0 ? INFINITY : -INFINITY;
    }
}

struct box {
    struct ddp_compress_spec spec;
    struct ddp_encode e;
    float in[N], residual[N], dense[N], value[N];
    uint32_t index[N];
};

static struct box *box_of(const char *text, enum ddp_simd level, bool feedback)
{
    struct box *b = calloc(1, sizeof *b);
    assert_non_null(b);
    parse(text, &b->spec);
    const struct ddp_compressor *c = b->spec.compressor;
    b->e = (struct ddp_encode){
        .device = ddp_device_cpu(level),
        .spec = &b->spec,
        .in = b->in,
        .residual = feedback ? b->residual : NULL,
        .n = N,
        .scale = 1,
        .dense = b->dense,
        .list = {b->index, b->value, 0},
    };
    const size_t bytes = c->state_bytes != NULL ? c->state_bytes(&b->spec, N) : 64;
    b->e.state = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(b->e.state, 0, (bytes + 63) / 64 * 64);
    return b;
}

static void box_free(struct box *b)
{
    free(b->e.state);
    free(b);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? 0x7fc00000u : bits;
}

/* Checks sent + new residual == in + old residual bit for bit. Every element is in exactly one
 * of the two. */
static void check_moved(const struct box *b, const float *acc)
{
    static float sent[N];
    static bool is_sent[N];
    memset(is_sent, 0, sizeof is_sent);
    for (size_t i = 0; i < b->e.list.count; i++) {
        assert_true(b->index[i] < N && (i == 0 || b->index[i] > b->index[i - 1]));
        sent[b->index[i]] = b->value[i];
        is_sent[b->index[i]] = true;
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(bits_of(is_sent[i] ? sent[i] : b->residual[i]), bits_of(acc[i]));
        if (is_sent[i])
            assert_int_equal(bits_of(b->residual[i]), 0);
    }
}

static void test_sparse(void **state)
{
    (void)state;
    static const char *const specs[] = {"topk:1e-9",   "topk:0.01",     "topk:0.5",
                                        "topk:1",      "oktopk:0.03",   "threshold:0.25",
                                        "threshold:2", "threshold:1e30"};
    static float acc[N];
    for (int level = 0; level <= (int)ddp_cpu_best_simd(); level++)
        for (size_t s = 0; s < DDP_COUNT_OF(specs); s++)
            for (int kind = 0; kind < INPUTS; kind++) {
                struct box *b = box_of(specs[s], (enum ddp_simd)level, true);
                const struct ddp_compressor *c = b->spec.compressor;
                for (uint64_t step = 0; step < 4; step++) {
                    make_input(kind, step, b->in);
                    for (size_t i = 0; i < N; i++)
                        acc[i] = b->in[i] + b->residual[i];
                    ddp_feedback_encode(&b->e);
                    if (c->fixed_count)
                        assert_int_equal(b->e.list.count, c->bound(&b->spec, N));
                    check_moved(b, acc);
                    size_t survivors = 0;
                    for (size_t i = 0; i < N; i++)
                        survivors += !(fabsf(acc[i]) < (float)b->spec.argument);
                    if (strcmp(c->name, "threshold") == 0)
                        assert_int_equal(b->e.list.count, survivors);
                }
                box_free(b);
            }
}

/* Every compressor of lists sends the entries that its reference names, in every call. */
static void test_references(void **state)
{
    (void)state;
    static float acc[N];
    static bool sent[N];
    int compared = 0;
    for (const struct ddp_compressor *const *c = ddp_compressors(); *c != NULL; c++)
        for (int kind = 0; kind < INPUTS && (*c)->combine == DDP_COMBINE_GATHER; kind++) {
            const struct ddp_compress_spec spec = ddp_compress_with(*c, 0.25);
            struct box *b = box_of(spec.text, ddp_cpu_best_simd(), true);
            for (uint64_t call = 0; call < 4; call++, compared++) {
                make_input(kind, call, b->in);
                for (size_t i = 0; i < N; i++)
                    acc[i] = b->in[i] + b->residual[i];
                (*c)->reference(&b->spec, acc, N, call, sent);
                ddp_feedback_encode(&b->e);
                size_t entry = 0;
                for (size_t i = 0; i < N; i++) {
                    const bool listed = entry < b->e.list.count && b->index[entry] == i;
                    if (listed != sent[i])
                        fail_msg("%s, input %d, call %d, element %zu: sent %d", spec.text, kind,
                                 (int)call, i, listed);
                    entry += listed;
                }
                assert_int_equal(entry, b->e.list.count);
            }
            box_free(b);
        }
    assert_true(compared >= 3 * INPUTS * 4);
}

struct entry {
    uint32_t magnitude;
    size_t index;
};

static int larger_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->magnitude != y->magnitude)
        return x->magnitude > y->magnitude ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Compares the reference of topk with a full sort. */
static void check_topk_reference(const float *x, size_t n, double density)
{
    struct entry *sorted = malloc(n * sizeof *sorted);
    bool *wanted = calloc(n, sizeof *wanted), *sent = calloc(n, sizeof *sent);
    const struct ddp_compress_spec spec = ddp_compress_with(ddp_compressor_find("topk"), density);
    assert_true(sorted && wanted && sent);
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct entry){bits_of(fabsf(x[i])), i};
    qsort(sorted, n, sizeof *sorted, larger_first);
    for (size_t i = 0; i < ddp_compress_k(density, n); i++)
        wanted[sorted[i].index] = true;
    spec.compressor->reference(&spec, x, n, 0, sent);
    assert_memory_equal(sent, wanted, n * sizeof *sent);
    free(sorted);
    free(wanted);
    free(sent);
}

static void test_topk_reference(void **state)
{
    (void)state;
    enum { TIES = INPUTS, KINDS };
    static float x[N];
    for (int kind = 0; kind < KINDS; kind++) {
        make_input(kind == TIES ? NORMAL : kind, 1, x);
        for (size_t i = 0; i < N; i++)
            x[i] = kind == TIES ? rintf(x[i] * 2) : isnan(x[i]) ? NAN : x[i];
        static const double density[] = {1e-9, 4e-4, 0.006, 0.5, 0.9998, 1};
        for (size_t i = 0; i < DDP_COUNT_OF(density); i++)
            check_topk_reference(x, N, density[i]);
        check_topk_reference(x, 1, 1);
    }
}

static void test_threshold_reference(void **state)
{
    (void)state;
    const float x[] = {0.5f, -0.5f, 0.499f, NAN, -INFINITY, 0, 2};
    static const bool wanted[] = {true, true, false, true, true, false, true};
    bool sent[DDP_COUNT_OF(x)];
    struct ddp_compress_spec spec;
    parse("threshold:0.5", &spec);
    spec.compressor->reference(&spec, x, DDP_COUNT_OF(x), 0, sent);
    assert_memory_equal(sent, wanted, sizeof sent);
}

/* The scale applies to the sent values and not to the kept ones. */
static void test_sparse_scale(void **state)
{
    (void)state;
    struct box *b = box_of("topk:0.1", DDP_SIMD_SCALAR, true);
    b->e.scale = 0.5f;
    make_input(NORMAL, 7, b->in);
    ddp_feedback_encode(&b->e);
    assert_int_equal(b->e.list.count, 501);
    for (size_t i = 0; i < b->e.list.count; i++)
        assert_true(b->value[i] == b->in[b->index[i]] * 0.5f);
    for (size_t i = 0, s = 0; i < N; i++) {
        if (s < b->e.list.count && b->index[s] == i)
            s++;
        else
            assert_true(b->residual[i] == b->in[i]);
    }
    box_free(b);
}

/* The largest 5 % of normally distributed values hold 27.91 % of the energy. A selection by
 * index order would hold 5 %. */
static void test_energy(void **state)
{
    (void)state;
    enum { MILLION = 1 << 20 };
    struct ddp_compress_spec spec;
    parse("topk:0.05", &spec);
    float *in = malloc(MILLION * sizeof *in);
    const size_t k = ddp_compress_k(0.05, MILLION);
    const size_t bytes = spec.compressor->state_bytes(&spec, MILLION);
    struct ddp_encode e = {
        .device = ddp_device_cpu(ddp_cpu_best_simd()),
        .spec = &spec,
        .in = in,
        .n = MILLION,
        .scale = 1,
        .state = aligned_alloc(64, (bytes + 63) / 64 * 64),
        .list = {malloc(k * sizeof(uint32_t)), malloc(k * sizeof(float)), 0},
    };
    struct ddp_rng rng;
    double all = 0, sent = 0;
    memset(e.state, 0, bytes);
    ddp_rng_init(&rng, 11, 0);
    for (size_t i = 0; i < MILLION; i++) {
        in[i] = (float)ddp_rng_normal(&rng);
        all += (double)in[i] * in[i];
    }
    ddp_feedback_encode(&e);
    assert_int_equal(e.list.count, k);
    for (size_t i = 0; i < k; i++)
        sent += (double)e.list.value[i] * e.list.value[i];
    if (sent / all < 0.278 || sent / all > 0.281)
        fail_msg("kept %.2f %% of the energy", 100 * sent / all);
    free(e.list.index);
    free(e.list.value);
    free(e.state);
    free(in);
}

/* 16-bit formats: residual = acc - decoded, so over many steps the sent values add up to the
 * inputs. */
static void check_16_bit(const char *text, int kind, float scale)
{
    struct box *b = box_of(text, ddp_cpu_best_simd(), true);
    const enum ddp_dtype dtype = b->spec.compressor->wire_dtype;
    static float acc[N], decoded[N];
    for (uint64_t step = 0; step < 3; step++) {
        make_input(kind, step, b->in);
        for (size_t i = 0; i < N; i++)
            acc[i] = b->in[i] * scale + b->residual[i];
        b->e.scale = scale;
        ddp_feedback_encode(&b->e);
        b->e.device->grad->widen(decoded, b->dense, N, dtype);
        for (size_t i = 0; i < N; i++) {
            const float left = acc[i] - decoded[i];
            assert_int_equal(bits_of(b->residual[i] + 0.0f),
                             bits_of(isfinite(left) ? left + 0.0f : 0));
            if (isfinite(acc[i]) && isfinite(decoded[i]) && isnan(b->spec.argument))
                assert_true(fabsf(left) <= fabsf(acc[i]) * 0x1p-8f + 0x1p-25f);
        }
    }
    box_free(b);
}

static void test_16_bit(void **state)
{
    (void)state;
    static const char *const specs[] = {"fp16", "bf16", "fp16:0.5"};
    for (size_t s = 0; s < DDP_COUNT_OF(specs); s++)
        for (int kind = 0; kind < INPUTS; kind++)
            for (int divided = 0; divided < 2; divided++)
                check_16_bit(specs[s], kind, divided ? 1.0f / 3 : 1);
}

static void test_overflow(void **state)
{
    (void)state;
    struct box *b = box_of("fp16", DDP_SIMD_SCALAR, false);
    b->in[3] = 1e6f;
    b->in[4000] = -70000;
    b->in[7] = INFINITY;
    ddp_feedback_encode(&b->e);
    assert_int_equal(b->e.overflow_count, 2);
    box_free(b);
    b = box_of("fp16:100", DDP_SIMD_SCALAR, true);
    b->in[3] = 1e6f;
    ddp_feedback_encode(&b->e);
    assert_int_equal(b->e.overflow_count, 0);
    assert_true(b->residual[3] == 1e6f - 100); /* the clipped rest is sent later */
    box_free(b);
    b = box_of("bf16", DDP_SIMD_SCALAR, false);
    b->in[3] = 1e30f;
    ddp_feedback_encode(&b->e);
    assert_int_equal(b->e.overflow_count, 0);
    box_free(b);
}

/* The limit has the gradient's unit: no average of values limited to CLIP exceeds CLIP. */
static void test_clip_of_an_average(void **state)
{
    (void)state;
    for (int feedback = 0; feedback < 2; feedback++) {
        float decoded[N];
        struct box *b = box_of("fp16:100", ddp_cpu_best_simd(), feedback != 0);
        for (size_t i = 0; i < N; i++)
            b->in[i] = i == 1 ? -4000 : i == 2 ? 96 : 4000;
        b->e.scale = 0.25f;
        ddp_feedback_encode(&b->e);
        b->e.device->grad->widen(decoded, b->dense, N, DDP_F16);
        for (size_t i = 0; i < N; i++)
            assert_true(decoded[i] == (i == 1 ? -25 : i == 2 ? 24 : 25));
        box_free(b);
    }
}

static float as_f16(float x)
{
    return ddp_half_widen(ddp_half_narrow(x, DDP_F16), DDP_F16);
}

/* Returns the largest sum of n values x, over all orders of the additions. Every partial sum is
 * rounded to f16. */
static float largest_sum(float x, int n)
{
    float sum[65] = {0, x};
    for (int k = 2; k <= n; k++)
        for (int i = 1; i <= k / 2; i++)
            sum[k] = fmaxf(sum[k], as_f16(sum[i] + sum[k - i]));
    return sum[n];
}

/* With the largest clip, an average is finite and almost the clip, on any number of ranks. */
static void test_largest_clip(void **state)
{
    (void)state;
    static float decoded[N], expected[N];
    struct box *b = box_of("fp16:65504", ddp_cpu_best_simd(), false);
    for (size_t i = 0; i < N; i++)
        b->in[i] = i % 2 != 0 ? -1e6f : 65504;
    for (int ranks = 1; ranks <= 64; ranks++) {
        b->e.scale = 1.0f / (float)ranks;
        ddp_feedback_encode(&b->e);
        b->e.device->grad->widen(decoded, b->dense, N, DDP_F16);
        b->spec.compressor->rounded(&b->spec, b->e.scale, 0, 0, (float[]){b->in[0] * b->e.scale}, 1,
                                    expected);
        assert_true(decoded[0] == expected[0] && decoded[1] == -expected[0]);
        if (!isfinite(largest_sum(decoded[0], ranks)))
            fail_msg("%d ranks, %g", ranks, (double)decoded[0]);
        assert_true(decoded[0] * (float)ranks > 65504 * 0.95f);
    }
    assert_int_equal(b->e.overflow_count, 0);
    box_free(b);
}

static void test_least_clip(void **state)
{
    (void)state;
    struct box *b = box_of("fp16:1e-60", ddp_cpu_best_simd(), false);
    float decoded[N];
    b->in[3] = 1;
    ddp_feedback_encode(&b->e);
    b->e.device->grad->widen(decoded, b->dense, N, DDP_F16);
    assert_true(decoded[3] == 0);
    box_free(b);
}

static void test_none(void **state)
{
    (void)state;
    struct box *b = box_of("none", DDP_SIMD_SCALAR, true);
    make_input(STRANGE, 1, b->in);
    ddp_feedback_encode(&b->e);
    assert_memory_equal(b->in, b->dense, sizeof b->in);
    for (size_t i = 0; i < N; i++)
        assert_true(b->residual[i] == 0);
    box_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_k),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_topk_reference),
        cmocka_unit_test(test_threshold_reference),
        cmocka_unit_test(test_sparse_scale),
        cmocka_unit_test(test_energy),
        cmocka_unit_test(test_16_bit),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_clip_of_an_average),
        cmocka_unit_test(test_largest_clip),
        cmocka_unit_test(test_least_clip),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests_name("compressors", tests, NULL, NULL);
}
