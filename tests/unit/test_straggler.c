/* The search for the rank for which the others wait, with simulated times: how often a rank is
 * named falsely, how often a delay of 5 and 20 % is found, and which cause is named. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/rng.h"
#include "stats/straggler.h"

#define MOST_RANKS 8
#define SEEDS      400
#define TOOK_NS    1e6 /* time of an iteration without a delay */

/* A measurement. All times are fractions of TOOK_NS. */
struct trial {
    int ranks, iterations;
    double noise;       /* standard deviation of the entry and of the exit of a rank */
    int late;           /* the delayed rank */
    double entry, exit; /* its delays */
    double stolen;      /* the part of `entry` in which its core was taken */
    double busy;        /* fraction of the time that is taken from the cores of all ranks */
    double stall;       /* length of rare stalls of the delayed rank */
    double stall_share; /* fraction of the iterations with a stall */
    double outliers;    /* fraction of the iterations in which some rank stalls for 20 */
    bool root_first;    /* the ranks leave one after the other, rank 0 first */
    int persistent;     /* the noise of this many successive iterations is the same */
    bool unknown;       /* the stolen time is unknown */
    struct ddp_straggler_setup setup;
};

static void fill(const struct trial *t, struct ddp_rng *rng, int i, double *noise,
                 struct ddp_straggler_times *times)
{
    const bool stalls = ddp_rng_double(rng) < t->stall_share;
    const int outlier =
        ddp_rng_double(rng) < t->outliers ? (int)ddp_rng_below(rng, (uint64_t)t->ranks) : -1;
    for (int r = 0; r < t->ranks; r++) {
        if (t->persistent == 0 || i % t->persistent == 0)
            noise[r] = fabs(ddp_rng_normal(rng)) * t->noise;
        struct ddp_straggler_times *own = &times[r];
        *own = (struct ddp_straggler_times){.entry = noise[r] + (outlier == r) * 20.0};
        if (r == t->late) {
            own->entry += t->entry;
            own->stolen = t->stolen + (stalls ? t->stall : 0);
        }
    }
    double last = 0;
    for (int r = 0; r < t->ranks; r++)
        last = fmax(last, times[r].entry);
    for (int r = 0; r < t->ranks; r++) {
        struct ddp_straggler_times *own = &times[r];
        own->exit = last + 1 + fabs(ddp_rng_normal(rng)) * t->noise + (r == t->late) * t->exit +
                    (stalls ? t->stall : 0) + (t->root_first ? 0.3 * r : 0);
        own->entry *= TOOK_NS;
        own->exit *= TOOK_NS;
        own->window = own->entry + TOOK_NS;
        own->stolen += t->busy * own->window / TOOK_NS;
        own->stolen = t->unknown ? NAN : own->stolen * TOOK_NS;
    }
}

static void run(const struct trial *t, uint64_t seed, struct ddp_straggler *out)
{
    struct ddp_straggler_times times[MOST_RANKS];
    struct ddp_straggler_sums *s;
    double noise[MOST_RANKS], margin;
    struct ddp_rng rng;
    ddp_rng_init(&rng, seed, 0);
    assert_int_equal(ddp_straggler_create(t->ranks, &s), 0);
    for (int i = 0; i < t->iterations; i++) {
        double first = INFINITY, last = 0;
        fill(t, &rng, i, noise, times);
        for (int r = 0; r < t->ranks; r++) {
            first = fmin(first, times[r].entry);
            last = fmax(last, times[r].exit);
        }
        ddp_straggler_add(s, times, &margin);
        assert_true(margin >= 0);
        ddp_straggler_next(s, last - first);
    }
    ddp_straggler_judge(s, &t->setup, out);
    ddp_straggler_destroy(s);
}

/* Returns in how many of SEEDS measurements a rank is named. *right: how often it is the delayed
 * rank with this cause. */
static int count(const struct trial *t, enum ddp_straggler_cause cause, int *right)
{
    int named = 0;
    *right = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct ddp_straggler found;
        run(t, seed, &found);
        named += found.rank >= 0;
        *right += found.rank >= 0 && found.rank == t->late && found.cause == cause;
    }
    return named;
}

static const struct ddp_straggler_setup same = {.floor_ns = 500, .same_role = true};

#define ALMOST_NONE (SEEDS / 20) /* at most 5 % */
#define ALMOST_ALL  (SEEDS * 19 / 20)

static void test_false_names(void **state)
{
    static const int iterations[] = {6, 20, 45, 300, 3000}, ranks[] = {2, 3, 8};
    static const struct trial kinds[] = {
        {.noise = 0.02},
        {.noise = 0.5},
        {.noise = 0.05, .outliers = 0.05},
        {.noise = 0.05, .outliers = 0.3},
        {.noise = 0.1, .unknown = true},
    };
    int right;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t n = 0; n < sizeof iterations / sizeof *iterations; n++)
            for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++) {
                if (iterations[n] == 3000 && k > 1)
                    continue;
                struct trial t = kinds[k];
                t.iterations = iterations[n];
                t.ranks = ranks[r];
                t.late = -1;
                t.setup = same;
                const int named = count(&t, DDP_STRAGGLER_COMPUTE, &right);
                if (named > ALMOST_NONE)
                    fail_msg("kind %zu, %d iterations, %d ranks: %d of %d are named", k,
                             t.iterations, t.ranks, named, SEEDS);
            }
}

/* The noise of successive iterations may be the same, such as that of another program. */
static void test_dependent_iterations(void **state)
{
    struct trial t = {.ranks = 2, .iterations = 1000, .noise = 0.3, .persistent = 30, .late = -1};
    int right;
    t.setup = same;
    assert_true(count(&t, DDP_STRAGGLER_COMPUTE, &right) <= ALMOST_NONE);
}

/* In a broadcast the root leaves first. Nobody is named, also not if it is taken for a symmetric
 * collective. */
static void test_roles(void **state)
{
    struct trial t = {.ranks = 2, .iterations = 100, .noise = 0.02, .late = -1, .root_first = true};
    int right;
    assert_int_equal(count(&t, DDP_STRAGGLER_LINK, &right), 0);
    t.setup = same;
    assert_int_equal(count(&t, DDP_STRAGGLER_LINK, &right), 0);
    t.ranks = 4;
    assert_int_equal(count(&t, DDP_STRAGGLER_LINK, &right), 0);
}

static void test_late_entry(void **state)
{
    struct trial t = {.ranks = 2, .iterations = 20, .noise = 0.05, .late = 1, .entry = 0.2};
    int right;
    t.setup = same;
    count(&t, DDP_STRAGGLER_COMPUTE, &right);
    assert_true(right >= ALMOST_ALL);
    t.entry = 0.05;
    t.iterations = 60;
    count(&t, DDP_STRAGGLER_COMPUTE, &right);
    assert_true(right >= SEEDS * 3 / 4);
    t.ranks = 4;
    t.noise = 0.02;
    count(&t, DDP_STRAGGLER_COMPUTE, &right);
    assert_true(right >= SEEDS * 3 / 4);
    /* stalls of other ranks do not hide the delay */
    t = (struct trial){.ranks = 2, .iterations = 100, .noise = 0.05, .late = 0, .entry = 0.2};
    t.outliers = 0.05;
    count(&t, DDP_STRAGGLER_COMPUTE, &right);
    assert_true(right >= ALMOST_ALL);
}

/* A small lead that always has the same sign is significant, but it costs too little. */
static void test_effect(void **state)
{
    struct trial t = {.ranks = 2, .iterations = 300, .noise = 0.0001, .late = 1, .entry = 0.01};
    struct ddp_straggler found;
    int right;
    t.setup = same;
    assert_int_equal(count(&t, DDP_STRAGGLER_COMPUTE, &right), 0);
    t.outliers = 0.02; /* a few long stalls do not make it costly */
    assert_true(count(&t, DDP_STRAGGLER_COMPUTE, &right) <= ALMOST_NONE);
    t.outliers = 0;
    t.entry = 0.1;
    run(&t, 1, &found);
    assert_int_equal(found.rank, 1);
    assert_true(found.share == 1 && fabs(found.cost - 0.1 / 1.1) < 0.01);
    assert_true(found.late_ns[0] > 0.099 * TOOK_NS && found.late_ns[1] < 0.101 * TOOK_NS);
    assert_true(found.late_ns[0] <= found.late_ns[1]);
    t.setup.floor_ns = 0.2 * TOOK_NS; /* below what the clocks can show */
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
}

static void test_stolen_core(void **state)
{
    struct trial t = {.ranks = 2, .iterations = 60, .noise = 0.05, .late = 1, .entry = 0.2};
    int right;
    t.setup = same;
    t.stolen = 0.2; /* explains the late entry */
    count(&t, DDP_STRAGGLER_CORE, &right);
    assert_true(right >= ALMOST_ALL);
    /* A rank that computes longer on a busy machine loses more time than the others. */
    t.stolen = 0;
    t.busy = 0.8;
    count(&t, DDP_STRAGGLER_COMPUTE, &right);
    assert_true(right >= ALMOST_ALL);
    /* A quota stops the rank for 20 ms in every 100 ms, inside the operation. All ranks leave late.
     */
    t = (struct trial){.ranks = 2, .iterations = 1000, .noise = 0.05, .late = 1};
    t.stall = 20;
    t.stall_share = 0.0125;
    t.setup = same;
    count(&t, DDP_STRAGGLER_CORE, &right);
    assert_true(right >= SEEDS / 2);
    t.iterations = 4000;
    count(&t, DDP_STRAGGLER_CORE, &right);
    assert_true(right >= ALMOST_ALL);
}

/* A quota is known from the counters of the control groups. */
static void test_quota(void **state)
{
    const double stopped[] = {0, 0.2e9, 0.01e9}, all[] = {0.2e9, 0.2e9, 0.2e9},
                 unknown[] = {0, NAN, 0};
    struct trial t = {.ranks = 3, .iterations = 60, .noise = 0.05, .late = -1};
    struct ddp_straggler found;
    t.setup = same;
    t.setup.passed_ns = 1e9;
    t.setup.throttled_ns = stopped;
    run(&t, 1, &found);
    assert_int_equal(found.rank, 1);
    assert_int_equal(found.cause, DDP_STRAGGLER_CORE);
    assert_true(fabs(found.cost - 0.19) < 1e-9);
    t.setup.passed_ns = 1e10; /* too little to count */
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
    t.setup.passed_ns = 1e9;
    t.setup.throttled_ns = all; /* the ranks share a control group */
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
    t.setup.throttled_ns = unknown;
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
}

static void test_slow_link(void **state)
{
    struct trial t = {.ranks = 4, .iterations = 60, .noise = 0.02, .late = 2, .exit = 0.2};
    struct ddp_straggler found;
    int right;
    t.setup = same;
    count(&t, DDP_STRAGGLER_LINK, &right);
    assert_true(right >= ALMOST_ALL);
    t.setup.same_role = false;
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
    t.setup.same_role = true;
    t.ranks = 2; /* a link between two ranks belongs to both */
    t.late = 1;
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
}

/* Ranks that share cores: a late entry counts only if it is known that no core was taken. */
static void test_oversubscribed(void **state)
{
    struct trial t = {.ranks = 2, .iterations = 60, .noise = 0.05, .late = 1, .entry = 0.2};
    struct ddp_straggler found;
    t.setup = same;
    t.setup.oversubscribed = true;
    run(&t, 1, &found);
    assert_int_equal(found.cause, DDP_STRAGGLER_COMPUTE);
    assert_int_equal(found.rank, 1);
    t.unknown = true;
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
}

static void test_edges(void **state)
{
    struct trial t = {.ranks = 1, .iterations = 50, .late = 0, .entry = 5};
    struct ddp_straggler found;
    t.setup = same;
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
    assert_true(isnan(found.cost) && isnan(found.late_ns[0]));
    t.ranks = 2;
    t.iterations = 5; /* 2 ranks need more iterations, however late one is */
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
    t.iterations = 0;
    run(&t, 1, &found);
    assert_int_equal(found.rank, -1);
    for (int i = 0; i < DDP_STRAGGLER_CAUSES; i++)
        assert_non_null(ddp_straggler_cause_names[i]);
    assert_null(ddp_straggler_cause_names[DDP_STRAGGLER_CAUSES]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_false_names), cmocka_unit_test(test_dependent_iterations),
        cmocka_unit_test(test_roles),       cmocka_unit_test(test_late_entry),
        cmocka_unit_test(test_effect),      cmocka_unit_test(test_stolen_core),
        cmocka_unit_test(test_slow_link),   cmocka_unit_test(test_oversubscribed),
        cmocka_unit_test(test_quota),       cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
