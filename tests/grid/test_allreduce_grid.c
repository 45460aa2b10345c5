/* The all-reduce grid: every algorithm of the registry on the shm backend, ranks x counts x dtypes
 * x operations x placement x memory, with ranks as processes and as threads. Expected values are
 * computed here, in 64-bit integers from small integer inputs, so every bit is known. */
#include "grid/grid.h"

#include "unit/half_ref.h"

#define GUARD 0xa5

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
    DDP_TRY(grid_run(grid, alg, &args, err));
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

/* All placements and memories of one algorithm (NULL: auto), dtype, operation and count. */
static int check_count(const struct grid *grid, const struct ddp_coll_alg *alg, size_t count,
                       enum ddp_dtype dtype, enum ddp_op op, struct ddp_err *err)
{
    for (int v = 0; v < 4; v++)
        if (grid_supports(grid, alg, count, dtype, op, v & 1, v & 2))
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

static void test_processes(void **state)
{
    (void)state;
    grid_launch(walk_grid, DDP_LAUNCH_PROCESSES, true);
}

static void test_threads(void **state)
{
    (void)state;
    grid_launch(walk_grid, DDP_LAUNCH_THREADS, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("allreduce grid", tests, NULL, NULL);
}
