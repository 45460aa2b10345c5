/* Iterations: their number is fixed, or follows from the wanted interval or from the time limit.
 * Ranks start together, and an iteration in which a rank started late is measured again. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "bench/iterations.h"
#include "comm_ranks.h"

#define ID "the/point"

/* A point whose operation reports the time took(i) for iteration i, without waiting for real. */
struct report_text {
    struct ddp_bench_options options;
    int64_t (*took)(struct report_text *s, int rank, int64_t i);
    int64_t calls; /* iterations begun, without the warm-up */
    int64_t sleep_ns;
    struct ddp_rng rng;
    struct ddp_point point;
};

static struct ddp_bench_options options_of(int64_t iters)
{
    return (struct ddp_bench_options){.iters = iters, .warmup = 2, .seed = 1};
}

/* Takes invented times, so that nothing depends on this machine. */
static int tell(struct ddp_comm *comm, struct report_text *s, struct ddp_err *err)
{
    struct ddp_iterations *it;
    bool more;
    DDP_TRY(ddp_iterations_create(comm, &s->options, &it, err));
    ddp_iterations_open(it, ID);
    int rc = 0;
    while ((rc = ddp_iterations_next(it, &more, err)) == 0 && more) {
        rc = ddp_iterations_start(it, err);
        if (rc != 0)
            break;
        if (s->sleep_ns)
            ddp_sleep_ns(s->sleep_ns);
        int64_t begin = it->options->start == DDP_START_WINDOW ? it->start_ns : ddp_now_ns();
        s->calls += !ddp_iterations_warming(it);
        ddp_iterations_keep(it, begin, begin + s->took(s, comm->rank, s->calls - 1));
    }
    ddp_point_init(&s->point);
    if (rc == 0)
        rc = ddp_iterations_close(it, &s->point, err);
    ddp_iterations_destroy(it);
    return rc;
}

static struct ddp_comm *one_rank(void)
{
    struct ddp_comm *comm;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_rank_info rank_info = {.size = 1, .local_size = 1, .segment_fd = -1};
    struct ddp_comm_options options = {.timeout_ns = 10000000000,
                                       .device = ddp_device_cpu(DDP_SIMD_SCALAR)};
    if (ddp_comm_create(ddp_backend_find("self"), &rank_info, &options, &comm, &err) != 0)
        fail_msg("%s", err.text);
    return comm;
}

static void report_from_one_rank(struct report_text *s)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_comm *comm = one_rank();
    if (tell(comm, s, &err) != 0)
        fail_msg("%s", err.text);
    ddp_comm_destroy(comm);
}

static int64_t counting(struct report_text *s, int rank, int64_t i)
{
    return 1000 + i;
}

static int64_t normal(struct report_text *s, int rank, int64_t i)
{
    if (i <= 0)
        ddp_rng_init(&s->rng, 7, 0);
    return (int64_t)(100000 * (1 + 0.1 * ddp_rng_normal(&s->rng)));
}

static int64_t steady(struct report_text *s, int rank, int64_t i)
{
    return 5000;
}

static void test_exactly_as_many(void **state)
{
    struct report_text s = {.options = options_of(100), .took = counting};
    s.options.samples = true;
    report_from_one_rank(&s);
    assert_int_equal(s.calls, 100);
    assert_int_equal(s.point.iterations, 100);
    assert_int_equal(s.point.warmup, 2);
    assert_int_equal(s.point.invalid, 0);
    assert_int_equal(s.point.stop, DDP_STOP_COUNT);
    assert_int_equal(s.point.sample_count, 100);
    assert_true(s.point.time_ns.min == 1000 && s.point.time_ns.max == 1099);
    assert_true(s.point.rank_mean_ns[0] == 1049.5 && s.point.rank_mean_ns[2] == 1049.5);
    assert_true(s.point.series.drifting); /* the invented times drift */
    assert_true(isnan(s.point.skew_start_ns) && isnan(s.point.injected_percent));
}

/* With 10 % noise, half the interval of n samples is about 1.25 * 1.96 * 0.1 / sqrt(n) of the
 * median, so 2 % needs about 150 samples. */
static void test_until_precise(void **state)
{
    struct report_text s = {.options = options_of(10000), .took = normal};
    s.options.precision = 0.02;
    report_from_one_rank(&s);
    const struct ddp_summary *t = &s.point.time_ns;
    assert_int_equal(s.point.stop, DDP_STOP_PRECISION);
    assert_true((t->ci95_hi - t->ci95_lo) / 2 <= 0.02 * t->median);
    assert_in_range(s.calls, 45, 400);
    /* it stops only at a look: 20, 30, 45, 67, 100, 150, 225, 337 */
    size_t look = ddp_stop_next(0);
    while (look < (size_t)s.calls)
        look = ddp_stop_next(look);
    assert_int_equal(look, s.calls);

    s = (struct report_text){.options = options_of(10000), .took = steady};
    s.options.precision = 0.02;
    report_from_one_rank(&s);
    assert_int_equal(s.calls, 20);
    assert_false(s.point.series.drifting || s.point.series.autocorrelated);
}

static void test_never_more_than_iters(void **state)
{
    struct report_text s = {.options = options_of(70), .took = normal};
    s.options.precision = 0.0001;
    report_from_one_rank(&s);
    assert_int_equal(s.calls, 70);
    assert_int_equal(s.point.stop, DDP_STOP_ITERS);
}

static void test_never_longer_than_max_time(void **state)
{
    struct report_text s = {.options = options_of(10000), .took = normal, .sleep_ns = 2000000};
    s.options.precision = 0.0001;
    s.options.max_time_s = 0.1;
    int64_t begin = ddp_now_ns();
    report_from_one_rank(&s);
    int64_t took = ddp_now_ns() - begin;
    assert_int_equal(s.point.stop, DDP_STOP_TIME);
    assert_in_range(s.calls, 6, 51);
    assert_true(took < 2000000000); /* about 0.1 s on an idle machine */

    /* Each iteration takes longer than the time limit. Enough iterations for an interval still
     * run. */
    for (int64_t warmup = 0; warmup < 3; warmup += 2) {
        s = (struct report_text){.options = options_of(10000), .took = normal, .sleep_ns = 5000000};
        s.options.precision = 0.02;
        s.options.max_time_s = 0.001;
        s.options.warmup = warmup;
        report_from_one_rank(&s);
        assert_int_equal(s.calls, DDP_ITERATIONS_LEAST);
        assert_false(isnan(s.point.time_ns.ci95_lo));
    }
    s = (struct report_text){.options = options_of(3), .took = normal, .sleep_ns = 1000000};
    s.options.max_time_s = 0.001;
    report_from_one_rank(&s);
    assert_int_equal(s.calls, 3);
    assert_int_equal(s.point.stop, DDP_STOP_COUNT);
}

static void test_blocks(void **state)
{
    struct report_text s = {.options = options_of(20), .took = steady};
    s.options.block = 10;
    report_from_one_rank(&s);
    assert_int_equal(s.point.block, 10);
    assert_true(s.point.time_ns.median == 500 && s.point.rank_mean_ns[1] == 500);
    assert_true(isnan(s.point.time_ns.ci95_lo) && isnan(s.point.time_ns.ci95_hi));
}

/* The delay applies to the named point only, as a percentage of its own time. */
static void test_injected_delay(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_comm *comm = one_rank();
    struct ddp_iterations *it;
    struct ddp_bench_options options = options_of(10);
    options.inject_percent = 50;
    snprintf(options.inject_id, sizeof options.inject_id, ID);
    assert_int_equal(ddp_iterations_create(comm, &options, &it, &err), 0);
    ddp_iterations_open(it, ID "/other");
    assert_true(it->delay == 0);
    ddp_iterations_open(it, ID);
    assert_true(it->delay == 0.5);
    const int64_t begin = ddp_now_ns();
    ddp_sleep_ns(2000000);
    const int64_t own = ddp_now_ns() - begin, end = ddp_iterations_end(it, begin);
    assert_true(end - begin >= own + own / 2);
    ddp_iterations_destroy(it);
    ddp_comm_destroy(comm);
}

/* Rank r takes 1000 * (r + 1) and starts at the announced moment, except that rank 1 is late in
 * every fifth iteration. */
static int64_t by_rank(struct report_text *s, int rank, int64_t i)
{
    return 1000 * (rank + 1);
}

static int body_window(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    struct report_text s = {.options = options_of(40), .took = by_rank};
    struct ddp_iterations *it;
    bool more;
    int64_t late = 0;
    s.options.start = DDP_START_WINDOW;
    DDP_TRY(ddp_iterations_create(comm, &s.options, &it, err));
    ddp_iterations_open(it, ID);
    for (int64_t i = 0;; i++) {
        DDP_TRY(ddp_iterations_next(it, &more, err));
        if (!more)
            break;
        DDP_TRY(ddp_iterations_start(it, err));
        CHECK(ddp_now_ns() >= it->start_ns);
        const bool tarries = i % 5 == 4;
        late += tarries && !ddp_iterations_warming(it);
        int64_t begin = it->start_ns + (tarries && comm->rank == 1 ? 5000 : 100 * comm->rank);
        ddp_iterations_keep(it, begin, begin + by_rank(&s, comm->rank, i));
    }
    DDP_TRY(ddp_iterations_close(it, &s.point, err));
    const struct ddp_point *p = &s.point;
    CHECK(p->iterations == 40 && p->start == DDP_START_WINDOW);
    CHECK(p->invalid == late && late >= 9);
    /* from the start of rank 0 to the exit of the last rank, which also starts last */
    const double expected = 100 * (comm->size - 1) + 1000 * comm->size;
    CHECK(p->time_ns.min == expected && p->time_ns.max == expected);
    CHECK(p->skew_start_ns == 100 * (comm->size - 1));
    CHECK(p->skew_exit_ns == expected - 1000);
    CHECK(p->rank_mean_ns[0] == 1000 && p->rank_mean_ns[2] == 1000 * comm->size);
    ddp_iterations_destroy(it);
    return 0;
}

/* A rank is never in time: the point ends with the same error on all ranks. */
static int body_never(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                      struct ddp_err *err)
{
    struct ddp_bench_options options = options_of(40);
    struct ddp_iterations *it;
    bool more = true;
    int rc = 0;
    options.start = DDP_START_WINDOW;
    DDP_TRY(ddp_iterations_create(comm, &options, &it, err));
    ddp_iterations_open(it, ID);
    while (rc == 0 && more) {
        rc = ddp_iterations_next(it, &more, err);
        if (rc == 0)
            rc = ddp_iterations_start(it, err);
        ddp_iterations_keep(it, it->start_ns + 9999 * comm->rank, it->start_ns + 10000);
    }
    ddp_iterations_destroy(it);
    CHECK(rc == DDP_EUNAVAIL && strstr(err->text, "began late") && strstr(err->hint, "barrier"));
    *err = DDP_ERR_INIT;
    return 0;
}

/* After a barrier the time is that of the slowest rank. */
static int body_barrier(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                        struct ddp_err *err)
{
    struct report_text s = {.options = options_of(10000), .took = by_rank};
    s.options.precision = 0.02;
    DDP_TRY(tell(comm, &s, err));
    CHECK(s.point.iterations == 20 && s.point.invalid == 0);
    CHECK(s.point.time_ns.median == 1000 * comm->size);
    CHECK(s.point.skew_start_ns >= 0 && s.point.skew_exit_ns >= 0);
    return 0;
}

/* No rank continues while another rank's operation still runs. */
static atomic_int ended;

static int body_join(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                     struct ddp_err *err)
{
    struct ddp_bench_options options = options_of(5);
    struct ddp_iterations *it;
    bool more;
    DDP_TRY(ddp_iterations_create(comm, &options, &it, err));
    ddp_iterations_open(it, ID);
    for (int i = 1;; i++) {
        DDP_TRY(ddp_iterations_next(it, &more, err));
        if (!more)
            break;
        DDP_TRY(ddp_iterations_start(it, err));
        const int64_t begin = ddp_now_ns();
        ddp_sleep_ns(2000000 * comm->rank);
        atomic_fetch_add(&ended, 1);
        ddp_iterations_keep(it, begin, ddp_iterations_end(it, begin));
        DDP_TRY(ddp_iterations_join(comm, DDP_ITERATIONS_JOIN_BYTES, err));
        CHECK(atomic_load(&ended) >= i * comm->size);
    }
    ddp_iterations_destroy(it);
    return 0;
}

/* Clocks of one machine, compared by messages, agree within their estimated error. */
static int body_clocks(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                       struct ddp_err *err)
{
    double offset, error;
    for (int i = 0; i < 5; i++) {
        DDP_TRY(ddp_clocks_offset(comm, &offset, &error, err));
        CHECK(fabs(offset) <= error);
        CHECK(comm->rank == 0 ? error == 0 : error > 0);
    }
    return 0;
}

static void run(int ranks,
                int (*body)(struct ddp_comm *, struct ddp_launch_rank *, void *, struct ddp_err *))
{
    struct ddp_launch_outcome outcome;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(
        ranks_run(ranks, DDP_LAUNCH_THREADS, (struct ranks_job){.body = body}, &outcome, &err), 0);
    if (outcome.code != 0)
        print_message("%d ranks: %s\n", ranks, err.text);
    assert_int_equal(outcome.code, 0);
}

static void test_window(void **state)
{
    run(2, body_window);
    run(3, body_window);
    run(2, body_never);
}

static void test_barrier(void **state)
{
    run(2, body_barrier);
    run(3, body_barrier);
}

static void test_join(void **state)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        atomic_store(&ended, 0);
        run(ranks, body_join);
    }
}

static void test_clocks_by_messages(void **state)
{
    run(2, body_clocks);
    run(3, body_clocks);
}

/* A clock that is 1 ms ahead and drifts: its offset is interpolated between estimates and
 * constant outside. */
static void test_clocks_drift(void **state)
{
    struct ddp_clocks c = {
        .estimates = 2, .at_ns = {1000000000, 2000000000}, .offset_ns = {-1000000, -1010000}};
    assert_int_equal(ddp_clocks_global(&c, 1000000000), 999000000);
    assert_int_equal(ddp_clocks_global(&c, 1500000000), 1500000000 - 1005000);
    assert_int_equal(ddp_clocks_global(&c, 3000000000), 3000000000 - 1010000);
    assert_int_equal(ddp_clocks_global(&c, 500000000), 500000000 - 1000000);
    assert_int_equal(ddp_clocks_local(&c, 3000000000 - 1010000), 3000000000);
    c.estimates = 1;
    assert_int_equal(ddp_clocks_global(&c, 1000000000), 1000000000 - 1010000);
    c.common = true;
    assert_int_equal(ddp_clocks_global(&c, 12345), 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exactly_as_many),
        cmocka_unit_test(test_until_precise),
        cmocka_unit_test(test_never_more_than_iters),
        cmocka_unit_test(test_never_longer_than_max_time),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_injected_delay),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_clocks_by_messages),
        cmocka_unit_test(test_clocks_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
