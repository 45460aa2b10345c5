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
#include "stats/verdict.h"

enum { CELLS = 12, PAIRS = 12, PAIRS_MAX = 20, TRIALS = 2000 };

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
            next[i] = launch(&rng) * (i / pairs == 4 ? 1 + slow_down : 1);
        }
        assert_int_equal(
            ddp_verdict_decide(base, next, CELLS, (size_t)pairs, 0.05, cells, &verdict), 0);
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

static void fill(double *base, double *next, size_t n, double ratio)
{
    for (size_t i = 0; i < n; i++) {
        base[i] = 100 + (double)i;
        next[i] = base[i] * ratio * (1 + 0.0001 * (double)i);
    }
}

static void test_rules(void **state)
{
    double base[2 * 8], next[2 * 8];
    struct ddp_cell cells[2];
    enum ddp_verdict verdict;
    fill(base, next, 8, 1.00);
    fill(base + 8, next + 8, 8, 0.80);
    assert_int_equal(ddp_verdict_decide(base, next, 2, 8, 0.05, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_PASS);
    assert_int_equal(cells[0].state, DDP_CELL_SAME);
    assert_int_equal(cells[1].state, DDP_CELL_FASTER);
    assert_true(fabs(cells[1].ratio - 0.80) < 0.001);

    fill(base, next, 8, 1.10);
    assert_int_equal(ddp_verdict_decide(base, next, 2, 8, 0.05, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_FAIL);
    assert_int_equal(cells[0].state, DDP_CELL_SLOWER);
    assert_true(cells[0].p == 1.0 / 256 && cells[0].p_holm == 2.0 / 256);

    /* Significant, but smaller than the least effect that matters. */
    fill(base, next, 8, 1.03);
    assert_int_equal(ddp_verdict_decide(base, next, 2, 8, 0.05, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_PASS);

    /* One cell is missing from all new runs. */
    for (int i = 0; i < 8; i++)
        next[i] = NAN;
    assert_int_equal(ddp_verdict_decide(base, next, 2, 8, 0.05, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_INCONCLUSIVE);
    assert_int_equal(cells[0].state, DDP_CELL_MISSING);
    assert_true(isnan(cells[0].ratio));

    /* Too few pairs to show anything: the verdict is INCONCLUSIVE. */
    fill(base, next, 3, 2.0);
    assert_int_equal(ddp_verdict_decide(base, next, 1, 3, 0.05, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_INCONCLUSIVE);
    assert_int_equal(ddp_verdict_decide(base, next, 0, 3, 0.05, cells, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_INCONCLUSIVE);
}

static void test_one_outlier_decides_nothing(void **state)
{
    double base[12], next[12];
    struct ddp_cell cell;
    enum ddp_verdict verdict;
    fill(base, next, 12, 1.00);
    next[5] *= 50;
    assert_int_equal(ddp_verdict_decide(base, next, 1, 12, 0.05, &cell, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_PASS);
    fill(base, next, 12, 1.20);
    next[5] /= 50;
    assert_int_equal(ddp_verdict_decide(base, next, 1, 12, 0.05, &cell, &verdict), 0);
    assert_int_equal(verdict, DDP_VERDICT_FAIL);
}

/* The power table of the README: power against effect and number of pairs. */
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
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
