/* Independence and drift of series, and adaptive stopping: error rates over 2,000 synthetic
 * streams. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "stats/series.h"

enum { STREAMS = 2000, LONGEST = 4000 };
enum shape { NORMAL, LOG_NORMAL, BIMODAL, SHAPES };
static const char *const shape_names[] = {"normal", "log-normal", "bimodal"};
/* The true median of each shape. The bimodal shape has its median inside the larger mode A: P(A) =
 * 0.6, so the median is A's quantile 0.5/0.6 = 0.8333, at z = 0.967422. */
static const double medians[] = {100, 100, 100 + 0.967422 * 2};

static double draw(struct ddp_rng *rng, enum shape shape)
{
    double z = ddp_rng_normal(rng);
    switch (shape) {
    case NORMAL:
        return 100 + 5 * z;
    case LOG_NORMAL:
        return 100 * exp(0.3 * z);
    default:
        return (ddp_rng_double(rng) < 0.6 ? 100 : 200) + 2 * z;
    }
}

static void test_fixed_coverage(void **state)
{
    static const size_t lengths[] = {20, 50, 200, 1000};
    static double sample[1000];
    struct ddp_rng rng;
    ddp_rng_init(&rng, 21, 0);
    for (enum shape shape = NORMAL; shape < SHAPES; shape++)
        for (size_t k = 0; k < DDP_COUNT_OF(lengths); k++) {
            int covered = 0;
            for (int t = 0; t < STREAMS; t++) {
                struct ddp_summary s;
                for (size_t i = 0; i < lengths[k]; i++)
                    sample[i] = draw(&rng, shape);
                assert_int_equal(ddp_summarize(sample, lengths[k], &s), 0);
                covered += s.ci95_lo <= medians[shape] && medians[shape] <= s.ci95_hi;
            }
            print_message("# %s, n %zu: covered %.4f\n", shape_names[shape], lengths[k],
                          covered / (double)STREAMS);
            assert_true(covered >= 0.945 * STREAMS);
        }
}

static void test_adaptive_coverage(void **state)
{
    static double sample[LONGEST];
    struct ddp_rng rng;
    ddp_rng_init(&rng, 22, 0);
    for (enum shape shape = NORMAL; shape < SHAPES; shape++) {
        int covered = 0;
        double total = 0;
        for (int t = 0; t < STREAMS; t++) {
            struct ddp_summary s = {.n = 0};
            size_t n = 0;
            do {
                size_t look = DDP_MIN(ddp_stop_next(n), (size_t)LONGEST);
                for (; n < look; n++)
                    sample[n] = draw(&rng, shape);
                assert_int_equal(ddp_summarize(sample, n, &s), 0);
            } while (n < LONGEST && !ddp_stop_precise(&s, 0.02));
            covered += s.ci95_lo <= medians[shape] && medians[shape] <= s.ci95_hi;
            total += (double)n;
        }
        print_message("# %s, adaptive: covered %.4f, mean n %.0f\n", shape_names[shape],
                      covered / (double)STREAMS, total / STREAMS);
        assert_true(covered >= 0.92 * STREAMS);
    }
}

/* Measures how often a stream of n samples is judged as drifting or autocorrelated. ar:
 * coefficient of the autocorrelation; drift: over the whole run, in standard deviations. */
static void rates(size_t n, enum shape shape, double ar, double drift, double *drifting,
                  double *autocorrelated, double *either)
{
    static double sample[LONGEST];
    struct ddp_rng rng;
    ddp_rng_init(&rng, 23, n + (size_t)shape);
    int counts[3] = {0};
    for (int t = 0; t < STREAMS; t++) {
        struct ddp_series s;
        double before = ddp_rng_normal(&rng) / sqrt(1 - ar * ar);
        for (size_t i = 0; i < n; i++) {
            before = ar * before + ddp_rng_normal(&rng);
            sample[i] =
                ar != 0 || drift != 0 ? before + drift * (double)i / (double)n : draw(&rng, shape);
        }
        assert_int_equal(ddp_series_judge(sample, n, &s), 0);
        counts[0] += s.drifting;
        counts[1] += s.autocorrelated;
        counts[2] += s.drifting || s.autocorrelated;
    }
    *drifting = counts[0] / (double)STREAMS;
    *autocorrelated = counts[1] / (double)STREAMS;
    *either = counts[2] / (double)STREAMS;
    print_message(
        "# n %zu, %s, AR %.1f, drift %.1f: drifting %.4f, autocorrelated %.4f, either %.4f\n", n,
        shape_names[shape], ar, drift, *drifting, *autocorrelated, *either);
}

static void test_judgement(void **state)
{
    double drifting, autocorrelated, either;
    for (enum shape shape = NORMAL; shape < SHAPES; shape++)
        for (size_t n = 20; n <= 2000; n *= 10) {
            rates(n, shape, 0, 0, &drifting, &autocorrelated, &either);
            assert_true(either <= 0.05);
        }
    rates(200, NORMAL, 0.6, 0, &drifting, &autocorrelated, &either);
    assert_true(autocorrelated >= 0.9);
    assert_true(drifting <= 0.1); /* the stream wanders, but has no trend */
    rates(200, NORMAL, 0, 1, &drifting, &autocorrelated, &either);
    assert_true(drifting >= 0.9);
    rates(200, NORMAL, 0, -1, &drifting, &autocorrelated, &either);
    assert_true(drifting >= 0.9);
}

static void test_edges(void **state)
{
    double same[50];
    struct ddp_series s;
    for (int i = 0; i < 50; i++)
        same[i] = 7;
    assert_int_equal(ddp_series_judge(same, 50, &s), 0);
    assert_true(!s.drifting && !s.autocorrelated && s.trend == 0);
    for (int i = 0; i < 19; i++)
        same[i] = i;
    assert_int_equal(ddp_series_judge(same, 19, &s), 0); /* too few samples to judge */
    assert_true(!s.drifting);
    for (int i = 0; i < 50; i++)
        same[i] = i;
    assert_int_equal(ddp_series_judge(same, 50, &s), 0);
    assert_true(s.drifting && s.trend > 0.999);
    /* the medians of 0 to 15 and of 34 to 49 */
    assert_true(fabs(s.shift - (41.5 / 7.5 - 1)) < 1e-12);
}

static void test_looks(void **state)
{
    static const size_t looks[] = {20, 30, 45, 67, 100, 150, 225};
    size_t n = 0;
    for (size_t i = 0; i < DDP_COUNT_OF(looks); i++) {
        n = ddp_stop_next(n);
        assert_int_equal(n, looks[i]);
    }
    assert_int_equal(ddp_stop_next(21), 30);
    struct ddp_summary s = {.median = 100, .ci95_lo = 98.1, .ci95_hi = 102};
    assert_true(ddp_stop_precise(&s, 0.02));
    assert_false(ddp_stop_precise(&s, 0.019));
    s.ci95_lo = NAN;
    assert_false(ddp_stop_precise(&s, 0.5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed_coverage), cmocka_unit_test(test_adaptive_coverage),
        cmocka_unit_test(test_judgement),      cmocka_unit_test(test_edges),
        cmocka_unit_test(test_looks),
    };
    return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
