/* The all-reduce grid: every algorithm of the registry on the shm backend, ranks x counts x dtypes
 * x operations x placement x memory, with ranks as processes and as threads. Expected values are
 * computed here, in 64-bit integers from small integer inputs, so every bit is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "coll/coll.h"
#include "comm/launch.h"
#include "unit/half_ref.h"

#define TIMEOUT_NS  ((int64_t)60 * 1000000000)
#define ARRAY_BYTES ((size_t)3 << 20)
#define GUARD       0xa5

/* A rank's view of a trial. memory[registered][in, out]: buffers of ARRAY_BYTES. */
struct grid {
    struct ddp_comm *comm;
    unsigned char *memory[2][2];
    bool thorough;
};

/* Input of a rank: small integers, so that sums and products stay exact in every type; products of
 * 8 ranks reach 2^8, which wraps to 0 in u8. */
static int64_t input_value(enum ddp_dtype dtype, enum ddp_op op, int rank, size_t i)
{
    const int64_t mixed = (int64_t)((i * 7 + (size_t)rank * 13 + i / 5) % 11);
    if (op == DDP_PROD)
        return dtype != DDP_U8 && mixed < 4 ? -1 : 1 + mixed % 2;
    return dtype == DDP_U8 ? mixed : mixed - 5;
}

static void store_value(unsigned char *at, enum ddp_dtype dtype, double value)
{
    const float f32 = (float)value;
    const int32_t i32 = (int32_t)value;
    uint16_t half;
    switch (dtype) {
    case DDP_F32:
        memcpy(at, &f32, sizeof(f32));
        break;
    case DDP_F64:
        memcpy(at, &value, sizeof(value));
        break;
    case DDP_F16:
    case DDP_BF16:
        half = half_encode(dtype == DDP_F16 ? half_f16 : half_bf16, (double)f32);
        memcpy(at, &half, sizeof(half));
        break;
    case DDP_I32:
        memcpy(at, &i32, sizeof(i32));
        break;
    default:
        *at = (unsigned char)(int64_t)value;
    }
}

/* What all ranks must hold. */
static double expected_value(enum ddp_dtype dtype, enum ddp_op op, int ranks, size_t i)
{
    int64_t total = input_value(dtype, op, 0, i);
    for (int r = 1; r < ranks; r++) {
        const int64_t x = input_value(dtype, op, r, i);
        if (op == DDP_PROD)
            total *= x;
        else if (op == DDP_MIN || op == DDP_MAX)
            total = (op == DDP_MIN) == (x < total) ? x : total;
        else
            total += x;
    }
    if (op != DDP_AVG)
        return (double)total;
    return dtype == DDP_I32 || dtype == DDP_U8 ? (double)(total / ranks) : (double)total / ranks;
}

static int run_once(const struct grid *grid, const struct ddp_coll_alg *alg,
                    const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_coll_plan plan;
    DDP_TRY(ddp_coll_plan_init(&plan, grid->comm, alg, args, err));
    int rc = ddp_coll_run(grid->comm, &plan, err);
    ddp_coll_plan_release(&plan);
    return rc;
}

/* One point: fill, run, compare. A rank that finds a wrong value fails its own rc; the others see
 * it when the job ends. */
static int check_point(const struct grid *grid, const struct ddp_coll_alg *alg, size_t count,
                       enum ddp_dtype dtype, enum ddp_op op, bool in_place, bool registered,
                       struct ddp_err *err)
{
    const struct ddp_comm *comm = grid->comm;
    const size_t elem = ddp_dtype_size(dtype);
    unsigned char *recv = grid->memory[registered][1];
    unsigned char *send = in_place ? recv : grid->memory[registered][0];
    const struct ddp_coll_args args = {
        .coll = DDP_ALLREDUCE,
        .send = send,
        .recv = recv,
        .count = count,
        .dtype = dtype,
        .op = op,
    };

    memset(recv, GUARD, (count + 1) * elem);
    for (size_t i = 0; i < count; i++)
        store_value(send + i * elem, dtype, (double)input_value(dtype, op, comm->rank, i));
    DDP_TRY(run_once(grid, alg, &args, err));
    for (size_t i = 0; i < count; i++) {
        unsigned char want[8];
        store_value(want, dtype, expected_value(dtype, op, comm->size, i));
        if (memcmp(recv + i * elem, want, elem) != 0)
            return ddp_fail(err, DDP_EDATA, "%s %s %s count %zu %s %s: element %zu is wrong",
                            alg != NULL ? alg->name : "auto", ddp_dtype_name(dtype),
                            ddp_op_name(op), count, in_place ? "in place" : "out of place",
                            registered ? "registered" : "private", i);
    }
    for (size_t b = 0; b < elem; b++)
        if (recv[count * elem + b] != GUARD)
            return ddp_fail(err, DDP_EDATA, "%s count %zu wrote beyond its end",
                            alg != NULL ? alg->name : "auto", count);
    return 0;
}

/* Can the algorithm do it? Its supports() is asked as a plan would, without running. */
static bool supported(const struct grid *grid, const struct ddp_coll_alg *alg, size_t count,
                      enum ddp_dtype dtype, enum ddp_op op, bool in_place, bool registered)
{
    const struct ddp_coll_shape shape = {.coll = DDP_ALLREDUCE,
                                         .count = count,
                                         .dtype = dtype,
                                         .op = op,
                                         .in_place = in_place,
                                         .registered = registered};
    struct ddp_err reason = DDP_ERR_INIT;
    return alg == NULL || alg->supports(grid->comm, &shape, &reason) == 0;
}

/* All placements and memories of one algorithm (NULL: auto), dtype, operation and count. */
static int check_count(const struct grid *grid, const struct ddp_coll_alg *alg, size_t count,
                       enum ddp_dtype dtype, enum ddp_op op, struct ddp_err *err)
{
    for (int v = 0; v < 4; v++)
        if (supported(grid, alg, count, dtype, op, v & 1, v & 2))
            DDP_TRY(check_point(grid, alg, count, dtype, op, v & 1, v & 2, err));
    return 0;
}

static int walk_grid(const struct grid *grid, struct ddp_err *err)
{
    const size_t ranks = (size_t)grid->comm->size;
    const size_t counts[] = {0, 1, 2, ranks - 1, ranks, ranks + 1, 1000, 10007};

    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms();; a++) {
        for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++)
            for (int op = 0; op < DDP_OP_COUNT; op++)
                for (size_t c = 0; c < DDP_COUNT_OF(counts); c++) {
                    /* Large counts of every dtype and operation only where it is quick. */
                    if (!grid->thorough && counts[c] > 100 && (dtype + op) % 5 != 0)
                        continue;
                    DDP_TRY(check_count(grid, *a, counts[c], (enum ddp_dtype)dtype, (enum ddp_op)op,
                                        err));
                }
        /* Several rounds of a pipeline, and a last one that is not full. */
        DDP_TRY(check_count(grid, *a, 600007, DDP_F32, DDP_SUM, err));
        if (*a == NULL) /* was auto */
            return 0;
    }
}

/* Values that round: all algorithms must combine in rank order, so all ranks and all algorithms
 * give the same bits. */
static int check_identical(const struct grid *grid, struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    uint64_t first = 0, all[16];

    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++) {
        float *send = (float *)grid->memory[1][0], *recv = (float *)grid->memory[1][1];
        const size_t count = 3001;
        const struct ddp_coll_args args = {DDP_ALLREDUCE, send, recv, count, DDP_F32, DDP_AVG, 0};
        if (!supported(grid, *a, count, DDP_F32, DDP_AVG, false, true))
            continue;
        for (size_t i = 0; i < count; i++)
            send[i] = 1.0f / (float)(1 + (i * 31 + (size_t)comm->rank * 977) % 1009);
        DDP_TRY(run_once(grid, *a, &args, err));
        uint64_t hash = ddp_fnv1a(DDP_FNV_INIT, recv, count * sizeof(float));
        first = first == 0 ? hash : first;
        DDP_TRY(ddp_comm_exchange(comm, &hash, all, sizeof(hash), err));
        for (int r = 0; r < comm->size; r++)
            if (all[r] != first)
                return ddp_fail(err, DDP_EDATA, "%s: rank %d has other bits", (*a)->name, r);
    }
    return 0;
}

/* Calls in quick succession without a barrier, algorithms and sizes mixed, ranks out of step: slots
 * and rings must not be used again too early. */
static int check_succession(const struct grid *grid, struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    uint64_t x = 12345;

    for (int call = 0; call < (grid->thorough ? 600 : 150); call++) {
        const struct ddp_coll_alg *const *all = ddp_coll_algorithms();
        x = x * 6364136223846793005u + 1442695040888963407u;
        const size_t count = (x >> 33) % 8 == 0 ? (x >> 36) % 300000 : (x >> 36) % 5000;
        const struct ddp_coll_alg *alg = all[(x >> 58) % 3];
        float *buf = (float *)grid->memory[1][1];
        const struct ddp_coll_args args = {DDP_ALLREDUCE, buf, buf, count, DDP_F32, DDP_SUM, 0};
        if (!supported(grid, alg, count, DDP_F32, DDP_SUM, true, true))
            continue;
        for (size_t i = 0; i < count; i++)
            buf[i] = (float)(i % 13 + (size_t)comm->rank + (size_t)call % 7);
        for (volatile int spin = 0; spin < (comm->rank * 7919 + call * 31) % 3000; spin++)
            ;
        DDP_TRY(run_once(grid, alg, &args, err));
        for (size_t i = 0; i < count; i++) {
            const size_t ranks = (size_t)comm->size;
            const size_t want = ranks * (i % 13 + (size_t)call % 7) + ranks * (ranks - 1) / 2;
            if (buf[i] != (float)want)
                return ddp_fail(err, DDP_EDATA, "call %d (%s, %zu elements): element %zu is %g",
                                call, alg->name, count, i, (double)buf[i]);
        }
    }
    return 0;
}

/* Half of the ranks as a group of their own, at the same time as the other half. */
static int check_group(const struct grid *grid, struct ddp_err *err)
{
    struct ddp_comm *world = grid->comm;
    const int half = world->size / 2, low = world->rank < half;
    const int first = low ? 0 : half, n = low ? half : world->size - half;
    int members[16];
    struct grid part = *grid;

    if (world->size < 2)
        return 0;
    for (int i = 0; i < n; i++)
        members[i] = first + i;
    DDP_TRY(ddp_comm_group(world, members, n, &part.comm, err));
    int rc = 0;
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL && rc == 0; a++)
        rc = check_count(&part, *a, 1000, DDP_F32, DDP_SUM, err);
    ddp_comm_destroy(part.comm);
    return rc;
}

static int open_grid(struct grid *grid, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    const struct ddp_comm_options options = {
        .timeout_ns = TIMEOUT_NS,
        .heap_bytes = 4 * ARRAY_BYTES,
        .device = ddp_device_cpu(ddp_cpu_best_simd()),
    };
    DDP_TRY(ddp_comm_create(ddp_backend_find("shm"), &rank->place, &options, &grid->comm, err));
    for (int i = 0; i < 2; i++) {
        void *registered;
        DDP_TRY(ddp_comm_alloc(grid->comm, ARRAY_BYTES, &registered, err));
        grid->memory[1][i] = registered;
        grid->memory[0][i] = ddp_alloc_pages(ARRAY_BYTES);
        if (grid->memory[0][i] == NULL)
            return ddp_fail(err, DDP_ENOMEM, "no memory for the grid");
    }
    return 0;
}

static int grid_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    struct grid grid = {.thorough = rank->place.size <= 3 && *(const bool *)arg};

    DDP_TRY(open_grid(&grid, rank, err));
    int rc = walk_grid(&grid, err);
    if (rc == 0)
        rc = check_identical(&grid, err);
    if (rc == 0)
        rc = check_succession(&grid, err);
    if (rc == 0)
        rc = check_group(&grid, err);
    if (rc != 0)
        ddp_comm_abort(grid.comm, rc);
    for (int i = 0; i < 2; i++) {
        ddp_free_pages(grid.memory[0][i], ARRAY_BYTES);
        if (rc == 0)
            ddp_comm_free(grid.comm, grid.memory[1][i]);
    }
    ddp_comm_destroy(grid.comm);
    return rc;
}

static void run_grid(enum ddp_launch_mode mode, bool thorough)
{
    static const int ranks[] = {1, 2, 3, 4, 5, 7, 8};
    for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
        struct ddp_launch_job job = {
            .ranks = ranks[i],
            .mode = mode,
            .timeout_ns = TIMEOUT_NS,
            .heap_bytes = 4 * ARRAY_BYTES,
            .rank_main = grid_main,
            .arg = &thorough,
        };
        struct ddp_launch_outcome outcome = {0};
        struct ddp_err err = DDP_ERR_INIT;
        if (ddp_launch(&job, &outcome, &err) != 0 || outcome.code != 0)
            fail_msg("%d ranks: %s (%s)", ranks[i], err.text, outcome.story);
    }
}

static void test_processes(void **state)
{
    (void)state;
    run_grid(DDP_LAUNCH_PROCESSES, true);
}

static void test_threads(void **state)
{
    (void)state;
    run_grid(DDP_LAUNCH_THREADS, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("allreduce grid", tests, NULL, NULL);
}
