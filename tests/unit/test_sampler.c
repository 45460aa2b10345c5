/* The sampler measures and verifies every algorithm, type and operation. A wrong result on one
 * rank becomes an error on all ranks. The overhead of the measurement is small. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "bench/pingpong.h"
#include "bench/verify_burst.h"
#include "comm_ranks.h"
#include "plan_runs.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define TIMING_MEANS_SOMETHING 0
#else
#define TIMING_MEANS_SOMETHING 1
#endif

static struct ddp_bench_options options_of(uint64_t bytes)
{
    struct ddp_bench_options o = {.coll = DDP_ALLREDUCE,
                                  .placement = 2,
                                  .memory = -1,
                                  .iters = 6,
                                  .warmup = 1,
                                  .check = DDP_CHECK_ONCE,
                                  .seed = 1};
    o.sizes.n = 1;
    o.sizes.v[0] = bytes;
    return o;
}

static struct ddp_comm *one_rank(const struct ddp_backend *backend)
{
    struct ddp_comm *comm;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_rank_info rank_info = {.size = 1, .local_size = 1, .segment_fd = -1};
    struct ddp_comm_options options = {.timeout_ns = 10000000000,
                                       .device = ddp_device_cpu(DDP_SIMD_SCALAR)};
    if (ddp_comm_create(backend, &rank_info, &options, &comm, &err) != 0)
        fail_msg("%s", err.text);
    return comm;
}

static int look_at_self(const struct ddp_point *p, const double *samples, void *arg,
                        struct ddp_err *err)
{
    int *seen = arg;
    CHECK(p->iterations == 6 && p->warmup == 1 && p->invalid == 0);
    CHECK(p->time_ns.n == 6 && p->time_ns.median > 0 && p->time_ns.min <= p->time_ns.median);
    CHECK(!isnan(p->time_ns.ci95_lo) && isnan(p->time_ns.p95));
    CHECK(strcmp(p->algorithm_used, "self") == 0 && strcmp(p->spec.algorithm, "auto") == 0);
    CHECK(isnan(ddp_point_busbw_GBps(p, p->time_ns.median)));
    CHECK(isnan(p->pingpong_ns[0]) && isnan(p->skew_start_ns));
    CHECK(p->wire_bytes_per_rank == 0 && p->wire_counted);
    /* the first and the last operation, and the burst */
    const int operations = 2 + ddp_burst_count((uint64_t)p->spec.size_bytes);
    CHECK(p->check_operations == operations && p->check_wrong == 0);
    CHECK(p->check_elements == 1000 * operations);
    CHECK(p->rank_mean_ns[0] > 0 && p->rank_mean_ns[0] == p->rank_mean_ns[2]);
    CHECK(p->page_bytes >= 4096);
    CHECK(p->sample_count == 6 && samples != NULL);
    CHECK(samples[0] >= p->time_ns.min && samples[5] <= p->time_ns.max);
    (*seen)++;
    return 0;
}

static void test_one_rank(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_bench_options o = options_of(4000);
    int seen = 0;
    o.samples = true;
    struct ddp_comm *comm = one_rank(ddp_backend_find("self"));
    int rc = run_all(comm, &o, look_at_self, &seen, &err);
    if (rc != 0)
        print_message("%s\n", err.text);
    assert_int_equal(rc, 0);
    assert_int_equal(seen, 2);
    ddp_comm_destroy(comm);
}

static int look_at_shm(const struct ddp_point *p, const double *samples, void *arg,
                       struct ddp_err *err)
{
    double busbw = ddp_point_busbw_GBps(p, p->time_ns.median);
    CHECK(samples == NULL && p->sample_count == 0);
    CHECK(p->time_ns.median > 0 && p->check_wrong == 0);
    /* the first operation, 2 measured ones, and the burst, which changes every block of an input of
     * this size */
    CHECK(p->check_operations == 3 + ddp_burst_count((uint64_t)p->spec.size_bytes));
    CHECK(p->check_elements == (int64_t)p->spec.count * p->spec.ranks * p->check_operations);
    CHECK(p->spec.ranks == 1 || (p->pingpong_ns[0] > 0 && p->pingpong_ns[1] > 0));
    CHECK(isnan(busbw) == (p->spec.ranks == 1 || p->spec.size_bytes == 0));
    CHECK(p->rank_mean_ns[0] <= p->rank_mean_ns[1] && p->rank_mean_ns[1] <= p->rank_mean_ns[2]);
    CHECK(p->rank_mean_ns[2] <= p->time_ns.mean * (1 + 1e-12));
    const struct ddp_coll_alg *alg = ddp_coll_find(p->spec.coll, p->algorithm_used);
    const struct ddp_coll_shape shape = {.coll = p->spec.coll, .count = 1000};
    struct ddp_coll_cost cost;
    ddp_coll_cost_of(alg, p->spec.ranks, &shape, &cost);
    CHECK(p->wire_counted == (p->spec.ranks == 1 || cost.messages > 0));
    return 0;
}

/* Every size, algorithm and placement with one type, then every type and operation at one size. */
static int body_all_of_it(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                          struct ddp_err *err)
{
    struct ddp_bench_options o = options_of(0);
    o.sizes = (struct ddp_size_list){5, {0, 4, 12, 1000, 100000}};
    o.iters = 2;
    o.warmup = 1;
    o.check = DDP_CHECK_ALL;
    o.memory = *(int *)arg;
    o.algorithms = (struct ddp_string_list){1, {"all"}};
    comm->device = ddp_device_cpu(ddp_cpu_best_simd());
    DDP_TRY(run_all(comm, &o, look_at_shm, NULL, err));
    o.sizes = (struct ddp_size_list){1, {1000}};
    for (int d = 0; d < DDP_DTYPE_COUNT; d++)
        o.dtypes.v[o.dtypes.n++] = d;
    for (int op = 0; op < DDP_OP_COUNT; op++)
        o.ops.v[o.ops.n++] = op;
    return run_all(comm, &o, look_at_shm, NULL, err);
}

static void run_ranks(int ranks, struct ranks_job job, struct ddp_launch_outcome *outcome,
                      struct ddp_err *err)
{
    *err = DDP_ERR_INIT;
    assert_int_equal(ranks_run(ranks, DDP_LAUNCH_THREADS, job, outcome, err), 0);
}

static void test_everything_is_verified(void **state)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        for (int memory = 0; memory <= DDP_MEMORY_PRIVATE; memory++) {
            struct ddp_launch_outcome outcome;
            struct ddp_err err;
            run_ranks(ranks, (struct ranks_job){.body = body_all_of_it, .arg = &memory}, &outcome,
                      &err);
            if (outcome.code != 0)
                print_message("%d ranks: %s\n%s\n", ranks, err.text, outcome.report_text);
            assert_int_equal(outcome.code, 0);
        }
    }
}

/* A device with a defect: flips the lowest bit of the 18th element that it computes. */
static void broken_reduce(const struct ddp_reduce *r)
{
    ddp_device_cpu(DDP_SIMD_SCALAR)->reduce(r);
    if (r->count > 17)
        ((uint32_t *)r->dst[0])[17] ^= 1;
}

static int body_broken_rank(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                            struct ddp_err *err)
{
    struct ddp_device broken = *ddp_device_cpu(DDP_SIMD_SCALAR);
    struct ddp_bench_options o = options_of(4000);
    int broken_rank = *(int *)arg;
    broken.reduce = broken_reduce;
    comm->device = comm->rank == broken_rank ? &broken : ddp_device_cpu(DDP_SIMD_SCALAR);
    o.algorithms = (struct ddp_string_list){1, {"flat"}};
    int rc = run_all(comm, &o, NULL, NULL, err);
    char who[16];
    snprintf(who, sizeof who, "rank %d,", broken_rank);
    if (rc == DDP_EDATA && strstr(err->text, who) && strstr(err->text, "element 17 ") &&
        strstr(err->text, "0x00000001") && strstr(err->text, " 1000"))
        return 0; /* the other ranks compute correctly */
    *err = DDP_ERR_INIT;
    return ddp_fail(err, DDP_EINTERNAL, "rank %d got %d", comm->rank, rc);
}

static void test_wrong_data_is_everybodys_error(void **state)
{
    for (int broken = 0; broken < 3; broken++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err;
        run_ranks(3, (struct ranks_job){.body = body_broken_rank, .arg = &broken}, &outcome, &err);
        if (outcome.code != 0)
            print_message("%s\n", err.text);
        assert_int_equal(outcome.code, 0);
    }
}

/* A native collective that does nothing. Out of place, the sampler must notice the poisoned
 * result. */
static int native_nothing(struct ddp_comm *comm, const struct ddp_coll_args *args,
                          struct ddp_err *err)
{
    return 0;
}
static int native_always(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                         struct ddp_err *err)
{
    return 0;
}

static void test_doing_nothing_is_not_a_result(void **state)
{
    struct ddp_backend lazy = *ddp_backend_find("self");
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_bench_options o = options_of(4000);
    lazy.caps |= DDP_CAP_NATIVE;
    lazy.native = native_nothing;
    lazy.native_supports = native_always;
    o.placement = DDP_OUT_OF_PLACE;
    o.algorithms = (struct ddp_string_list){1, {"native"}};
    struct ddp_comm *comm = one_rank(&lazy);
    assert_int_equal(run_all(comm, &o, NULL, NULL, &err), DDP_EDATA);
    assert_non_null(strstr(err.text, "1000 of 1000"));
    err = DDP_ERR_INIT;
    o.check = DDP_CHECK_OFF;
    assert_int_equal(run_all(comm, &o, NULL, NULL, &err), 0);
    ddp_comm_destroy(comm);
}

static void test_named_algorithm_that_cannot(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_bench_options o = options_of(4000);
    struct ddp_comm *comm = one_rank(ddp_backend_find("self"));
    o.algorithms = (struct ddp_string_list){1, {"native"}};
    assert_int_equal(run_all(comm, &o, NULL, NULL, &err), DDP_EUNAVAIL);
    assert_non_null(strstr(err.text, "self"));
    ddp_comm_destroy(comm);
}

/* Consecutive calls stay in step on all ranks, including ranks that only watch. */
static int body_pingpong(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                         struct ddp_err *err)
{
    double ns[4], all[12];
    for (int i = 0; i < 4; i++) {
        DDP_TRY(ddp_pingpong(comm, i * 100000, &ns[i], err));
        CHECK(comm->size == 1 ? isnan(ns[i]) : ns[i] > 10);
    }
    DDP_TRY(ddp_comm_allgather_bytes(comm, ns, all, sizeof ns, err));
    for (int r = 1; r < comm->size; r++)
        CHECK(memcmp(all, all + 4 * r, sizeof ns) == 0);
    return 0;
}

static void test_pingpong(void **state)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        struct ddp_launch_outcome outcome;
        struct ddp_err err;
        run_ranks(ranks, (struct ranks_job){.body = body_pingpong}, &outcome, &err);
        if (outcome.code != 0)
            print_message("%s\n", err.text);
        assert_int_equal(outcome.code, 0);
    }
}

static void test_page_size(void **state)
{
    int local = 0;
    int64_t bytes = ddp_page_bytes(&local);
    assert_true(bytes == 4096 || bytes == 16384 || bytes == 65536 || bytes == 2 << 20);
    assert_int_equal(ddp_page_bytes((const void *)8), -1);
}

/* At 4 B an iteration of backend self takes at most 60 ns more than an empty loop with the same
 * clock. */
static int keep_median(const struct ddp_point *p, const double *samples, void *arg,
                       struct ddp_err *err)
{
    *(double *)arg = p->time_ns.median;
    return 0;
}

static double empty_loop_ns(void)
{
    static double ns[1001];
    struct ddp_summary summary;
    for (size_t i = 0; i < DDP_COUNT_OF(ns); i++) {
        int64_t begin = ddp_now_ns();
        ns[i] = (double)(ddp_now_ns() - begin);
    }
    assert_int_equal(ddp_summarize(ns, DDP_COUNT_OF(ns), &summary), 0);
    return summary.median;
}

static void test_harness_overhead(void **state)
{
    double best = 1e9;
    struct ddp_bench_options o = options_of(4);
    struct ddp_comm *comm = one_rank(ddp_backend_find("self"));
    o.placement = DDP_IN_PLACE;
    o.iters = 1001;
    for (int round = 0; round < 5; round++) {
        struct ddp_err err = DDP_ERR_INIT;
        double median = 0, empty = empty_loop_ns();
        assert_int_equal(run_all(comm, &o, keep_median, &median, &err), 0);
        best = fmin(best, median - empty);
    }
    print_message("harness: %.0f ns an iteration more than an empty loop\n", best);
    if (TIMING_MEANS_SOMETHING)
        assert_true(best <= 60);
    ddp_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_everything_is_verified),
        cmocka_unit_test(test_wrong_data_is_everybodys_error),
        cmocka_unit_test(test_doing_nothing_is_not_a_result),
        cmocka_unit_test(test_named_algorithm_that_cannot),
        cmocka_unit_test(test_pingpong),
        cmocka_unit_test(test_page_size),
        cmocka_unit_test(test_harness_overhead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
