/* The record: derived metrics, ids, growth, and the values that may be taken from the
 * environment. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "names.h"
#include "record/point_verdict.h"
#include "record/provenance.h"

static struct ddp_point sample_point(void)
{
    struct ddp_point p;
    ddp_point_init(&p);
    p.spec = (struct ddp_point_spec){.coll = DDP_ALLREDUCE,
                                     .backend = "shm",
                                     .algorithm = "auto",
                                     .dtype = DDP_F32,
                                     .op = DDP_SUM,
                                     .placement = DDP_IN_PLACE,
                                     .memory = DDP_MEMORY_REGISTERED,
                                     .ranks = 4,
                                     .requested_bytes = 1002,
                                     .size_bytes = 1000,
                                     .count = 250,
                                     .compress = "none"};
    return p;
}

static void test_bandwidths(void **state)
{
    struct ddp_point p = sample_point();
    assert_true(fabs(ddp_point_algbw_GBps(&p, 500) - 2.0) < 1e-12); /* 1000 B in 500 ns */
    assert_true(fabs(ddp_point_busbw_GBps(&p, 500) - 3.0) < 1e-12); /* x 2*3/4 */
    assert_true(isnan(ddp_point_effective_GBps(&p, 500)));
    p.spec.coll = DDP_ALL_GATHER;
    assert_true(fabs(ddp_point_busbw_GBps(&p, 500) - 1.5) < 1e-12);
    p.spec.coll = DDP_BROADCAST;
    assert_true(fabs(ddp_point_busbw_GBps(&p, 500) - 2.0) < 1e-12);
}

static void test_bandwidths_that_do_not_exist(void **state)
{
    struct ddp_point p = sample_point();
    assert_true(isnan(ddp_point_busbw_GBps(&p, NAN)));
    assert_true(isnan(ddp_point_busbw_GBps(&p, 0)));
    p.spec.ranks = 1;
    assert_true(isnan(ddp_point_algbw_GBps(&p, 500)));
    assert_true(isnan(ddp_point_busbw_GBps(&p, 500)));
    p = sample_point();
    p.spec.size_bytes = 0;
    assert_true(isnan(ddp_point_algbw_GBps(&p, 500)));
    p = sample_point();
    p.spec.coll = DDP_BARRIER;
    assert_true(isnan(ddp_point_busbw_GBps(&p, 500)));
}

static void test_compressed_has_effective_bandwidth_only(void **state)
{
    struct ddp_point p = sample_point();
    snprintf(p.spec.compress, sizeof p.spec.compress, "topk:0.01");
    assert_true(isnan(ddp_point_busbw_GBps(&p, 500)));
    assert_true(fabs(ddp_point_effective_GBps(&p, 500) - 3.0) < 1e-12);
    p = sample_point();
    p.spec.partial = 4;
    assert_true(isnan(ddp_point_algbw_GBps(&p, 500)));
    assert_true(fabs(ddp_point_effective_GBps(&p, 500) - 3.0) < 1e-12);
}

/* 1000 B on 4 ranks; a dense ring sends 1500 bytes. */
static void test_where_compression_pays(void **state)
{
    struct ddp_point p = sample_point();
    assert_false(ddp_point_is_reduced(&p.spec));
    p.wire_bytes_per_rank = 100;
    p.phase_ns[0] = p.phase_ns[2] = 5;
    p.time_ns.median = 1000;
    p.dense_ns[DDP_BASELINE_F32] = 500;
    assert_true(isnan(ddp_point_pays_below_GBps(&p, DDP_BASELINE_F32))); /* not compressed */
    p = sample_point();
    snprintf(p.spec.compress, sizeof p.spec.compress, "topk:0.01");
    assert_true(ddp_point_is_reduced(&p.spec));
    assert_true(ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F32) == 1500);
    assert_true(ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F16) == 750);
    assert_true(isnan(ddp_point_speedup(&p, DDP_BASELINE_F32)));
    assert_true(isnan(ddp_point_pays_below_GBps(&p, DDP_BASELINE_F32)));
    p.time_ns.median = 1000;
    p.dense_ns[DDP_BASELINE_F32] = 500;
    p.wire_bytes_per_rank = 100;
    p.phase_ns[0] = 60;
    p.phase_ns[1] = 900;
    p.phase_ns[2] = 10;
    assert_true(ddp_point_speedup(&p, DDP_BASELINE_F32) == 0.5);
    assert_true(isnan(ddp_point_speedup(&p, DDP_BASELINE_F16)));
    /* The exchange saves 1400 bytes. In shared memory, which has no link, it costs 500 ns; over
     * a link, the time of encode and decode. */
    assert_true(ddp_point_pays_below_GBps(&p, DDP_BASELINE_F32) == 1400.0 / 500);
    snprintf(p.spec.backend, sizeof p.spec.backend, "mpi");
    assert_true(ddp_point_pays_below_GBps(&p, DDP_BASELINE_F32) == 1400.0 / 70);
    p.wire_bytes_per_rank = 1500;
    assert_true(ddp_point_pays_below_GBps(&p, DDP_BASELINE_F32) == 0);
    p.wire_bytes_per_rank = 375;
    p.phase_ns[0] = p.phase_ns[2] = 0;
    assert_true(isinf(ddp_point_pays_below_GBps(&p, DDP_BASELINE_F32)));
    p.correctness_only = true;
    assert_true(isnan(ddp_point_pays_below_GBps(&p, DDP_BASELINE_F32)));
    p.correctness_only = false;
    p.spec.ranks = 1;
    assert_true(isnan(ddp_point_pays_below_GBps(&p, DDP_BASELINE_F32)));
}

/* Adds a point of 4 ranks in shared memory that takes 1000 ns, against 500 ns dense. */
static void add_compressed(struct ddp_record *r, uint64_t bytes, const char *compress)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_point p = sample_point();
    p.spec.size_bytes = p.spec.requested_bytes = bytes;
    snprintf(p.spec.compress, sizeof p.spec.compress, "%s", compress);
    p.time_ns.median = 1000;
    p.dense_ns[DDP_BASELINE_F32] = 500;
    snprintf(p.dense_algorithm[DDP_BASELINE_F32], sizeof p.dense_algorithm[0], "direct");
    p.wire_bytes_per_rank = 0.5 * (double)bytes;
    assert_int_equal(ddp_record_add_point(r, &p, NULL, &err), 0);
}

static void test_verdict_on_a_point(void **state)
{
    char text[512];
    struct ddp_record r;
    ddp_record_init(&r);
    add_compressed(&r, 4000, "topk:0.01");
    add_compressed(&r, 1000, "topk:0.01");
    add_compressed(&r, 1000, "none");
    add_compressed(&r, 1000, "fp16");
    ddp_point_verdict(&r.points[0], text, sizeof text);
    /* It saves 4000 of 6000 bytes and takes 500 ns longer. */
    assert_true(text_names(text, "topk:0.01|4 ranks|2.0x slower than dense f32|by direct|8 GB/s"));
    ddp_point_verdict(&r.points[2], text, sizeof text);
    assert_string_equal(text, "");
    assert_true(ddp_point_verdict_in_summary(&r, 0));
    assert_false(ddp_point_verdict_in_summary(&r, 1)); /* not the largest size */
    assert_false(ddp_point_verdict_in_summary(&r, 2));
    assert_true(ddp_point_verdict_in_summary(&r, 3));
    r.points[0].wire_bytes_per_rank = 6000;
    ddp_point_verdict(&r.points[0], text, sizeof text);
    assert_true(text_names(text, "nor on any link|4 ranks"));
    r.points[0].time_ns.median = 100;
    ddp_point_verdict(&r.points[0], text, sizeof text);
    assert_true(text_names(text, "5.0x faster|pays here"));
    r.points[0].dense_ns[DDP_BASELINE_F32] = NAN;
    ddp_point_verdict(&r.points[0], text, sizeof text);
    assert_string_equal(text, "");
    assert_true(ddp_point_verdict_in_summary(&r, 3));
    ddp_record_release(&r);
}

static void test_id_says_what_was_asked(void **state)
{
    struct ddp_point p = sample_point();
    char id[192];
    ddp_point_id(&p.spec, id, sizeof id);
    assert_string_equal(id, "allreduce/shm/auto/f32/sum/r0/in/registered/n4/1002/none/0");
}

static void test_unknown_values_are_not_zero(void **state)
{
    struct ddp_point p;
    struct ddp_epoch e;
    struct ddp_train_run r;
    ddp_point_init(&p);
    assert_true(isnan(p.time_ns.median) && isnan(p.wire_bytes_per_rank));
    assert_true(isnan(p.pingpong_ns[0]) && isnan(p.skew_start_ns) && isnan(p.bound_fraction));
    assert_int_equal(p.check_wrong, -1);
    assert_int_equal(p.page_bytes, -1);
    assert_int_equal(p.overflow_count, -1);
    ddp_epoch_init(&e);
    assert_true(isnan(e.train_loss) && isnan(e.seconds));
    ddp_train_run_init(&r);
    assert_true(isnan(r.target_accuracy) && isnan(r.total_seconds));
    assert_int_equal(r.target_epoch, -1);
}

static void test_record_grows_and_keeps_copies(void **state)
{
    struct ddp_record r;
    struct ddp_err err = DDP_ERR_INIT;
    ddp_record_init(&r);
    assert_int_equal(r.status, DDP_STATUS_PARTIAL);
    for (int i = 0; i < 100; i++) {
        struct ddp_point p = sample_point();
        double samples[2] = {i, i + 0.5};
        p.spec.count = (uint64_t)i;
        p.sample_count = i % 2 ? 2 : 0;
        assert_int_equal(ddp_record_add_point(&r, &p, i % 2 ? samples : NULL, &err), 0);
    }
    assert_int_equal(r.point_count, 100);
    assert_int_equal(r.points[99].spec.count, 99);
    assert_null(r.samples[98]);
    assert_true(r.samples[99][1] == 99.5);
    ddp_record_release(&r);
    assert_int_equal(r.point_count, 0);
}

/* Points arrive in the order of measurement and are stored in the order of the plan. A point is
 * settled when no later one can come before it. The next launch begins when one is complete, or
 * when a plan index comes twice. */
static void test_points_stand_as_in_the_plan(void **state)
{
    static const struct {
        int place, of, settled;
    } added[] = {{2, 4, 0}, {0, 4, 1}, {3, 4, 1}, {1, 4, 4}, /* complete */
                 {1, 2, 4}, {0, 2, 6},                       /* complete */
                 {1, 3, 6}, {1, 3, 7},                       /* cut off after one point */
                 {0, 0, 9}};                                 /* not part of a launch */
    static const int places[] = {0, 1, 2, 3, 0, 1, 1, 1, 0};
    struct ddp_record r;
    struct ddp_err err = DDP_ERR_INIT;
    ddp_record_init(&r);
    for (int i = 0; i < (int)DDP_COUNT_OF(added); i++) {
        struct ddp_point p;
        double sample = i;
        ddp_point_init(&p);
        p.place = added[i].place;
        p.of = added[i].of;
        p.order = i;
        p.sample_count = 1;
        assert_int_equal(ddp_record_add_point(&r, &p, &sample, &err), 0);
        assert_int_equal(ddp_record_settled(&r), added[i].settled);
    }
    assert_int_equal(r.point_count, DDP_COUNT_OF(places));
    for (int i = 0; i < r.point_count; i++) {
        assert_int_equal(r.points[i].place, places[i]);
        assert_true(r.samples[i][0] == r.points[i].order); /* samples move with their point */
    }
    ddp_record_release(&r);
}

static void test_epochs_belong_to_the_last_run(void **state)
{
    struct ddp_record r;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_train_run run;
    struct ddp_epoch e;
    ddp_record_init(&r);
    ddp_train_run_init(&run);
    ddp_epoch_init(&e);
    assert_int_equal(ddp_record_add_epoch(&r, &e, &err), DDP_EINTERNAL);
    err = DDP_ERR_INIT;
    for (int i = 0; i < 2; i++) {
        run.epoch_count = 7; /* the caller may not set this */
        assert_int_equal(ddp_record_add_train(&r, &run, &err), 0);
        for (e.epoch = 1; e.epoch <= 2 + i; e.epoch++)
            assert_int_equal(ddp_record_add_epoch(&r, &e, &err), 0);
    }
    assert_int_equal(r.train_count, 2);
    assert_int_equal(r.train[0].epoch_count, 2);
    assert_int_equal(r.train[1].epoch_count, 3);
    assert_int_equal(r.train[1].epochs[2].epoch, 3);
    ddp_record_release(&r);
}

static void test_environment_allow_list(void **state)
{
    static const char *const yes[] = {
        "OMP_NUM_THREADS",      "OMPI_MCA_coll",        "UCX_TLS",
        "NCCL_DEBUG",           "MPICH_ASYNC_PROGRESS", "DDPBENCH_SIMD",
        "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID",         "OMPI_COMM_WORLD_RANK",
        "OPENBLAS_NUM_THREADS"};
    static const char *const no[] = {"PATH",
                                     "HOME",
                                     "USER",
                                     "AWS_SECRET_ACCESS_KEY",
                                     "OMP",
                                     "XOMP_NUM_THREADS",
                                     "UCX_AUTH_TOKEN",
                                     "NCCL_ApiKey",
                                     "DDPBENCH_PASSWORD",
                                     "MPICH_CREDENTIALS",
                                     "OMPI_MCA_secret_x",
                                     "OMPI_MCA_orte_hnp_uri",
                                     "SLURM_JOB_IDX",
                                     "RANKS",
                                     ""};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(ddp_provenance_env_allowed(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(ddp_provenance_env_allowed(no[i]));
}

static void test_provenance(void **state)
{
    static char program[] = "ddpbench", name[] = "allreduce";
    static char *argv[] = {program, name};
    struct ddp_record r;
    struct ddp_err err = DDP_ERR_INIT;
    bool omp = false;
    setenv("OMP_NUM_THREADS", "3", 1);
    setenv("UCX_SECRET", "hunter2", 1);
    ddp_record_init(&r);
    assert_int_equal(ddp_provenance_fill(&r, "allreduce", 2, argv, 2, &err), 0);
    assert_string_equal(r.command, "allreduce");
    assert_int_equal(r.host_count, 1);
    assert_int_equal(r.hosts[0].ranks, 2);
    assert_true(r.hosts[0].cores >= 1);
    assert_int_equal(strlen(r.started), 20);
    assert_true(r.timer_cost_ns > 0 && r.timer_resolution_ns > 0);
    assert_true(r.simd[0] != '\0');
    for (int i = 0; i < r.environment_count; i++) {
        assert_true(ddp_provenance_env_allowed(r.environment[i].key));
        assert_null(strstr(r.environment[i].value, "hunter2"));
        if (strcmp(r.environment[i].key, "OMP_NUM_THREADS") == 0)
            omp = strcmp(r.environment[i].value, "3") == 0;
        if (i > 0)
            assert_true(strcmp(r.environment[i - 1].key, r.environment[i].key) < 0);
    }
    assert_true(omp);
    assert_true(ddp_build_info()->version[0] != '\0' && ddp_build_info()->commit[0] != '\0');
    ddp_record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bandwidths),
        cmocka_unit_test(test_bandwidths_that_do_not_exist),
        cmocka_unit_test(test_compressed_has_effective_bandwidth_only),
        cmocka_unit_test(test_where_compression_pays),
        cmocka_unit_test(test_verdict_on_a_point),
        cmocka_unit_test(test_id_says_what_was_asked),
        cmocka_unit_test(test_unknown_values_are_not_zero),
        cmocka_unit_test(test_record_grows_and_keeps_copies),
        cmocka_unit_test(test_points_stand_as_in_the_plan),
        cmocka_unit_test(test_epochs_belong_to_the_last_run),
        cmocka_unit_test(test_environment_allow_list),
        cmocka_unit_test(test_provenance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
