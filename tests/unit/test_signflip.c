/* The sign-flip test, its estimate and Holm's correction: compared with an enumeration of all sign
 * patterns, published tables, and a calculation by hand. */
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
#include "stats/signflip.h"

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The definition of the test: enumerates all sign patterns of the clipped differences. */
static double p_by_enumeration(const double *d, size_t n)
{
    double sorted[16], score[16], observed = 0;
    size_t at_least = 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(d[i]);
    qsort(sorted, n, sizeof *sorted, by_size);
    double clip = 2 * sorted[(size_t)ceil(0.75 * (double)n) - 1];
    for (size_t i = 0; i < n; i++) {
        score[i] = fmin(fabs(d[i]), clip);
        observed += d[i] > 0 ? score[i] : -score[i];
    }
    for (size_t signs = 0; signs < (size_t)1 << n; signs++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += signs >> i & 1 ? score[i] : -score[i];
        at_least += sum >= observed - 1e-9;
    }
    return (double)at_least / (double)((size_t)1 << n);
}

static void test_p_is_exact(void **state)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 5, 0);
    for (int trial = 0; trial < 200; trial++) {
        double d[10], p = -1;
        size_t n = 1 + ddp_rng_below(&rng, DDP_COUNT_OF(d));
        /* Half of the trials use a coarse grid, which gives ties and zeros. */
        for (size_t i = 0; i < n; i++)
            d[i] = trial % 2 ? ddp_rng_normal(&rng) : (double)ddp_rng_below(&rng, 7) - 3;
        assert_int_equal(ddp_signflip_p(d, n, &p), 0);
        double expected = p_by_enumeration(d, n);
        if (fabs(p - expected) > 1e-12)
            fail_msg("trial %d, n %zu: p %.15g, not %.15g", trial, n, p, expected);
    }
}

static void test_p_extremes(void **state)
{
    static const double all_up[] = {1, 2, 3, 4, 5}, zeros[] = {0, 0};
    double p = -1;
    assert_int_equal(ddp_signflip_p(all_up, 5, &p), 0);
    assert_true(p == 1.0 / 32);
    assert_true(p == ddp_signflip_least_p(5));
    assert_int_equal(ddp_signflip_p(zeros, 2, &p), 0);
    assert_true(p == 1);
    assert_int_equal(ddp_signflip_p(NULL, 0, &p), 0);
    assert_true(p == 1);
    /* An outlier counts no more than the clip, here 8. */
    double mild[] = {1, 2, 3, -4, 8}, wild[] = {1, 2, 3, -4, 5e9}, q;
    assert_int_equal(ddp_signflip_p(mild, 5, &p), 0);
    assert_int_equal(ddp_signflip_p(wild, 5, &q), 0);
    assert_true(p == q);
}

static void test_least_pairs(void **state)
{
    assert_int_equal(ddp_signflip_least_pairs(1, 0.05), 5);    /* log2(20) = 4.3 */
    assert_int_equal(ddp_signflip_least_pairs(12, 0.05), 8);   /* log2(240) = 7.9 */
    assert_int_equal(ddp_signflip_least_pairs(100, 0.05), 11); /* log2(2000) = 10.97 */
}

static void test_estimate(void **state)
{
    /* Walsh averages of 1 2 4: 1 1.5 2 2.5 3 4: centre 2.25. n = 3: P(T+ <= 0) = 1/8 > 0.05. */
    static const double three[] = {4, 1, 2};
    double centre, lower, upper;
    assert_int_equal(ddp_hodges_lehmann(three, 3, 0.05, &centre, &lower, &upper), 0);
    assert_true(centre == 2.25);
    assert_true(isinf(lower) && lower < 0 && isinf(upper) && upper > 0);
    /* An alpha of 1/8 is met exactly: all three differences must lie on one side. */
    assert_int_equal(ddp_hodges_lehmann(three, 3, 0.125, &centre, &lower, &upper), 0);
    assert_true(fabs(lower - 1) < 1e-9 && fabs(upper - 4) < 1e-9);
}

static void test_bounds_cover(void **state)
{
    /* A symmetric distribution with two modes 5 apart, noise, and centre 1. Each one-sided bound
     * may miss the centre in at most 5 %; 3000 trials have a standard deviation of 0.4 %. */
    enum { TRIALS = 3000 };
    struct ddp_rng rng;
    int low = 0, high = 0;
    ddp_rng_init(&rng, 7, 0);
    for (int t = 0; t < TRIALS; t++) {
        double d[12], centre, lower, upper;
        for (int i = 0; i < 12; i++)
            d[i] = 1 + ddp_rng_normal(&rng) + (ddp_rng_double(&rng) < 0.5 ? -2.5 : 2.5);
        assert_int_equal(ddp_hodges_lehmann(d, 12, 0.05, &centre, &lower, &upper), 0);
        low += lower > 1;
        high += upper < 1;
    }
    print_message("# lower bound misses %.4f, upper %.4f\n", low / (double)TRIALS,
                  high / (double)TRIALS);
    assert_true(low <= 0.062 * TRIALS && high <= 0.062 * TRIALS);
    assert_true(low >= 0.03 * TRIALS && high >= 0.03 * TRIALS); /* the bounds are not too wide */
}

static void test_most_pairs(void **state)
{
    double d[DDP_SIGNFLIP_MAX], p;
    for (int i = 0; i < DDP_SIGNFLIP_MAX; i++)
        d[i] = 1 + i;
    assert_int_equal(ddp_signflip_p(d, DDP_SIGNFLIP_MAX, &p), 0);
    assert_true(p == ddp_signflip_least_p(DDP_SIGNFLIP_MAX));
    for (int i = 0; i < DDP_SIGNFLIP_MAX; i++)
        d[i] = i % 2 ? 1 : -1;
    assert_int_equal(ddp_signflip_p(d, DDP_SIGNFLIP_MAX, &p), 0);
    /* P(B >= 20), B ~ Binomial(40, 1/2) */
    assert_true(fabs(p - 0.562685) < 1e-6);
}

static void test_bounds_and_test_agree(void **state)
{
    /* The bound is above zero exactly when the test is significant (no ties, no zeros). */
    struct ddp_rng rng;
    ddp_rng_init(&rng, 6, 0);
    int significant = 0;
    for (int trial = 0; trial < 300; trial++) {
        double d[12], p, centre, lower, upper;
        for (int i = 0; i < 12; i++)
            d[i] = ddp_rng_normal(&rng) + 0.5;
        assert_int_equal(ddp_signflip_p(d, 12, &p), 0);
        assert_int_equal(ddp_hodges_lehmann(d, 12, 0.05, &centre, &lower, &upper), 0);
        assert_true((p <= 0.05) == (lower > 0));
        assert_true(lower <= centre && centre <= upper);
        significant += p <= 0.05;
    }
    assert_true(significant > 50 && significant < 250);
}

static void test_holm(void **state)
{
    /* Sorted .01 .02 .03 .04 times 4 3 2 1 gives .04 .06 .06 .06, which must not decrease. */
    static const double p[] = {0.04, 0.01, 0.03, 0.02};
    double adjusted[4];
    assert_int_equal(ddp_holm(p, 4, adjusted), 0);
    assert_true(fabs(adjusted[1] - 0.04) < 1e-15 && fabs(adjusted[3] - 0.06) < 1e-15);
    assert_true(fabs(adjusted[2] - 0.06) < 1e-15 && fabs(adjusted[0] - 0.06) < 1e-15);
    static const double large[] = {0.9, 0.8};
    assert_int_equal(ddp_holm(large, 2, adjusted), 0);
    assert_true(adjusted[0] == 1 && adjusted[1] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_p_is_exact),
        cmocka_unit_test(test_p_extremes),
        cmocka_unit_test(test_least_pairs),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_bounds_and_test_agree),
        cmocka_unit_test(test_bounds_cover),
        cmocka_unit_test(test_most_pairs),
        cmocka_unit_test(test_holm),
    };
    return cmocka_run_group_tests_name("sign-flip test", tests, NULL, NULL);
}
