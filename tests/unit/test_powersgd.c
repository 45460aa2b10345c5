/* Compressor "powersgd": several ranks in one process against a reference in double, and the random
 * numbers that replace useless columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "compress/compress.h"

enum { RANKS = 3, RANK = 2, STEPS = 6 };

/* Two matrices, one of which has an incomplete last row, between tensors that are sent as they are:
 * vectors, and a matrix that is too small. */
static const struct ddp_tensor list[] = {{7, 0}, {12 * 30, 30}, {4, 2}, {9 * 16 - 5, 16}, {33, 0}};
static const struct ddp_tensors tensors = {list, DDP_COUNT_OF(list)};
enum { N = 7 + 12 * 30 + 4 + 9 * 16 - 5 + 33 };

struct exchange {
    struct ddp_compress_spec spec;
    float data[RANKS][N], residual[RANKS][N];
    float *dense[RANKS];
};

static void exchange_open(struct exchange *x, const char *text)
{
    struct ddp_err err = DDP_ERR_INIT;
    memset(x, 0, sizeof *x);
    assert_int_equal(ddp_compress_parse(text, &x->spec, &err), 0);
    for (int r = 0; r < RANKS; r++)
        x->dense[r] = ddp_calloc(x->spec.compressor->span(&x->spec, &tensors, 2).first, 4);
}

static void exchange_close(struct exchange *x)
{
    for (int r = 0; r < RANKS; r++)
        free(x->dense[r]);
}

/* Exchanges x->data. Adds the arrays of the ranks in place of the all-reduces. */
static void exchange_run(struct exchange *x, bool average)
{
    for (int round = 0; round <= 2; round++) {
        const struct ddp_span span = x->spec.compressor->span(&x->spec, &tensors, round);
        for (int r = 0; r < RANKS; r++) {
            struct ddp_encode e = {.spec = &x->spec,
                                   .in = x->data[r],
                                   .residual = x->residual[r],
                                   .n = N,
                                   .tensors = &tensors,
                                   .ranks = RANKS,
                                   .average = average,
                                   .out = x->data[r],
                                   .dense = x->dense[r]};
            x->spec.compressor->round(&e, round);
        }
        for (size_t i = span.first; i < span.first + span.count; i++) {
            const float sum = x->dense[0][i] + x->dense[1][i] + x->dense[2][i];
            for (int r = 0; r < RANKS; r++)
                x->dense[r][i] = sum;
        }
    }
}

/* Makes the columns of v [n][RANK] orthonormal. */
static void gram_schmidt(double *v, size_t n)
{
    for (size_t c = 0; c < RANK; c++) {
        for (size_t b = 0; b < c; b++) {
            double dot = 0;
            for (size_t i = 0; i < n; i++)
                dot += v[i * RANK + b] * v[i * RANK + c];
            for (size_t i = 0; i < n; i++)
                v[i * RANK + c] -= dot * v[i * RANK + b];
        }
        double norm = 0;
        for (size_t i = 0; i < n; i++)
            norm += v[i * RANK + c] * v[i * RANK + c];
        for (size_t i = 0; i < n; i++)
            v[i * RANK + c] /= sqrt(norm);
    }
}

/* Approximates sum [rows][cols], and replaces q [cols][RANK] by the next Q. */
static void approximate(double *sum, size_t rows, size_t cols, double *q)
{
    double p[16 * RANK] = {0};
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            for (size_t c = 0; c < RANK; c++)
                p[i * RANK + c] += sum[i * cols + j] * q[j * RANK + c];
    gram_schmidt(p, rows);
    memset(q, 0, cols * RANK * sizeof *q);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            for (size_t c = 0; c < RANK; c++)
                q[j * RANK + c] += sum[i * cols + j] * p[i * RANK + c];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            sum[i * cols + j] = 0;
            for (size_t c = 0; c < RANK; c++)
                sum[i * cols + j] += p[i * RANK + c] * q[j * RANK + c];
        }
}

/* Computes the result of acc [RANKS][N] of a tensor at `at`, and subtracts it from acc. */
static void reference(const struct ddp_tensor *t, size_t at, double acc[RANKS][N], bool average,
                      double *q, double *out)
{
    double sum[512] = {0};
    const size_t rows = t->cols > 2 ? (t->count + t->cols - 1) / t->cols : 0;
    for (int r = 0; r < RANKS; r++)
        for (size_t i = 0; i < t->count; i++)
            sum[i] += acc[r][at + i];
    if (rows > 0)
        approximate(sum, rows, t->cols, q);
    for (size_t i = 0; i < t->count; i++) {
        out[at + i] = average ? sum[i] / RANKS : sum[i];
        for (int r = 0; r < RANKS; r++)
            acc[r][at + i] = rows > 0 ? acc[r][at + i] - sum[i] / RANKS : 0;
    }
}

/* The first Q of the exchange, as [cols][RANK]: its position follows those of earlier matrices. */
static void first_q(const struct exchange *x, size_t at, size_t cols, double *q)
{
    for (size_t j = 0; j < cols; j++)
        for (size_t c = 0; c < RANK; c++)
            q[j * RANK + c] = (double)x->dense[0][at + c * cols + j];
}

static void check_steps(bool average)
{
    static struct exchange x;
    static double acc[RANKS][N], out[N], q[DDP_COUNT_OF(list)][30 * RANK];
    struct ddp_rng rng;
    ddp_rng_init(&rng, 7, 0);
    memset(acc, 0, sizeof acc);
    exchange_open(&x, "powersgd:2");
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < RANKS; r++)
            for (size_t i = 0; i < N; i++) {
                x.data[r][i] = (float)ddp_rng_normal(&rng);
                acc[r][i] += (double)x.data[r][i];
            }
        exchange_run(&x, average);
        for (size_t t = 0, at = 0, factor = 0; t < DDP_COUNT_OF(list); at += list[t++].count) {
            const bool factored = list[t].cols > 2;
            if (step == 0 && factored)
                first_q(&x, factor, list[t].cols, q[t]);
            reference(&list[t], at, acc, average, q[t], out);
            gram_schmidt(q[t], factored ? list[t].cols : 0);
            factor += factored ? RANK * list[t].cols : 0;
        }
        for (size_t i = 0; i < N; i++)
            for (int r = 0; r < RANKS; r++) {
                assert_memory_equal(&x.data[r][i], &x.data[0][i], sizeof(float));
                assert_true(fabs((double)x.data[r][i] - out[i]) < 2e-5);
                assert_true(fabs((double)x.residual[r][i] - acc[r][i]) < 2e-5);
            }
    }
    exchange_close(&x);
}

static void test_reference(void **state)
{
    (void)state;
    check_steps(true);
    check_steps(false);
}

/* A matrix of rank 2 is sent exactly, apart from rounding. Its third column is a combination of the
 * others, so the exchange replaces it, and the result stays the same. */
static void test_low_rank(void **state)
{
    (void)state;
    static struct exchange x;
    exchange_open(&x, "powersgd:3");
    for (int step = 0; step < 2; step++) {
        for (int r = 0; r < RANKS; r++)
            for (size_t i = 0; i < N; i++)
                x.data[r][i] =
                    i >= 7 && i < 367 ? (float)((i - 7) / 30) + (float)((i - 7) % 30) : 0;
        exchange_run(&x, true);
        for (size_t i = 0; i < 360; i++)
            assert_true(fabs((double)x.data[0][7 + i] - (double)(i / 30 + i % 30)) < 1e-4);
    }
    exchange_close(&x);
}

/* A step without gradients, and one with NaN, do not end the compression of later steps. */
static void test_recovery(void **state)
{
    (void)state;
    static struct exchange x;
    exchange_open(&x, "powersgd:2");
    for (int step = 0; step < 4; step++) {
        for (int r = 0; r < RANKS; r++)
            for (size_t i = 0; i < N; i++)
                x.data[r][i] = step == 0 ? 0 : i == 10 && step == 1 ? NAN : (float)(i % 5);
        exchange_run(&x, true);
        bool finite = true;
        for (size_t i = 0; i < N; i++) {
            finite = finite && isfinite(x.data[0][i]);
            assert_true(isfinite(x.residual[0][i]));
        }
        assert_int_equal(finite, step != 1);
        assert_true(step < 2 || x.data[0][8] != 0);
    }
    exchange_close(&x);
}

static void test_arguments(void **state)
{
    (void)state;
    static const char *const bad[] = {"powersgd",    "powersgd:0",    "powersgd:1.5",
                                      "powersgd:65", "powersgd:2:-1", "powersgd:2:x",
                                      "powersgd:2:", "powersgd::3"};
    struct ddp_compress_spec spec;
    struct ddp_err err = DDP_ERR_INIT;
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++) {
        struct ddp_err why = DDP_ERR_INIT;
        assert_int_equal(ddp_compress_parse(bad[i], &spec, &why), DDP_EUSAGE);
    }
    assert_int_equal(ddp_compress_parse("powersgd:4:100", &spec, &err), 0);
    assert_true(spec.argument == 4 && spec.dense_runs == 100);
    assert_true(ddp_compress_keeps(&spec, DDP_FEEDBACK_AUTO));
    assert_int_equal(ddp_compress_flat(10001).cols, 101);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_low_rank),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
