/* Overlap: its definition, and a measurement on one rank, as far as the result does not depend
 * on the load of the machine. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bench/overlap.h"
#include "bench/iterations.h"
#include "comm/backend.h"

static void test_percent(void **state)
{
    (void)state;
    static const struct {
        double pure, compute, total, percent;
    } rows[] = {
        {10, 10, 20, 0},  {10, 10, 10, 100}, {10, 10, 15, 50}, {10, 20, 25, 50},
        {40, 20, 45, 75}, {10, 10, 25, 0}, /* slower together than one after the other */
        {10, 10, 5, 100},                  /* faster together than either alone: noise */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_float_equal(ddp_overlap_percent(rows[i].pure, rows[i].compute, rows[i].total),
                           rows[i].percent, 1e-9);
    assert_true(isnan(ddp_overlap_percent(0, 1, 1)));
    assert_true(isnan(ddp_overlap_percent(1, NAN, 1)));
}

/* The compute loop takes about the requested time, and the operation ran in every iteration. */
static void test_measure(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_comm *comm;
    struct ddp_async *async;
    struct ddp_async_request request;
    const struct ddp_rank_info rank_info = {.size = 1, .local_size = 1, .segment_fd = -1};
    const struct ddp_comm_options options = {
        .timeout_ns = 20000000000, .device = ddp_device_cpu(ddp_cpu_best_simd()), .threads = true};
    assert_int_equal(ddp_comm_create(ddp_backend_find("self"), &rank_info, &options, &comm, &err),
                     0);
    assert_int_equal(ddp_async_create(comm, &async, &err), 0);

    static float a[1000], b[1000];
    static int64_t duration[9], chunk[DDP_SLOWEST_CHUNK];
    struct ddp_point point;
    ddp_point_init(&point);
    point.spec = (struct ddp_point_spec){.coll = DDP_ALLREDUCE,
                                         .dtype = DDP_F32,
                                         .placement = DDP_OUT_OF_PLACE,
                                         .ranks = 1,
                                         .count = 1000,
                                         .size_bytes = sizeof a};
    struct ddp_operands operands;
    ddp_operands_init(&operands, &point.spec, 0, 1, a, b);
    assert_int_equal(ddp_async_prepare(async, NULL, &operands.args, &request, &err), 0);
    ddp_operands_fill(&operands, 1);
    const struct ddp_overlap overlap = {.comm = comm,
                                        .operands = &operands,
                                        .request = &request,
                                        .iters = 9,
                                        .warmup = 1,
                                        .duration = duration,
                                        .chunk = chunk};
    assert_int_equal(ddp_overlap_measure(&overlap, 2e6, &point, &err), 0);
    assert_memory_equal(a, b, sizeof a);
    /* The limits allow a calibration at a quarter of the speed and a busy machine. */
    assert_true(point.overlap.compute_ns > 0.5e6 && point.overlap.compute_ns < 200e6);
    assert_true(point.overlap.total_ns > 0.5e6);
    assert_true(point.overlap.percent >= 0 && point.overlap.percent <= 100);
    ddp_async_release(&request);
    ddp_async_destroy(async);
    ddp_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_percent),
                                       cmocka_unit_test(test_measure)};
    return cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
}
