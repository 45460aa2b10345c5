/* Names of types, operations and collectives, and the bus-bandwidth factors. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/coll_kind.h"
#include "base/cpuinfo.h"
#include "base/dtype.h"
#include "base/mem.h"

static void test_dtypes(void **state)
{
    static const size_t sizes[DDP_DTYPE_COUNT] = {4, 2, 2, 8, 4, 1, 1, 4, 8, 8, 1, 1};
    static const char *const names[DDP_DTYPE_COUNT] = {"f32", "f16", "bf16",     "f64",
                                                       "i32", "u8",  "i8",       "u32",
                                                       "i64", "u64", "fp8-e4m3", "fp8-e5m2"};
    for (int i = 0; i < DDP_DTYPE_COUNT; i++) {
        assert_int_equal(ddp_dtype_size((enum ddp_dtype)i), sizes[i]);
        assert_string_equal(ddp_dtype_name((enum ddp_dtype)i), names[i]);
        assert_int_equal(ddp_dtype_parse(names[i]), i);
    }
    static const struct {
        const char *name;
        int dtype;
    } aliases[] = {
        {"float", DDP_F32},
        {"fp32", DDP_F32},
        {"half", DDP_F16},
        {"fp16", DDP_F16},
        {"bfloat16", DDP_BF16},
        {"double", DDP_F64},
        {"fp64", DDP_F64},
        {"int", DDP_I32},
        {"int32", DDP_I32},
        {"uint8", DDP_U8},
        {"int64", DDP_I64},
        {"f8e4m3", DDP_FP8_E4M3},
        {"float8_e5m2", DDP_FP8_E5M2},
        {"F32", -1},
        {"f33", -1},
        {"", -1},
        {"f3", -1},
        {"float8", -1},
        {" float", -1},
        {"float fp32", -1},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(aliases); i++)
        assert_int_equal(ddp_dtype_parse(aliases[i].name), aliases[i].dtype);
}

static void test_ops(void **state)
{
    for (int i = 0; i < DDP_OP_COUNT; i++)
        assert_int_equal(ddp_op_parse(ddp_op_name((enum ddp_op)i)), i);
    assert_int_equal(ddp_op_parse("average"), DDP_AVG);
    assert_int_equal(ddp_op_parse("mean"), DDP_AVG);
    assert_int_equal(ddp_op_parse("SUM"), -1);
    assert_int_equal(ddp_op_parse(""), -1);
}

static void test_collectives(void **state)
{
    for (int i = 0; i < DDP_COLL_COUNT; i++)
        assert_int_equal(ddp_coll_parse(ddp_coll_name((enum ddp_coll)i)), i);
    static const struct {
        const char *name;
        int coll;
    } aliases[] = {
        {"all_reduce", DDP_ALLREDUCE},
        {"all-reduce", DDP_ALLREDUCE},
        {"reduce_scatter", DDP_REDUCE_SCATTER},
        {"reducescatter", DDP_REDUCE_SCATTER},
        {"allgather", DDP_ALL_GATHER},
        {"all_gather", DDP_ALL_GATHER},
        {"bcast", DDP_BROADCAST},
        {"alltoall", DDP_ALL_TO_ALL},
        {"all_to_all", DDP_ALL_TO_ALL},
        {"alltoallv", DDP_ALL_TO_ALL_V},
        {"all_to_all_v", DDP_ALL_TO_ALL_V},
        {"MPI_Alltoallv", DDP_ALL_TO_ALL_V},
        {"allgatherv", DDP_ALL_GATHER_V},
        {"MPI_Allgatherv", DDP_ALL_GATHER_V},
        {"reducescatterv", DDP_REDUCE_SCATTER_V},
        {"reduce_scatter_v", DDP_REDUCE_SCATTER_V},
        {"MPI_Reduce_scatter", DDP_REDUCE_SCATTER_V},
        {"sendrecv", DDP_SEND_RECV},
        {"send_recv", DDP_SEND_RECV},
        {"allreduc", -1},
        {"-allreduce", -1},
        {"allreduce-", -1},
        {"", -1},
        {"Allreduce", -1},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(aliases); i++)
        assert_int_equal(ddp_coll_parse(aliases[i].name), aliases[i].coll);
}

static void test_factors(void **state)
{
    /* The factors are those of nccl-tests, doc/PERFORMANCE.md. */
    assert_true(ddp_coll_busbw_factor(DDP_ALLREDUCE, 2) == 1);
    assert_true(ddp_coll_busbw_factor(DDP_ALLREDUCE, 4) == 1.5);
    assert_true(ddp_coll_busbw_factor(DDP_ALLREDUCE, 8) == 1.75);
    static const enum ddp_coll sharded[] = {DDP_REDUCE_SCATTER,  DDP_ALL_GATHER, DDP_ALL_TO_ALL,
                                            DDP_ALL_TO_ALL_V,    DDP_GATHER,     DDP_SCATTER,
                                            DDP_REDUCE_SCATTER_V};
    for (size_t i = 0; i < DDP_COUNT_OF(sharded); i++)
        assert_true(ddp_coll_busbw_factor(sharded[i], 4) == 0.75);
    static const enum ddp_coll whole[] = {DDP_BROADCAST, DDP_REDUCE, DDP_SEND_RECV};
    for (size_t i = 0; i < DDP_COUNT_OF(whole); i++)
        assert_true(ddp_coll_busbw_factor(whole[i], 4) == 1);
    assert_true(isnan(ddp_coll_busbw_factor(DDP_BARRIER, 4)));
    for (int c = 0; c < DDP_COLL_COUNT; c++)
        assert_true(isnan(ddp_coll_busbw_factor((enum ddp_coll)c, 1)));
}

static void test_simd_names(void **state)
{
    for (int i = 0; i < DDP_SIMD_COUNT; i++)
        assert_int_equal(ddp_simd_parse(ddp_simd_name((enum ddp_simd)i)), i);
    assert_int_equal(ddp_simd_parse("sse9"), -1);
    assert_true(ddp_cpu_best_simd() < DDP_SIMD_COUNT);
    assert_true(ddp_cpu_usable_cores() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),      cmocka_unit_test(test_ops),
        cmocka_unit_test(test_collectives), cmocka_unit_test(test_factors),
        cmocka_unit_test(test_simd_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
