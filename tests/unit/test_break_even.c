/* Break-even densities. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/break_even.h"

/* The textbook cost of a sparse exchange: each rank sends k entries of 8 bytes to every other
 * rank. */
static void index_cost(int ranks, size_t n, size_t k, struct ddp_coll_cost *cost, bool *exact)
{
    cost->sent_bytes = 8.0 * (double)k * (ranks - 1);
    *exact = true;
}

static void test_predicted(void **state)
{
    const struct ddp_sparse_alg indices = {.name = "indices", .cost = index_cost};
    struct ddp_point p;
    ddp_point_init(&p);
    p.spec.count = 1 << 20;
    p.spec.size_bytes = 4 << 20;
    for (int ranks = 2; ranks <= 64; ranks *= 2) {
        p.spec.ranks = ranks;
        double f32 = ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F32);
        double f16 = ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F16);
        assert_true(f32 == 2.0 * (ranks - 1) / ranks * (4 << 20));
        assert_true(ddp_break_even_predicted(&indices, ranks, 1 << 20, f32) == 1.0 / ranks);
        assert_true(ddp_break_even_predicted(&indices, ranks, 1 << 20, f16) == 0.5 / ranks);
    }
    assert_true(isnan(ddp_break_even_predicted(&indices, 1, 100, 1)));
    assert_true(isnan(ddp_break_even_predicted(&indices, 2, 0, 1)));
    assert_true(ddp_break_even_predicted(&indices, 2, 100, 7) == 0);
    assert_true(ddp_break_even_predicted(&indices, 2, 100, 1e9) == 1);
}

/* The shipped allgather, which sends a bitmap where that is shorter than indices. */
static void test_predicted_of_what_is_built(void **state)
{
    struct ddp_point p;
    ddp_point_init(&p);
    p.spec.size_bytes = 4 << 20;
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        p.spec.ranks = ranks;
        double d = ddp_break_even_predicted(ddp_sparse_find("allgather"), ranks, 1 << 20,
                                            ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F32));
        assert_true(fabs(d - (2.0 / ranks - 1.0 / 32)) < 1e-3);
    }
}

static void test_estimated(void **state)
{
    const double phase[3] = {100, 150, 50};
    assert_true(fabs(ddp_break_even_estimated(phase, 0.01, 500) - 0.02) < 1e-15);
    assert_true(ddp_break_even_estimated(phase, 0.01, 90) == 0);
    assert_true(ddp_break_even_estimated(phase, 0.5, 5000) == 1);
    assert_true(isnan(ddp_break_even_estimated(phase, 0.01, NAN)));
    assert_true(isnan(ddp_break_even_estimated(phase, 0, 500)));
    assert_true(isnan(ddp_break_even_estimated(phase, NAN, 500)));
}

static void test_measured(void **state)
{
    struct ddp_density_times t = {0};
    double low, high;
    assert_true(isnan(ddp_break_even_measured(&t, 100, &low, &high)));
    ddp_density_times_add(&t, 1, 10000);
    ddp_density_times_add(&t, 1e-4, 1);
    ddp_density_times_add(&t, 1e-2, 100);
    assert_true(t.density[0] == 1e-4 && t.density[1] == 1e-2 && t.density[2] == 1);
    /* The time is 1e4 times the density: a straight line in logarithmic scales. */
    assert_true(fabs(ddp_break_even_measured(&t, 10, &low, &high) - 1e-3) < 1e-12);
    assert_true(low == 1e-4 && high == 1e-2);
    assert_true(fabs(ddp_break_even_measured(&t, 1000, &low, &high) - 0.1) < 1e-10);
    assert_true(ddp_break_even_measured(&t, 0.5, &low, &high) == 0 && low == high);
    assert_true(ddp_break_even_measured(&t, 1e6, &low, &high) == 1 && low == high);
    assert_true(isnan(ddp_break_even_measured(&t, NAN, &low, &high)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predicted),
        cmocka_unit_test(test_predicted_of_what_is_built),
        cmocka_unit_test(test_estimated),
        cmocka_unit_test(test_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
