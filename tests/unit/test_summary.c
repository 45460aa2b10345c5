/* Summary statistics: compared with values computed by hand and by exact integer arithmetic. */
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
#include "stats/summary.h"

static void test_interval_ranks(void **state)
{
    /* Computed with exact integer sums of binomial coefficients. n = 6: 1 - 2/64 = 0.96875; n = 20:
     * P(B <= 5) = 21700/2^20 = 0.0207, P(B <= 6) = 60460/2^20 = 0.058. */
    static const size_t table[][3] = {
        {6, 1, 6},
        {7, 1, 7},
        {8, 1, 8},
        {9, 2, 8},
        {10, 2, 9},
        {11, 2, 10},
        {12, 3, 10},
        {20, 6, 15},
        {30, 10, 21},
        {50, 18, 33},
        {99, 40, 60},
        {100, 40, 61},
        {1000, 469, 532},
        {1074, 505, 570},
        {1075, 505, 571},
        {1076, 506, 571},
        {2000, 956, 1045},
        {5000, 2431, 2570},
        {20000, 9861, 10140},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(table); i++) {
        size_t lo = 0, hi = 0;
        assert_int_equal(ddp_median_interval(table[i][0], 0.95, &lo, &hi), 0);
        if (lo != table[i][1] || hi != table[i][2])
            fail_msg("n %zu: ranks %zu..%zu, not %zu..%zu", table[i][0], lo, hi, table[i][1],
                     table[i][2]);
    }
    size_t lo = 77, hi = 77;
    for (size_t n = 0; n < 6; n++)
        assert_int_equal(ddp_median_interval(n, 0.95, &lo, &hi), -1);
    assert_int_equal(lo, 77);
    assert_int_equal(ddp_median_interval(100, 0.99, &lo, &hi), 0);
    assert_int_equal(lo, 37);
    assert_int_equal(hi, 64);
    /* A level that is met exactly counts as met. */
    assert_int_equal(ddp_median_interval(6, 0.96875, &lo, &hi), 0);
    assert_int_equal(lo, 1);
}

static void test_interval_of_a_million(void **state)
{
    size_t lo, hi;
    assert_int_equal(ddp_median_interval(1000000, 0.95, &lo, &hi), 0);
    /* Normal approximation: n/2 -+ 1.959964 sqrt(n)/2 = 499020.0 and 500980.0. */
    assert_true(lo >= 499018 && lo <= 499022);
    assert_int_equal(lo + hi, 1000001);
}

static void test_interval_covers(void **state)
{
    /* Exponential samples: median ln 2. Coverage of n = 20 is 0.9586 by theory; 4000 trials have a
     * standard deviation of 0.0031. */
    enum { N = 20, TRIALS = 4000 };
    struct ddp_rng rng;
    int covered = 0;
    ddp_rng_init(&rng, 11, 0);
    for (int t = 0; t < TRIALS; t++) {
        double sample[N];
        struct ddp_summary s;
        for (int i = 0; i < N; i++)
            sample[i] = -log(1 - ddp_rng_double(&rng));
        assert_int_equal(ddp_summarize(sample, N, &s), 0);
        covered += s.ci95_lo <= log(2) && log(2) <= s.ci95_hi;
    }
    assert_true(fabs(covered / (double)TRIALS - 0.9586) < 5 * 0.0031);
}

static void test_small(void **state)
{
    /* n = 6, sorted 1 2 4 8 16 32: mean 63/6 = 10.5; squares about it: 90.25 + 72.25 + 42.25 +
     * 6.25 + 30.25 + 462.25 = 703.5, over 5 = 140.7. */
    static const double sample[] = {8, 1, 32, 4, 2, 16};
    struct ddp_summary s;
    assert_int_equal(ddp_summarize(sample, 6, &s), 0);
    assert_int_equal(s.n, 6);
    assert_true(s.median == 6);
    assert_true(s.min == 1 && s.max == 32);
    assert_true(s.p25 == 2);  /* ceil(1.5) = 2nd */
    assert_true(s.p75 == 16); /* ceil(4.5) = 5th */
    assert_true(s.ci95_lo == 1 && s.ci95_hi == 32);
    assert_true(s.mean == 10.5);
    assert_true(fabs(s.stddev - sqrt(140.7)) < 1e-12);
    assert_true(isnan(s.p95) && isnan(s.p99));
    assert_true(sample[0] == 8); /* ddp_summarize() sorts a copy */
}

static void test_what_does_not_exist(void **state)
{
    static const double sample[] = {3, 1, 2, 5, 4};
    struct ddp_summary s;
    assert_int_equal(ddp_summarize(sample, 0, &s), 0);
    assert_int_equal(s.n, 0);
    assert_true(isnan(s.median) && isnan(s.mean) && isnan(s.min) && isnan(s.max) && isnan(s.p25));
    assert_int_equal(ddp_summarize(sample, 1, &s), 0);
    assert_true(s.median == 3 && s.p25 == 3 && s.p75 == 3 && s.min == 3 && s.max == 3);
    assert_true(isnan(s.stddev) && isnan(s.ci95_lo));
    assert_int_equal(ddp_summarize(sample, 2, &s), 0);
    assert_true(s.median == 2 && fabs(s.stddev - sqrt(2)) < 1e-15);
    assert_int_equal(ddp_summarize(sample, 5, &s), 0);
    assert_true(s.median == 3 && isnan(s.ci95_lo) && isnan(s.ci95_hi));
}

static void test_percentiles(void **state)
{
    enum { N = 1000 };
    double sample[N];
    struct ddp_summary s;
    for (int i = 0; i < N; i++)
        sample[i] = (i * 37) % N + 1; /* 1..1000 in another order */
    assert_int_equal(ddp_summarize(sample, N, &s), 0);
    assert_true(s.p25 == 250 && s.p75 == 750 && s.p95 == 950 && s.p99 == 990);
    assert_true(s.median == 500.5);
    assert_true(s.ci95_lo == 469 && s.ci95_hi == 532);
    for (int i = 0; i < N; i++)
        sample[i] = i + 1;
    assert_int_equal(ddp_summarize(sample, 20, &s), 0);
    assert_true(s.p95 == 19 && isnan(s.p99));
    assert_int_equal(ddp_summarize(sample, 19, &s), 0);
    assert_true(isnan(s.p95));
    assert_int_equal(ddp_summarize(sample, 99, &s), 0);
    assert_true(isnan(s.p99));
    assert_int_equal(ddp_summarize(sample, 100, &s), 0);
    assert_true(s.p99 == 99);
}

static void test_large_numbers_that_differ_little(void **state)
{
    /* The sum of squares minus the square of the sum would lose all digits. */
    static const double sample[] = {1e15 + 1, 1e15 + 2, 1e15 + 3};
    struct ddp_summary s;
    assert_int_equal(ddp_summarize(sample, 3, &s), 0);
    assert_true(s.mean == 1e15 + 2);
    assert_true(s.stddev == 1);
}

static void test_median(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {8, 2, 1, 4}, huge[] = {1.5e308, 1.7e308};
    assert_true(isnan(ddp_median(odd, 0)));
    assert_true(ddp_median(odd, 1) == 5);
    assert_true(ddp_median(odd, 3) == 3 && odd[0] == 1 && odd[2] == 5);
    assert_true(ddp_median(even, 4) == 3);
    assert_true(ddp_median(huge, 2) == 1.6e308); /* the sum would overflow */
    assert_true(ddp_sorted_median(even, 3) == 2);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Values of many magnitudes and both signs, and times of a coarse clock, of which many are equal.
 */
static void test_sort(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double before[N], v[N], want[N];
    static size_t index[N];
    static const double some[] = {0, -0.0, INFINITY, -INFINITY, 5e-324, -5e-324, 1, -1, 1e308};
    struct ddp_rng rng;
    ddp_rng_init(&rng, 5, 0);
    for (size_t n = 0; n <= N; n += n < 300 ? 1 : 470)
        for (int coarse = 0; coarse < 2; coarse++) {
            for (size_t i = 0; i < n; i++) {
                const double x = ddp_rng_normal(&rng);
                before[i] = coarse       ? floor(fabs(x) * 10) * 10
                            : i % 7 == 0 ? some[i / 7 % DDP_COUNT_OF(some)]
                                         : x * exp2((double)(i % 600) - 300);
            }
            memcpy(want, before, sizeof want);
            qsort(want, n, sizeof *want, compare);
            memcpy(v, before, sizeof v);
            ddp_sort_doubles(v, n);
            for (size_t i = 0; i < n; i++)
                assert_true(v[i] == want[i]);
            memcpy(v, before, sizeof v);
            assert_int_equal(ddp_sort_indexed(v, index, n), 0);
            for (size_t i = 0; i < n; i++) {
                assert_true(v[i] == want[i] && v[i] == before[index[i]]);
                if (i > 0 && v[i] == v[i - 1] && v[i] != 0)
                    assert_true(index[i] > index[i - 1]);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval_ranks),
        cmocka_unit_test(test_interval_of_a_million),
        cmocka_unit_test(test_interval_covers),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_what_does_not_exist),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_large_numbers_that_differ_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
