/* The test of accuracies: quantiles of Student's t, the rules by hand, and error rates on synthetic
 * differences. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "stats/noninferior.h"

static const struct ddp_noninferior_rule rule = {
    .margin = 0.01, .pass_level = 0.05, .fail_level = 0.05};

/* Published quantiles of Student's t distribution, as R's qt() prints them. */
static void test_quantiles(void **state)
{
    static const struct {
        double p;
        size_t df;
        double t;
    } known[] = {
        {0.95, 1, 6.313751515},    {0.95, 2, 2.919985580},   {0.95, 3, 2.353363435},
        {0.95, 4, 2.131846786},    {0.95, 5, 2.015048373},   {0.95, 9, 1.833112933},
        {0.95, 10, 1.812461123},   {0.95, 30, 1.697260887},  {0.95, 99, 1.660391156},
        {0.975, 1, 12.706204736},  {0.975, 7, 2.364624252},  {0.99, 4, 3.746947388},
        {0.999, 1, 318.308838986}, {0.999, 20, 3.551808343},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(known); i++) {
        assert_true(fabs(ddp_student_t(known[i].p, known[i].df) - known[i].t) < 1e-6);
        assert_true(fabs(ddp_student_t(1 - known[i].p, known[i].df) + known[i].t) < 1e-6);
    }
    assert_true(fabs(ddp_student_t(0.5, 3)) < 1e-6);
}

static void test_rules(void **state)
{
    static const double same[] = {-0.001, 0.001, 0, 0.002, -0.002};
    static const double lost[] = {-0.05, -0.06, -0.055, -0.045, -0.05};
    static const double wide[] = {-0.02, 0.02, 0, -0.01, 0.01};
    struct ddp_noninferior t;
    ddp_noninferior_decide(same, 5, &rule, &t);
    assert_int_equal(t.state, DDP_NOT_WORSE);
    assert_int_equal(t.seeds_needed, 0);
    /* deviation sqrt(2.5e-6), bounds 2.131846786 * deviation / sqrt(5) around 0 */
    assert_true(fabs(t.mean) < 1e-12 && fabs(t.deviation - 0.001581138830) < 1e-9);
    assert_true(fabs(t.lower + 0.001507443319) < 1e-9 && fabs(t.upper + t.lower) < 1e-12);
    ddp_noninferior_decide(lost, 5, &rule, &t);
    assert_int_equal(t.state, DDP_WORSE);
    ddp_noninferior_decide(wide, 5, &rule, &t);
    assert_int_equal(t.state, DDP_ACCURACY_UNCERTAIN);
    /* 1.739607 * 0.0158114 / sqrt(n) < 0.01 first holds for n = 9: t(8) = 1.859548 */
    assert_int_equal(t.seeds_needed, 9);
    ddp_noninferior_decide(wide, 1, &rule, &t);
    assert_int_equal(t.state, DDP_ACCURACY_UNCERTAIN);
    assert_int_equal(t.seeds_needed, 2);
    assert_true(isnan(t.lower) && isnan(t.upper) && fabs(t.mean + 0.02) < 1e-12);
    ddp_noninferior_decide(wide, 0, &rule, &t);
    assert_int_equal(t.state, DDP_ACCURACY_UNCERTAIN);
    assert_true(isnan(t.mean) && t.seeds == 0);
    static const double at_margin[] = {-0.03, 0.01001};
    ddp_noninferior_decide(at_margin, 2, &rule, &t);
    assert_int_equal(t.seeds_needed, 0); /* more than the limit */
}

/* Equal differences do not have the deviation 0 if the accuracies are coarse. */
static void test_equal_differences(void **state)
{
    static const double equal[] = {-0.008, -0.008}, none[] = {0, 0};
    struct ddp_noninferior_rule coarse = rule;
    struct ddp_noninferior t;
    ddp_noninferior_decide(equal, 2, &rule, &t);
    assert_int_equal(t.state, DDP_NOT_WORSE);
    coarse.least_deviation = 0.004;
    ddp_noninferior_decide(equal, 2, &coarse, &t);
    assert_int_equal(t.state, DDP_ACCURACY_UNCERTAIN);
    assert_true(t.seeds_needed > 2);
    coarse.least_deviation = 0.0001;
    ddp_noninferior_decide(none, 2, &coarse, &t);
    assert_int_equal(t.state, DDP_NOT_WORSE);
}

enum { TRIALS = 20000 };

/* An accuracy of about 0.9, a multiple of one of `images` images if images > 0. */
static double draw(struct ddp_rng *rng, double mean, int images)
{
    const double d = mean + 0.005 * ddp_rng_normal(rng);
    return images > 0 ? round(d * images) / images : d;
}

/* With a mean difference of -margin, both errors have at most their level. Their rates are not much
 * smaller either, except with the least deviation of coarse accuracies. */
static void test_error_rates(void **state)
{
    static const size_t seeds[] = {2, 3, 5, 10};
    const double noise = 3 * sqrt(0.05 * 0.95 / TRIALS);
    struct ddp_rng rng;
    ddp_rng_init(&rng, 17, 4);
    for (size_t s = 0; s < DDP_COUNT_OF(seeds); s++)
        for (int coarse = 0; coarse < 2; coarse++) {
            const int images = coarse ? 1000 : 0;
            struct ddp_noninferior_rule r = rule;
            int pass = 0, fail = 0;
            r.least_deviation = coarse ? 1 / (1000 * sqrt(6)) : 0;
            for (int t = 0; t < TRIALS; t++) {
                double d[10];
                struct ddp_noninferior out;
                for (size_t i = 0; i < seeds[s]; i++)
                    d[i] = draw(&rng, 0.9 - r.margin, images) - draw(&rng, 0.9, images);
                ddp_noninferior_decide(d, seeds[s], &r, &out);
                pass += out.state == DDP_NOT_WORSE;
                fail += out.state == DDP_WORSE;
            }
            print_message("# %zu seeds, %s: false PASS %.4f, false FAIL %.4f\n", seeds[s],
                          coarse ? "coarse" : "exact", pass / (double)TRIALS,
                          fail / (double)TRIALS);
            assert_true(pass <= (0.05 + noise) * TRIALS && fail <= (0.05 + noise) * TRIALS);
            assert_true(coarse || pass >= (0.05 - noise) * TRIALS);
            assert_true(coarse || fail >= (0.05 - noise) * TRIALS);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_equal_differences),
        cmocka_unit_test(test_error_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
