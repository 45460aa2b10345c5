/* The model of `ddpbench pays`, with figures that can be computed by hand. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "bench/pays_model.h"
#include "record/quality.h"
#include "coll/sparse/sparse_coll.h"

enum { F32, BF16, Q8, TOPK, METHODS };

/* A bucket of 1,000,000 values, exchanged by 2 ranks. */
#define COUNT 1000000

static struct ddp_point points[METHODS];
static struct ddp_compress_list methods;
static double accuracy[METHODS];

/* encode, between and decode in ms; the interval is +-1 %. */
static void set_point(int i, const char *method, double encode, double between, double decode)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_point *p = &points[i];
    const double all = (encode + between + decode) * 1e6;
    assert_int_equal(ddp_compress_parse(method, &methods.v[i], &err), 0);
    methods.n = i + 1;
    accuracy[i] = NAN;
    ddp_point_init(p);
    snprintf(p->spec.compress, sizeof p->spec.compress, "%s", method);
    p->spec.ranks = 2;
    p->spec.count = COUNT;
    p->time_ns = (struct ddp_summary){.median = all, .ci95_lo = all * .99, .ci95_hi = all * 1.01};
    if (strcmp(method, "none") == 0)
        return;
    p->phase_ns[0] = encode * 1e6;
    p->phase_ns[1] = between * 1e6;
    p->phase_ns[2] = decode * 1e6;
    p->achieved_density = 1;
}

static int set_points(void **state)
{
    (void)state;
    set_point(F32, "none", 0, 1, 0);
    set_point(BF16, "bf16", .5, .5, .5);
    set_point(Q8, "q8", 1, 1, 1);
    set_point(TOPK, "topk:0.01", 2, 1, 0);
    points[TOPK].achieved_density = .01;
    accuracy[TOPK] = -.0035;
    return 0;
}

static bool shared_memory = true;

static struct ddp_pays_record ask(int ranks, struct ddp_pays_speed speed, bool overlap)
{
    struct ddp_pays_record out;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_pays_question q = {.parameters = 2 * COUNT + COUNT / 2, /* 2.5 buckets */
                                        .step_ns = 60e6,
                                        .ranks = ranks,
                                        .overlap = overlap,
                                        .shared_memory = shared_memory,
                                        .speeds = &speed,
                                        .speed_count = 1,
                                        .methods = &methods,
                                        .accuracy_change = accuracy,
                                        .points = points,
                                        .point_count = METHODS};
    assert_int_equal(ddp_pays_answer(&q, &out, &err), 0);
    assert_int_equal(out.method_count, METHODS);
    return out;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-4 * fabs(b);
}

/* With 2 ranks nothing grows. 2.5 buckets of bf16 send 2.5 * 2 MB, in 3 steps (rd). The two phases
 * of q8 take 3 * 2 steps. */
static void test_two_ranks(void **state)
{
    (void)state;
    /* 0.1 GB/s: 50 ms for the bytes of bf16, and 3 * 0.1 ms for the steps. */
    struct ddp_pays_record r = ask(2, (struct ddp_pays_speed){.1, 1e5}, false);
    const struct ddp_pays_method *m = r.methods;
    assert_true(near(m[BF16].sent_bytes, 5e6));
    assert_true(near(m[BF16].link_ns, 50.3e6));
    assert_true(near(m[BF16].arithmetic_ns, 2.5 * 1.5e6));
    assert_true(near(m[BF16].step_ns, 60e6 + 3.75e6 + 50.3e6));
    assert_true(near(m[BF16].step_ci95_ns[0], 60e6 + 3.7125e6 + 50.3e6));
    assert_true(near(m[F32].link_ns, 100.3e6));
    assert_true(near(m[F32].step_ns, 60e6 + 2.5e6 + 100.3e6));
    /* 132 bytes for 128 values; the two chunks have 3907 blocks each. */
    assert_true(near(m[Q8].sent_bytes, 2.5 * 2 * 3907 * 132));
    assert_true(near(m[Q8].step_ns, 60e6 + 7.5e6 + .6e6 + 2.5 * 2 * 3907 * 132 / .1));
    assert_true(near(m[Q8].speedup, m[BF16].step_ns / m[Q8].step_ns));
    assert_true(near(m[Q8].speedup_ci95[1], m[BF16].step_ci95_ns[1] / m[Q8].step_ci95_ns[0]));
    assert_true(m[Q8].pays && m[TOPK].pays && !m[F32].pays && !m[BF16].pays);
    assert_string_equal(r.links[0].first, "topk:0.01");
    assert_non_null(strstr(r.links[0].answer, "topk:0.01 is the fastest"));
    assert_non_null(strstr(r.links[0].answer, "-0.0035"));
    /* 3.75 ms more arithmetic, and 3 more steps of 0.1 ms, against the bytes that q8 saves. */
    const double saved = 5e6 - m[Q8].sent_bytes;
    assert_true(near(m[Q8].break_even_GBps, saved / 4.05e6));
    /* 1.01 times the upper end of q8 is the lower end of bf16. */
    assert_true(near(m[Q8].pays_below_GBps,
                     (5e6 - 1.01 * m[Q8].sent_bytes) /
                         (1.01 * (60e6 + 2.5e6 * 3.03 + .6e6) - (60e6 + 2.5e6 * 1.485 + .3e6))));
    assert_true(isnan(m[Q8].break_even_density) && isnan(m[F32].break_even_GBps));
    ddp_pays_release(&r);
}

/* Returns the time of a step with 8 ranks and density d at 0.1 GB/s, with the faster algorithm. */
static double sparse_step(double d)
{
    static const char *const names[] = {"allgather", "rd"};
    double least = INFINITY;
    for (int i = 0; i < 2; i++) {
        struct ddp_coll_cost wanted, measured;
        bool exact;
        ddp_sparse_find(names[i])->cost(8, COUNT, (size_t)(d * COUNT), &wanted, &exact);
        ddp_sparse_find(names[i])->cost(2, COUNT, (size_t)(d * COUNT), &measured, &exact);
        const double growth = wanted.sent_bytes / measured.sent_bytes;
        least = fmin(least, 2e6 + 1e6 * d / .01 * growth + wanted.sent_bytes / .1);
    }
    return 60e6 + 2.5 * least;
}

/* With 8 ranks, a ring sends 14/8 instead of 1 times the bucket, and its sums grow alike. */
static void test_eight_ranks(void **state)
{
    (void)state;
    struct ddp_pays_record r = ask(8, (struct ddp_pays_speed){.1, 1}, false);
    const struct ddp_pays_method *m = r.methods;
    assert_true(near(m[BF16].sent_bytes, 1.75 * 5e6));
    assert_true(near(m[BF16].arithmetic_ns, 2.5 * (.5 + .5 * 1.75 + .5) * 1e6));
    assert_true(near(m[BF16].step_ns, 60e6 + m[BF16].arithmetic_ns + 87.5e6));
    /* Recursive doubling sends lists of 1, 2 and 4 times 10,000 entries of 8 bytes, instead of one
     * list. The last list has a bitmap instead of indices. */
    const double lists = 8e4 + 2 * 8e4 + (4 * 4e4 + COUNT / 8);
    assert_true(near(m[TOPK].sent_bytes, 2.5 * lists));
    assert_true(near(m[TOPK].arithmetic_ns, 2.5 * (2 + 1 * lists / 8e4) * 1e6));
    assert_true(fabs(sparse_step(m[TOPK].break_even_density) / m[BF16].step_ns - 1) < 1e-3);
    ddp_pays_release(&r);
}

/* A rank that waits for another one lengthens the phase of the exchange, but the wait is no work
 * that grows with the ranks. sign decodes the blocks of all ranks. */
static void test_growth(void **state)
{
    (void)state;
    points[TOPK].phase_ns[1] *= 3; /* the phases are those of the slowest rank in each */
    set_point(Q8, "sign", 1, 1, 1);
    methods.n = METHODS;
    struct ddp_pays_record r = ask(8, (struct ddp_pays_speed){.1, 1}, false);
    const double lists = 8e4 + 2 * 8e4 + (4 * 4e4 + COUNT / 8);
    assert_true(near(r.methods[TOPK].arithmetic_ns, 2.5 * (2 + 1 * lists / 8e4) * 1e6));
    assert_true(near(r.methods[Q8].arithmetic_ns, 2.5 * (1 + 7 + 4) * 1e6));
    ddp_pays_release(&r);
}

/* The sentence says why a measurement is doubtful. */
static void test_doubt(void **state)
{
    (void)state;
    points[TOPK].quality = 1u << DDP_QUALITY_BUSY;
    struct ddp_pays_record r = ask(2, (struct ddp_pays_speed){.1, 1e5}, false);
    assert_non_null(strstr(r.links[0].answer, "doubtful: busy"));
    ddp_pays_release(&r);
}

/* 40 of 60 ms are the backward pass. */
static void test_overlap(void **state)
{
    (void)state;
    struct ddp_pays_record r = ask(2, (struct ddp_pays_speed){.1, 1e5}, true);
    assert_true(near(r.methods[BF16].step_ns, 60e6 + 3.75e6 + 10.3e6));
    assert_true(near(r.methods[Q8].step_ns, 60e6 + 7.5e6)); /* wholly hidden */
    assert_true(r.methods[Q8].pays);
    ddp_pays_release(&r);
}

/* Faster medians do not suffice: the intervals must be apart. */
static void test_intervals(void **state)
{
    (void)state;
    struct ddp_pays_record r = ask(2, (struct ddp_pays_speed){.1, 1e5}, false);
    const double below = r.methods[Q8].pays_below_GBps, even = r.methods[Q8].break_even_GBps;
    ddp_pays_release(&r);
    assert_true(below < even);
    r = ask(2, (struct ddp_pays_speed){below * .99, 1e5}, false);
    assert_true(r.methods[Q8].pays);
    ddp_pays_release(&r);
    r = ask(2, (struct ddp_pays_speed){(below + even) / 2, 1e5}, false);
    assert_true(!r.methods[Q8].pays && r.methods[Q8].speedup > 1);
    ddp_pays_release(&r);
    points[BF16].time_ns.ci95_lo = points[BF16].time_ns.ci95_hi = NAN;
    r = ask(2, (struct ddp_pays_speed){.1, 1e5}, false);
    assert_true(!r.methods[Q8].pays && isnan(r.methods[BF16].step_ci95_ns[0]));
    ddp_pays_release(&r);
}

/* Between ranks that share memory, the measured times count. A compressor that is faster than bf16
 * but not than f32 does not pay. */
static void test_here(void **state)
{
    (void)state;
    points[TOPK].time_ns =
        (struct ddp_summary){.median = 1.2e6, .ci95_lo = 1.1e6, .ci95_hi = 1.3e6};
    struct ddp_pays_record r = ask(2, (struct ddp_pays_speed){NAN, NAN}, false);
    assert_true(near(r.methods[TOPK].step_ns, 60e6 + 2.5 * 1.2e6));
    assert_true(r.methods[TOPK].speedup > 1 && !r.methods[TOPK].pays);
    assert_true(isnan(r.methods[TOPK].link_ns));
    assert_string_equal(r.links[0].first, "");
    assert_non_null(strstr(r.links[0].answer, "nothing pays"));
    ddp_pays_release(&r);
}

/* Between ranks that send messages, the break-even speed follows from the times of encoding and
 * decoding. Their intervals are +-10 %. */
static void test_messages(void **state)
{
    (void)state;
    for (int i = BF16; i < METHODS; i++)
        for (int phase = 0; phase < 3; phase++)
            for (int e = 0; e < 2; e++)
                points[i].phase_ci95_ns[phase][e] = points[i].phase_ns[phase] * (e == 0 ? .9 : 1.1);
    shared_memory = false;
    struct ddp_pays_record r = ask(2, (struct ddp_pays_speed){NAN, NAN}, false);
    shared_memory = true;
    const struct ddp_pays_method *q8 = &r.methods[Q8];
    const double saved = 5e6 - q8->sent_bytes;
    assert_true(near(q8->break_even_GBps, saved / (2.5e6 * (2 - 1))));
    assert_true(
        near(q8->pays_below_GBps, (5e6 - 1.01 * q8->sent_bytes) /
                                      (1.01 * (60e6 + 2.5e6 * 2 * 1.1) - (60e6 + 2.5e6 * .9))));
    assert_non_null(strstr(r.links[0].answer, "nothing pays; below"));
    assert_non_null(strstr(strstr(r.links[0].answer, "it is "), " to "));
    ddp_pays_release(&r);
}

static void test_no_baseline(void **state)
{
    struct ddp_pays_record out;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_pays_speed speed = {1, 1};
    const struct ddp_pays_question q = {.parameters = COUNT,
                                        .ranks = 2,
                                        .speeds = &speed,
                                        .speed_count = 1,
                                        .methods = &methods,
                                        .accuracy_change = accuracy,
                                        .points = points,
                                        .point_count = 1};
    (void)state;
    assert_int_equal(ddp_pays_answer(&q, &out, &err), DDP_EUNAVAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_two_ranks, set_points),
        cmocka_unit_test_setup(test_eight_ranks, set_points),
        cmocka_unit_test_setup(test_growth, set_points),
        cmocka_unit_test_setup(test_doubt, set_points),
        cmocka_unit_test_setup(test_overlap, set_points),
        cmocka_unit_test_setup(test_intervals, set_points),
        cmocka_unit_test_setup(test_here, set_points),
        cmocka_unit_test_setup(test_messages, set_points),
        cmocka_unit_test_setup(test_no_baseline, set_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
