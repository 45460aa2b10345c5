/* The group testing of `ddpbench isolate` on simulated ends: one and two faulty hosts and links, no
 * false names, the limit of the rounds, and small numbers of ends. The seeds are 1, 2, 3, ... The
 * environment variable RUNS sets the number of runs of each case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "stats/group_test.h"

#define FAULTS_MOST 2

struct fault {
    int end, to; /* to: -1: the end is slow */
    double factor;
};
struct cluster {
    int ends, fault_count;
    struct fault fault[FAULTS_MOST];
    double noise;  /* standard deviation of the logarithm of the time of a group */
    double spikes; /* probability that the time of a group is 1.5 times as long */
    bool same;     /* all faults have the same factor */
};
static struct ddp_rng rng;

static double time_of(const struct cluster *c, const int *group, int g)
{
    double factor = 1;
    for (int k = 0; k < c->fault_count; k++) {
        const struct fault *f = &c->fault[k];
        if (group[f->end] == g && (f->to < 0 || group[f->to] == g))
            factor = fmax(factor, f->factor);
    }
    if (ddp_rng_double(&rng) < c->spikes)
        factor *= 1.5;
    return log(0.01 * factor) + c->noise * ddp_rng_normal(&rng);
}

/* Runs a search. Every round has disjoint groups of at least two ends. */
static struct ddp_group_result search(const struct cluster *c, uint64_t seed)
{
    const struct ddp_group_rule rule = {c->ends, DDP_GROUP_ROUNDS, log(1.1), seed};
    struct ddp_group_test *t = ddp_group_test_open(&rule);
    int *group = calloc((size_t)c->ends, sizeof *group), groups;
    assert_non_null(t);
    while ((groups = ddp_group_test_next(t, group)) > 0) {
        double time[DDP_GROUPS_MOST], error[DDP_GROUPS_MOST];
        int members[DDP_GROUPS_MOST] = {0};
        assert_in_range(groups, 1, DDP_GROUPS_MOST);
        for (int i = 0; i < c->ends; i++) {
            assert_true(group[i] >= -1 && group[i] < groups);
            if (group[i] >= 0)
                members[group[i]]++;
        }
        for (int g = 0; g < groups; g++) {
            assert_true(members[g] >= 2);
            time[g] = time_of(c, group, g);
            error[g] = c->noise;
        }
        ddp_group_test_report(t, time, error);
    }
    const struct ddp_group_result result = *ddp_group_test_result(t);
    assert_in_range(result.rounds, 0, DDP_GROUP_ROUNDS);
    ddp_group_test_close(t);
    free(group);
    return result;
}

static bool is_named(const struct ddp_group_result *r, const struct fault *f)
{
    for (int i = 0; i < r->fault_count; i++) {
        const struct ddp_group_fault *g = &r->fault[i];
        if ((g->end == f->end && g->to == f->to) ||
            (f->to >= 0 && g->end == f->to && g->to == f->end))
            return true;
    }
    return false;
}

/* The names are those of the faults, and the factors are in the intervals. */
static bool is_right(const struct cluster *c, const struct ddp_group_result *r)
{
    bool right = r->fault_count == c->fault_count;
    for (int k = 0; k < c->fault_count; k++)
        right = right && is_named(r, &c->fault[k]);
    return right;
}

static int runs(int usual)
{
    const char *text = getenv("RUNS");
    return text ? atoi(text) : usual;
}

/* Faults at random places with random factors of 1.5 to 4. `links` of them are links. */
static void draw(struct cluster *c, int faults, int links)
{
    c->fault_count = faults;
    for (int k = 0; k < faults; k++) {
        struct fault *f = &c->fault[k];
        f->end = (int)ddp_rng_below(&rng, (uint64_t)c->ends);
        f->to = -1;
        f->factor = c->same ? 3 : 1.5 * pow(4 / 1.5, ddp_rng_double(&rng));
        while (k < links && (f->to < 0 || f->to == f->end))
            f->to = (int)ddp_rng_below(&rng, (uint64_t)c->ends);
        if (k == 1 && c->fault[0].end == f->end)
            k--;
    }
}

/* Returns whether the result says that the cluster is healthy although it has a fault that such a
 * result rules out. */
static bool is_false_healthy(const struct cluster *c, const struct ddp_group_result *r)
{
    double most = 0;
    for (int k = 0; k < c->fault_count; k++)
        most = fmax(most, log(c->fault[k].factor));
    return r->end == DDP_GROUP_CLEAN && r->fault_count == 0 && most > r->detectable;
}

/* Returns how many names are not those of a fault. */
static int false_names(const struct cluster *c, const struct ddp_group_result *r)
{
    int n = 0;
    for (int i = 0; i < r->fault_count; i++) {
        const struct ddp_group_result one = {.fault_count = 1, .fault = {r->fault[i]}};
        bool real = false;
        for (int k = 0; k < c->fault_count; k++)
            real = real || is_named(&one, &c->fault[k]);
        n += !real;
    }
    return n;
}

/* Runs a case with the seeds 1, 2, ..., n. Returns the number of right results. There must be no
 * false name and no false health. */
static int count(const char *name, struct cluster c, int faults, int links, int n)
{
    int right = 0, worst = 0, wrong = 0, healthy = 0, clean = 0;
    double sum = 0;
    for (int seed = 1; seed <= n; seed++) {
        ddp_rng_init(&rng, (uint64_t)seed, 7);
        draw(&c, faults, links);
        const struct ddp_group_result r = search(&c, (uint64_t)seed);
        right += is_right(&c, &r);
        clean += r.end == DDP_GROUP_CLEAN;
        wrong += false_names(&c, &r);
        healthy += is_false_healthy(&c, &r);
        sum += r.rounds;
        worst = DDP_MAX(worst, r.rounds);
    }
    if (getenv("RUNS"))
        print_message("%s, %d ends: %d of %d right, %d clean at the end; %.1f rounds, at most %d; "
                      "%d false names, %d falsely healthy\n",
                      name, c.ends, right, n, clean, sum / n, worst, wrong, healthy);
    assert_int_equal(wrong, 0);
    assert_int_equal(healthy, 0);
    return right;
}

static const struct {
    const char *name;
    int faults, links;
} cases[] = {{"one host", 1, 0},
             {"one link", 1, 1},
             {"two hosts", 2, 0},
             {"link and host", 2, 1},
             {"two links", 2, 2}};

/* Returns the least number of right results among n. */
static int most_of(int n)
{
    return n <= 20 ? n : n * 99 / 100;
}

static void test_1024(void **state)
{
    (void)state;
    const struct cluster c = {.ends = 1024, .noise = 0.02};
    const int n = runs(20);
    for (size_t i = 0; i < DDP_COUNT_OF(cases); i++)
        assert_in_range(count(cases[i].name, c, cases[i].faults, cases[i].links, n), most_of(n), n);
}

static void test_healthy(void **state)
{
    (void)state;
    static const int ends[] = {4, 5, 7, 8, 11, 16, 30, 64, 100, 1024};
    const int n = runs(20);
    for (size_t i = 0; i < DDP_COUNT_OF(ends); i++) {
        struct cluster c = {.ends = ends[i], .noise = 0.02};
        assert_int_equal(count("healthy", c, 0, 0, n), n);
        c.spikes = 0.05;
        (void)count("healthy, spikes", c, 0, 0, n);
        c.noise = 0.5;
        (void)count("healthy, noise", c, 0, 0, n);
    }
}

/* Every number of ends up to 33, and some larger ones. Two faulty hosts are found where most groups
 * are still healthy. Where most groups are slow, they must not pass for healthy, in particular if
 * their times are equal. */
static void test_small(void **state)
{
    (void)state;
    const int n = runs(10);
    for (int ends = DDP_GROUP_ENDS_LEAST; ends < 130; ends += ends < 33 ? 1 : 16) {
        const struct cluster c = {.ends = ends, .noise = 0.01};
        assert_in_range(count("one host", c, 1, 0, n), most_of(n), n);
        assert_in_range(count("one link", c, 1, 1, n), most_of(n), n);
        const int hosts = count("two hosts", c, 2, 0, n), links = count("two links", c, 2, 2, n);
        struct cluster same = c;
        same.same = true;
        (void)count("two equal hosts", same, 2, 0, n);
        if (ends >= 12)
            assert_true(hosts >= most_of(n) && links >= n * 9 / 10);
    }
}

/* Fewer than four ends: there is no search. The limit of the rounds is kept. */
static void test_limits(void **state)
{
    (void)state;
    int group[64];
    double zero[DDP_GROUPS_MOST] = {0};
    for (int ends = 1; ends < DDP_GROUP_ENDS_LEAST; ends++) {
        struct ddp_group_test *t =
            ddp_group_test_open(&(struct ddp_group_rule){ends, DDP_GROUP_ROUNDS, 0.1, 1});
        assert_int_equal(ddp_group_test_next(t, group), 0);
        assert_int_equal(ddp_group_test_result(t)->end, DDP_GROUP_TOO_FEW);
        ddp_group_test_close(t);
    }
    struct ddp_group_test *t = ddp_group_test_open(&(struct ddp_group_rule){64, 3, 0.1, 1});
    while (ddp_group_test_next(t, group) > 0)
        ddp_group_test_report(t, zero, zero);
    assert_int_equal(ddp_group_test_result(t)->end, DDP_GROUP_LIMIT);
    assert_int_equal(ddp_group_test_result(t)->rounds, 3);
    assert_false(ddp_group_test_result(t)->screened);
    ddp_group_test_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_1024),
        cmocka_unit_test(test_healthy),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
