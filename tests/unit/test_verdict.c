/* The gate's decision: error rates on synthetic runs, and the rules by hand. */
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
#include "stats/sequential.h"
#include "stats/verdict.h"

enum { CELLS = 12, PAIRS = 12, PAIRS_MAX = 20, TRIALS = 2000 };

static const struct ddp_verdict_rule rule = {.min_effect = 0.05, .level = DDP_VERDICT_LEVEL};

/* The median of a run: two modes 3.6 % apart and noise, with a joint coefficient of variation of
 * 2.7 %: sqrt(1.8^2 + 2.0^2). */
static double launch(struct ddp_rng *rng)
{
    return (ddp_rng_double(rng) < 0.5 ? 98.2 : 101.8) + 2.0 * ddp_rng_normal(rng);
}

static void count_trials(int pairs, double slow_down, int *fail, int *inconclusive, int *elsewhere)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 31, (uint64_t)(slow_down * 1000));
    *fail = *inconclusive = *elsewhere = 0;
    for (int t = 0; t < TRIALS; t++) {
        double base[CELLS * PAIRS_MAX], next[CELLS * PAIRS_MAX];
        struct ddp_cell cells[CELLS];
        enum ddp_verdict verdict;
        for (int i = 0; i < CELLS * pairs; i++) {
            base[i] = launch(&rng);
            next[i] = launch(&rng) * (i % CELLS == 4 ? 1 + slow_down : 1);
        }
        assert_int_equal(
            ddp_verdict_decide(base, next, CELLS, (size_t)pairs, &rule, cells, &verdict), 0);
        *fail += verdict == DDP_VERDICT_FAIL;
        *inconclusive += verdict == DDP_VERDICT_INCONCLUSIVE;
        for (int c = 0; c < CELLS; c++)
            *elsewhere += c != 4 && cells[c].state == DDP_CELL_SLOWER;
    }
}

static void run_trials(int pairs, double slow_down, int *fail, int *inconclusive, int *elsewhere)
{
    count_trials(pairs, slow_down, fail, inconclusive, elsewhere);
    print_message("# %d pairs, slow-down %.0f %%: fail %.4f, inconclusive %.4f\n", pairs,
                  slow_down * 100, *fail / (double)TRIALS, *inconclusive / (double)TRIALS);
}

static void test_error_rates(void **state)
{
    int fail, inconclusive, elsewhere;
    run_trials(PAIRS, 0, &fail, &inconclusive, &elsewhere);
    assert_true(fail <= 0.01 * TRIALS);
    assert_true(inconclusive <= 0.10 * TRIALS);
    run_trials(PAIRS, 0.10, &fail, &inconclusive, &elsewhere);
    assert_true(fail >= 0.97 * TRIALS);
    assert_true(elsewhere <= 0.01 * TRIALS);
}

/* Fills cell `cell` of `cells` in n pairs. */
static void fill(double *base, double *next, size_t cells, size_t cell, size_t n, double ratio)
{
    for (size_t i = 0; i < n; i++) {
        base[i * cells + cell] = 100 + (double)i;
        next[i * cells + cell] = base[i * cells + cell] * ratio * (1 + 0.0001 * (double)i);
    }
}

static void test_rules(void **state)
{
    double base[2 * 8], next[2 * 8];
    struct ddp_cell cells[2];
    enum ddp_verdict verdict;
    fill(base, next, 2, 0, 8, 1.00);
    fill(base, next, 2, 1, 8, 0.80);
    assert_int_equal(ddp_verdict_decide(base, next, 2, 8, &rule, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_PASS);
    assert_int_equal(cells[0].state, DDP_CELL_SAME);
    assert_int_equal(cells[1].state, DDP_CELL_FASTER);
    assert_true(fabs(cells[1].ratio - 0.80) < 0.001);

    fill(base, next, 2, 0, 8, 1.10);
    assert_int_equal(ddp_verdict_decide(base, next, 2, 8, &rule, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_FAIL);
    assert_int_equal(cells[0].state, DDP_CELL_SLOWER);
    assert_true(cells[0].p == 1.0 / 256 && cells[0].p_holm == 2.0 / 256);

    /* Significant, but smaller than the least effect that matters. */
    fill(base, next, 2, 0, 8, 1.03);
    assert_int_equal(ddp_verdict_decide(base, next, 2, 8, &rule, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_PASS);

    /* One cell is missing from all new runs. */
    for (int i = 0; i < 8; i++)
        next[2 * i] = NAN;
    assert_int_equal(ddp_verdict_decide(base, next, 2, 8, &rule, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_INCONCLUSIVE);
    assert_int_equal(cells[0].state, DDP_CELL_MISSING);
    assert_true(isnan(cells[0].ratio));

    /* Too few pairs to show anything: the verdict is INCONCLUSIVE. */
    fill(base, next, 1, 0, 3, 2.0);
    assert_int_equal(ddp_verdict_decide(base, next, 1, 3, &rule, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_INCONCLUSIVE);
    assert_int_equal(ddp_verdict_decide(base, next, 0, 3, &rule, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_INCONCLUSIVE);
}

static void test_one_outlier_decides_nothing(void **state)
{
    double base[12], next[12];
    struct ddp_cell cell;
    enum ddp_verdict verdict;
    fill(base, next, 1, 0, 12, 1.00);
    next[5] *= 50;
    assert_int_equal(ddp_verdict_decide(base, next, 1, 12, &rule, &cell, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_PASS);
    fill(base, next, 1, 0, 12, 1.20);
    next[5] /= 50;
    assert_int_equal(ddp_verdict_decide(base, next, 1, 12, &rule, &cell, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_FAIL);
}

/* A gate that decides after 8 pairs and then after every 4, up to 20. (`ddpbench gate` goes on to
 * 32; tests with so many pairs take too long here.) The base and new times of all cells have the
 * standard deviation `noise`, and the new times of the first cell are longer by `slow_down`.
 * Returns the verdict, and the pairs used in *used. */
enum { LOOKS = 4, MOST_PAIRS = 20 };

static enum ddp_verdict run_sequential(struct ddp_rng *rng, size_t cells, double noise,
                                       double slow_down, const double *level, int *used)
{
    double base[3 * MOST_PAIRS], next[3 * MOST_PAIRS];
    struct ddp_cell out[3];
    enum ddp_verdict verdict = DDP_VERDICT_INCONCLUSIVE;
    for (size_t i = 0; i < cells * MOST_PAIRS; i++) {
        base[i] = exp(noise * ddp_rng_normal(rng));
        next[i] = exp(noise * ddp_rng_normal(rng)) * (i % cells == 0 ? 1 + slow_down : 1);
    }
    for (int look = 0; look < LOOKS && verdict == DDP_VERDICT_INCONCLUSIVE; look++) {
        const struct ddp_verdict_rule at = {.min_effect = 0.05, .level = level[look]};
        *used = 8 + 4 * look;
        assert_int_equal(ddp_verdict_decide(base, next, cells, (size_t)*used, &at, out, &verdict),
                         0);
    }
    return verdict;
}

struct sequential_rates {
    double fail, pass, pairs; /* fractions of the trials, and the mean number of pairs */
};

static struct sequential_rates sequential_rates(int trials, size_t cells, double noise,
                                                double slow_down, const double *level)
{
    struct sequential_rates rates = {0, 0, 0};
    struct ddp_rng rng;
    ddp_rng_init(&rng, 29, (uint64_t)(noise * 1e6 + slow_down * 1e3));
    for (int t = 0; t < trials; t++) {
        int used = 0;
        const enum ddp_verdict v = run_sequential(&rng, cells, noise, slow_down, level, &used);
        rates.fail += (v == DDP_VERDICT_FAIL) / (double)trials;
        rates.pass += (v == DDP_VERDICT_PASS) / (double)trials;
        rates.pairs += used / (double)trials;
    }
    print_message(
        "# %zu cells, noise %.1f %%, slow-down %.0f %%: fail %.4f, pass %.4f, %.1f pairs\n", cells,
        noise * 100, slow_down * 100, rates.fail, rates.pass, rates.pairs);
    return rates;
}

/* The rates of a sequential gate are highest where the true slow-down is exactly the effect that
 * counts. A FAIL and a PASS are then both errors. 0.0119: three standard errors of
 * a rate of 5 % in 3,000 trials. */
static void test_sequential_error_rates(void **state)
{
    static const int pairs[LOOKS] = {8, 12, 16, 20};
    const double most = DDP_VERDICT_LEVEL + 0.0119;
    double level[LOOKS], fixed[LOOKS];
    assert_int_equal(ddp_sequential_levels(pairs, LOOKS, DDP_VERDICT_LEVEL, level), 0);
    const struct sequential_rates edge = sequential_rates(3000, 1, 0.05, 0.05, level);
    assert_true(edge.fail <= most && edge.pass <= most);
    const struct sequential_rates same = sequential_rates(700, 3, 0.027, 0, level);
    assert_true(same.fail <= 0.005 && same.pass >= 0.95 && same.pairs < 14);
    const struct sequential_rates slower = sequential_rates(700, 3, 0.027, 0.10, level);
    assert_true(slower.fail >= 0.98 && slower.pairs < 14);
    /* Without alpha spending the errors exceed the level, so this test can fail. */
    for (int look = 0; look < LOOKS; look++)
        fixed[look] = DDP_VERDICT_LEVEL;
    assert_true(sequential_rates(1000, 1, 0.05, 0.05, fixed).fail > most);
}

/* Pocock-type spending with five equal steps at the one-sided level 0.025 has the critical values
 * 2.4380, 2.4268, 2.4101, 2.3966 and 2.3859 (Reboussin, DeMets, Kim & Lan 2000, program ld98). */
static void test_sequential_levels_are_the_published_ones(void **state)
{
    static const double critical[] = {2.4380, 2.4268, 2.4101, 2.3966, 2.3859};
    static const int n[] = {1, 2, 3, 4, 5}, one[] = {12};
    double level[5];
    assert_int_equal(ddp_sequential_levels(n, 5, 0.025, level), 0);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(level[i] - erfc(critical[i] / sqrt(2)) / 2) < 5e-6);
    assert_int_equal(ddp_sequential_levels(one, 1, 0.05, level), 0);
    assert_true(fabs(level[0] - 0.05) < 1e-12);
}

/* The power table of ci/README.md: power against effect and number of pairs. */
static void print_table(void)
{
    static const int pairs[] = {8, 10, 12, 16, 20};
    static const double effects[] = {0.06, 0.08, 0.10, 0.15};
    for (size_t i = 0; i < DDP_COUNT_OF(pairs); i++) {
        int fail, inconclusive, elsewhere;
        count_trials(pairs[i], 0, &fail, &inconclusive, &elsewhere);
        printf("| %d | %.1f %% | %.1f %% |", pairs[i], fail * 100.0 / TRIALS,
               inconclusive * 100.0 / TRIALS);
        for (size_t e = 0; e < DDP_COUNT_OF(effects); e++) {
            count_trials(pairs[i], effects[e], &fail, &inconclusive, &elsewhere);
            printf(" %.1f %% |", fail * 100.0 / TRIALS);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        print_table();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_rates),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_one_outlier_decides_nothing),
        cmocka_unit_test(test_sequential_error_rates),
        cmocka_unit_test(test_sequential_levels_are_the_published_ones),
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
