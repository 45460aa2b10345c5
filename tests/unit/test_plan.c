/* The plan: the points that options give, and the options that are refused, with the reason. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "bench/operands.h"
#include "bench/plan.h"
#include "coll/coll.h"
#include "coll/sparse/sparse_coll.h"
#include "names.h"
#include "plan_runs.h"

/* The defaults of the command line. */
static struct ddp_bench_options defaults(void)
{
    return (struct ddp_bench_options){.coll = DDP_ALLREDUCE,
                                      .min_bytes = 8,
                                      .max_bytes = 64 << 20,
                                      .step_factor = 4,
                                      .placement = 2,
                                      .memory = -1,
                                      .iters = 20,
                                      .warmup = 5,
                                      .check = DDP_CHECK_ONCE};
}

static struct ddp_bench_options one_size(uint64_t bytes)
{
    struct ddp_bench_options o = defaults();
    o.sizes.n = 1;
    o.sizes.v[0] = bytes;
    o.placement = 0;
    return o;
}

static struct ddp_bench_plan make(const struct ddp_bench_options *o, int ranks)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_bench_plan plan;
    int rc = ddp_plan_make(o, "shm", ranks, -1, &plan, &err);
    if (rc != 0)
        fail_msg("%s", err.text);
    return plan;
}

static void refused(const struct ddp_bench_options *o, const char *backend, int code,
                    const char *text)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_bench_plan plan;
    assert_int_equal(ddp_plan_make(o, backend, 2, -1, &plan, &err), code);
    if (!text_names(err.text, text))
        fail_msg("'%s' lacks '%s'", err.text, text);
}

static void test_default_range(void **state)
{
    struct ddp_bench_options o = defaults();
    struct ddp_bench_plan plan = make(&o, 2);
    /* 8, 32, ..., 32 MiB and the 64 MiB of the range's end; in and out of place */
    assert_int_equal(plan.count, 26);
    assert_int_equal(plan.points[0].size_bytes, 8);
    assert_int_equal(plan.points[11].size_bytes, 32 << 20);
    assert_int_equal(plan.points[12].size_bytes, 64 << 20);
    assert_int_equal(plan.points[12].placement, DDP_IN_PLACE);
    assert_int_equal(plan.points[13].placement, DDP_OUT_OF_PLACE);
    assert_int_equal(plan.points[0].memory, DDP_MEMORY_REGISTERED);
    assert_string_equal(plan.points[0].algorithm, "auto");
    assert_int_equal(plan.buffer_bytes, 64 << 20);
    assert_int_equal(plan.bytes_per_rank, 128 << 20);
    assert_string_equal(plan.rounding, "");
    ddp_plan_release(&plan);
}

/* On GPUs the host memory of a rank does not grow with the size, so a size that exceeds the memory
 * of the host is not refused. */
static void test_host_memory_on_gpus(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    for (uint64_t bytes = 1024; bytes <= UINT64_C(8) << 30; bytes <<= 23) {
        struct ddp_bench_options o = one_size(bytes);
        struct ddp_bench_plan plan;
        assert_int_equal(ddp_plan_make(&o, "nccl", 8, 64 << 20, &plan, &err), 0);
        assert_int_equal(plan.buffer_bytes, bytes);
        assert_int_equal(plan.bytes_per_rank, DDP_OPERANDS_STAGE_BYTES);
        ddp_plan_release(&plan);
    }
}

static void test_order_is_dtype_op_algorithm_placement_size(void **state)
{
    struct ddp_bench_options o = defaults();
    o.dtypes = (struct ddp_int_list){2, {DDP_F16, DDP_U8}};
    o.ops = (struct ddp_int_list){2, {DDP_MAX, DDP_SUM}};
    o.algorithms = (struct ddp_string_list){2, {"flat", "auto"}};
    o.sizes = (struct ddp_size_list){2, {64, 4}};
    struct ddp_bench_plan plan = make(&o, 3);
    assert_int_equal(plan.count, 32);
    for (int i = 0; i < 32; i++) {
        const struct ddp_point_spec *p = &plan.points[i];
        assert_int_equal(p->dtype, i / 16 ? DDP_U8 : DDP_F16);
        assert_int_equal(p->op, i / 8 % 2 ? DDP_SUM : DDP_MAX);
        assert_string_equal(p->algorithm, i / 4 % 2 ? "auto" : "flat");
        assert_int_equal(p->placement, i / 2 % 2);
        assert_int_equal(p->size_bytes, i % 2 ? 4 : 64);
        assert_int_equal(p->count, p->size_bytes / ddp_dtype_size(p->dtype));
        assert_int_equal(p->ranks, 3);
    }
    ddp_plan_release(&plan);
}

static void test_step_bytes(void **state)
{
    struct ddp_bench_options o = defaults();
    o.min_bytes = 0;
    o.max_bytes = 100;
    o.step_factor = 0;
    o.step_bytes = 40;
    o.placement = 1;
    struct ddp_bench_plan plan = make(&o, 2);
    assert_int_equal(plan.count, 4);
    assert_int_equal(plan.points[0].size_bytes, 0);
    assert_int_equal(plan.points[2].size_bytes, 80);
    assert_int_equal(plan.points[3].size_bytes, 100); /* the end is measured whatever the step is */
    ddp_plan_release(&plan);
    o.max_bytes = 80;
    plan = make(&o, 2);
    assert_int_equal(plan.count, 3); /* a repeated size counts once */
    ddp_plan_release(&plan);
}

static void test_a_range_ends_where_sizes_overflow(void **state)
{
    struct ddp_bench_options o = defaults();
    o.min_bytes = (uint64_t)1 << 61;
    o.max_bytes = UINT64_MAX;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_plan_check(&o, &err), 0);
    refused(&o, "shm", DDP_ENOMEM, "2 ranks");
    o.step_factor = 0;
    o.step_bytes = (uint64_t)1 << 63;
    assert_int_equal(ddp_plan_check(&o, &err), 0);
}

static void test_zero_bytes(void **state)
{
    struct ddp_bench_options o = one_size(0);
    struct ddp_bench_plan plan = make(&o, 2);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.points[0].count, 0);
    ddp_plan_release(&plan);
    o = defaults();
    o.min_bytes = o.max_bytes = 0;
    plan = make(&o, 2);
    assert_int_equal(plan.count, 2);
    ddp_plan_release(&plan);
}

static void test_rounding_is_reported(void **state)
{
    struct ddp_bench_options o = one_size(1003);
    struct ddp_bench_plan plan = make(&o, 2);
    assert_int_equal(plan.points[0].requested_bytes, 1003);
    assert_int_equal(plan.points[0].size_bytes, 1000);
    assert_true(text_names(plan.rounding, "1003"));
    assert_true(text_names(plan.rounding, "1000"));
    ddp_plan_release(&plan);
    o.sizes = (struct ddp_size_list){3, {7, 8, 5}};
    plan = make(&o, 2);
    assert_int_equal(plan.points[0].size_bytes, 4);
    assert_true(text_names(plan.rounding, "1"));
    ddp_plan_release(&plan);
}

/* Sizes above 0 that hold no element are refused, or left out and listed. */
static void test_small_sizes(void **state)
{
    struct ddp_bench_options o = one_size(3);
    refused(&o, "shm", DDP_EUSAGE, "--size 3");
    o.coll = DDP_ALL_GATHER;
    o.sizes = (struct ddp_size_list){3, {0, 7, 8}};
    refused(&o, "shm", DDP_EUSAGE, "--size 7");
    o.skip_small = true;
    struct ddp_bench_plan plan = make(&o, 2);
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.points[1].requested_bytes, 8);
    assert_int_equal(plan.small_count, 1);
    assert_int_equal(plan.small[0].points, 1);
    assert_true(text_names(plan.small[0].what, "7"));
    ddp_plan_release(&plan);
    o = defaults(); /* many small sizes: the list is cut, the number of points is not */
    o.dtypes = (struct ddp_int_list){2, {DDP_F64, DDP_U8}};
    o.min_bytes = 1;
    o.max_bytes = 512;
    o.step_factor = 0;
    o.step_bytes = 1;
    o.coll = DDP_ALL_GATHER;
    plan = make(&o, 64);
    assert_int_equal(plan.small_count, 2);
    assert_int_equal(plan.small[0].points, 2 * 511);
    assert_int_equal(plan.small[1].points, 2 * 63);
    assert_non_null(strstr(plan.small[0].what, "..."));
    assert_int_equal(plan.count, 2 * (1 + 512 - 63));
    ddp_plan_release(&plan);
}

static void refused_groups(const char *text, const char *named)
{
    struct ddp_bench_options o = defaults();
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_plan_parse_groups(text, &o, &err), DDP_EUSAGE);
    assert_true(text_names(err.text, "--groups"));
    assert_non_null(strstr(err.text, named));
}

static void test_listed_groups(void **state)
{
    struct ddp_bench_options o = one_size(1000);
    struct ddp_err err = DDP_ERR_INIT;
    int ranks, members[5];
    (void)state;
    assert_int_equal(ddp_plan_parse_groups("3,0:1,4,2", &o, &err), 0);
    assert_int_equal(o.groups, 2);
    assert_int_equal(ddp_plan_group_ranks(&o, 5, &ranks, &err), 0);
    assert_int_equal(ranks, 3);
    assert_int_equal(ddp_plan_least_ranks(&o, ranks), 2);
    assert_int_equal(ddp_plan_group_of(&o, 5, 3), 0);
    assert_int_equal(ddp_plan_group_of(&o, 5, 2), 1);
    assert_int_equal(ddp_plan_group_members(&o, 5, 1, members), 3);
    assert_memory_equal(members, ((int[]){1, 2, 4}), 3 * sizeof(int));
    assert_int_equal(ddp_plan_group_ranks(&o, 4, &ranks, &err), DDP_EUSAGE);
    assert_true(text_names(err.text, "5|4"));
    o.coll = DDP_ALL_TO_ALL; /* both groups must be able to divide the message */
    struct ddp_bench_plan plan = make(&o, 3);
    assert_int_equal(plan.points[0].count, 246);
    assert_int_equal(plan.points[0].ranks, 3);
    assert_string_equal(plan.points[0].group_list, "3,0:1,4,2");
    ddp_plan_release(&plan);
    o.coll = DDP_BROADCAST;
    o.root = 2;
    refused(&o, "shm", DDP_EUSAGE, "--root 2");
    assert_int_equal(ddp_plan_parse_groups("2", &o, &err), 0);
    assert_int_equal(o.group_list.ranks, 0);
    assert_int_equal(ddp_plan_group_of(&o, 6, 3), 1);
    assert_int_equal(ddp_plan_group_members(&o, 6, 1, members), 3);
    refused_groups("0,1:1,2", "0,1:1,2");
    refused_groups("0,1:3", "0,1:3");
    refused_groups("0,1:", "0,1:");
    refused_groups("0,,1", "0,,1");
    refused_groups("0,x", "0,x");
    refused_groups("0,256", "0,256");
    refused_groups("0,99999999999999999999999", "0,9");
    refused_groups("0", "'0'");
    refused_groups("129", "129");
    refused_groups("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24", "0,1");
}

static void test_contradictions_are_refused(void **state)
{
    struct ddp_bench_options o = defaults();
    o.step_bytes = 8;
    refused(&o, "shm", DDP_EUSAGE, "--step");
    o = defaults();
    o.step_factor = 0;
    refused(&o, "shm", DDP_EUSAGE, "--step");
    o = defaults();
    o.step_factor = 1;
    refused(&o, "shm", DDP_EUSAGE, "--step");
    o = defaults();
    o.min_bytes = 0;
    refused(&o, "shm", DDP_EUSAGE, "--min-bytes");
    o = defaults();
    o.max_bytes = 4;
    refused(&o, "shm", DDP_EUSAGE, "--min-bytes|--max-bytes");
    o = defaults();
    o.step_factor = 0;
    o.step_bytes = 1;
    refused(&o, "shm", DDP_EUSAGE, "65536");
    o = one_size(8);
    o.sizes = (struct ddp_size_list){2, {8, 8}};
    refused(&o, "shm", DDP_EUSAGE, "8");
    o = one_size(8);
    o.root = 2;
    refused(&o, "shm", DDP_EUSAGE, "--root 2");
    o = one_size(8);
    o.iters = 0;
    refused(&o, "shm", DDP_EUSAGE, "0");
}

static void test_algorithm_names(void **state)
{
    struct ddp_bench_options o = one_size(8);
    struct ddp_err err = DDP_ERR_INIT;
    o.algorithms = (struct ddp_string_list){1, {"direkt"}};
    assert_int_equal(ddp_plan_check(&o, &err), DDP_EUSAGE);
    assert_true(text_names(err.text, "direkt"));
    assert_true(text_names(err.hint, "direct"));
    o.algorithms = (struct ddp_string_list){2, {"all", "flat"}};
    refused(&o, "shm", DDP_EUSAGE, "'all'");
    o.algorithms = (struct ddp_string_list){2, {"flat", "flat"}};
    refused(&o, "shm", DDP_EUSAGE, "'flat'");
}

static void test_all_algorithms(void **state)
{
    struct ddp_bench_options o = one_size(8);
    int n = 0;
    o.algorithms = (struct ddp_string_list){1, {"all"}};
    struct ddp_bench_plan plan = make(&o, 2);
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a; a++) {
        if ((*a)->coll == DDP_ALLREDUCE)
            assert_string_equal(plan.points[n++].algorithm, (*a)->name);
    }
    assert_int_equal(plan.count, n);
    assert_true(plan.all_algorithms);
    ddp_plan_release(&plan);
}

static void test_memory_kinds(void **state)
{
    struct ddp_bench_options o = one_size(8);
    struct ddp_bench_plan plan;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_plan_make(&o, "mpi", 2, -1, &plan, &err), 0);
    /* registered among the ranks of one host */
    assert_int_equal(plan.memory, DDP_MEMORY_REGISTERED);
    ddp_plan_release(&plan);
    assert_int_equal(ddp_plan_make(&o, "none has this name", 2, -1, &plan, &err), 0);
    assert_int_equal(plan.memory, DDP_MEMORY_PRIVATE);
    ddp_plan_release(&plan);
    o.memory = DDP_MEMORY_REGISTERED;
    refused(&o, "none has this name", DDP_EUNAVAIL, "registered");
    o.memory = DDP_MEMORY_PRIVATE;
    plan = make(&o, 2);
    assert_int_equal(plan.points[0].memory, DDP_MEMORY_PRIVATE);
    ddp_plan_release(&plan);
}

static void test_what_does_not_fit(void **state)
{
    struct ddp_bench_options o = one_size((uint64_t)64 << 30);
    struct ddp_bench_plan plan;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_plan_make(&o, "shm", 4, (int64_t)20 << 30, &plan, &err), DDP_ENOMEM);
    assert_true(text_names(err.text, "4 ranks|64 GiB|512 GiB|20 GiB"));
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_plan_make(&o, "shm", 4, (int64_t)512 << 30, &plan, &err), 0);
    assert_int_equal(ddp_plan_fits(&plan, 4, ((int64_t)512 << 30) - 1, &err), DDP_ENOMEM);
    ddp_plan_release(&plan);
    o = one_size(INT64_MAX);
    refused(&o, "shm", DDP_ENOMEM, "2 ranks");
}

/* Each method is a point. Methods that exchange only a part run in place only and in f32 only. */
static void test_compressed_points(void **state)
{
    struct ddp_bench_options o = one_size(4000);
    o.placement = 2;
    set_compress(&o, "none,fp16,topk:0.01");
    struct ddp_bench_plan plan = make(&o, 4);
    assert_int_equal(plan.count, 4);
    assert_string_equal(plan.points[0].compress, "none");
    assert_int_equal(plan.points[0].placement, DDP_IN_PLACE);
    assert_int_equal(plan.points[1].placement, DDP_OUT_OF_PLACE);
    assert_string_equal(plan.points[2].compress, "fp16");
    assert_string_equal(plan.points[3].compress, "topk:0.01");
    assert_false(ddp_plan_feedback(&o, &plan.points[2]));
    assert_true(ddp_plan_feedback(&o, &plan.points[3]));
    /* 16-bit values of one point, twice: for the point and for its baseline */
    assert_true(plan.compress_registered >= 2 * 2000);
    assert_int_equal(plan.bytes_per_rank,
                     2 * 4000 + plan.compress_registered + plan.compress_private);
    ddp_plan_release(&plan);

    o.feedback = DDP_FEEDBACK_OFF;
    o.partial = (struct ddp_int_list){1, {4}};
    plan = make(&o, 4);
    assert_int_equal(plan.count, 3); /* without compression (none) the exchange is partial, too */
    assert_int_equal(plan.points[0].partial, 4);
    assert_false(ddp_plan_feedback(&o, &plan.points[2]));
    ddp_plan_release(&plan);
    o.partial = (struct ddp_int_list){2, {4, 2}};
    plan = make(&o, 4);
    assert_int_equal(plan.count, 6);
    assert_int_equal(plan.points[0].partial, 4);
    assert_int_equal(plan.points[1].partial, 2);
    ddp_plan_release(&plan);
    o.partial.v[1] = 4;
    refused(&o, "shm", DDP_EUSAGE, "--partial 4");
}

static void test_algorithms_of_compressed_points(void **state)
{
    struct ddp_bench_options o = one_size(4000);
    o.algorithms = (struct ddp_string_list){1, {"all"}};
    set_compress(&o, "topk:0.01,oktopk:0.01");
    struct ddp_bench_plan plan = make(&o, 4);
    int ok = 0;
    for (int i = 0; i < plan.count; i++) {
        assert_non_null(ddp_sparse_find(plan.points[i].algorithm));
        bool selects = strcmp(plan.points[i].algorithm, "oktopk") == 0;
        assert_int_equal(selects, strcmp(plan.points[i].compress, "oktopk:0.01") == 0);
        ok += selects;
    }
    assert_true(ok == 1 && plan.count >= 4);
    ddp_plan_release(&plan);
    o.algorithms = (struct ddp_string_list){1, {"ring"}};
    refused(&o, "shm", DDP_EUSAGE, "'ring'|topk:0.01");
    set_compress(&o, "fp16,none");
    plan = make(&o, 4);
    assert_int_equal(plan.count, 2);
    ddp_plan_release(&plan);
}

static void test_compression_that_is_refused(void **state)
{
    struct ddp_bench_options o = one_size(4000);
    set_compress(&o, "fp16");
    o.dtypes = (struct ddp_int_list){1, {DDP_F64}};
    refused(&o, "shm", DDP_EUSAGE, "--compress|f32|'f64'");
    o.dtypes.n = 0;
    o.ops = (struct ddp_int_list){1, {DDP_MAX}};
    refused(&o, "shm", DDP_EUSAGE, "sum|avg|'max'");
    o.ops.n = 0;
    o.placement = DDP_OUT_OF_PLACE;
    refused(&o, "shm", DDP_EUSAGE, "--placement|--compress");
    o = one_size(4000);
    o.partial = (struct ddp_int_list){1, {2}};
    o.placement = DDP_OUT_OF_PLACE;
    refused(&o, "shm", DDP_EUSAGE, "--placement|--partial");
    o = one_size(4000);
    o.feedback = DDP_FEEDBACK_ON;
    refused(&o, "shm", DDP_EUSAGE, "--feedback|--compress");
    o = one_size(4000);
    o.gradient = (struct ddp_string_list){1, {"normal"}};
    refused(&o, "shm", DDP_EUSAGE, "--gradient");
    set_compress(&o, "fp16");
    o.gradient = (struct ddp_string_list){1, {"gauss"}};
    refused(&o, "shm", DDP_EUSAGE, "--gradient|'gauss'");
    o = one_size((uint64_t)64 << 30);
    set_compress(&o, "topk:0.5");
    struct ddp_bench_plan plan;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_plan_make(&o, "shm", 4, (int64_t)20 << 30, &plan, &err), DDP_ENOMEM);
    assert_true(text_names(err.text, " = "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_range),
        cmocka_unit_test(test_host_memory_on_gpus),
        cmocka_unit_test(test_order_is_dtype_op_algorithm_placement_size),
        cmocka_unit_test(test_step_bytes),
        cmocka_unit_test(test_a_range_ends_where_sizes_overflow),
        cmocka_unit_test(test_zero_bytes),
        cmocka_unit_test(test_rounding_is_reported),
        cmocka_unit_test(test_small_sizes),
        cmocka_unit_test(test_listed_groups),
        cmocka_unit_test(test_contradictions_are_refused),
        cmocka_unit_test(test_algorithm_names),
        cmocka_unit_test(test_all_algorithms),
        cmocka_unit_test(test_memory_kinds),
        cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_compressed_points),
        cmocka_unit_test(test_algorithms_of_compressed_points),
        cmocka_unit_test(test_compression_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
