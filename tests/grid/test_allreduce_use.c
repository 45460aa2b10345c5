/* All-reduce in use: values that round, NaNs, calls in quick succession, groups. Tests every
 * algorithm of the registry, with ranks as processes and as threads. */
#include "grid/grid.h"

#include "base/rng.h"
#include "unit/half_ref.h"

static bool supports(const struct grid *grid, const struct ddp_coll_alg *alg, size_t count,
                     enum ddp_dtype dtype, bool in_place)
{
    const struct ddp_coll_shape shape = {.coll = DDP_ALLREDUCE,
                                         .count = count,
                                         .dtype = dtype,
                                         .in_place = in_place,
                                         .registered = true};
    return grid_supports(grid, alg, &shape);
}

/* True for algorithms that combine all inputs in rank order in one reduce. All of these give the
 * same bits. */
static bool in_rank_order(const struct ddp_coll_alg *alg)
{
    return strcmp(alg->name, "flat") == 0 || strcmp(alg->name, "direct") == 0 ||
           strcmp(alg->name, "staged") == 0;
}

/* With values that round, all ranks must get the same bits in any order of summation. */
static int check_identical(const struct grid *grid, struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    uint64_t first = 0, all[GRID_RANKS_MAX];

    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++) {
        float *send = (float *)grid->memory[1][0], *recv = (float *)grid->memory[1][1];
        const size_t count = 3001;
        const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                           .send = send,
                                           .recv = recv,
                                           .count = count,
                                           .dtype = DDP_F32,
                                           .op = DDP_AVG};
        if (!supports(grid, *a, count, DDP_F32, false))
            continue;
        for (size_t i = 0; i < count; i++)
            send[i] = 1.0f / (float)(1 + (i * 31 + (size_t)comm->rank * 977) % 1009);
        DDP_TRY(grid_run(grid, *a, &args, err));
        uint64_t hash = ddp_fnv1a(DDP_FNV_INIT, recv, count * sizeof(float));
        if (first == 0 && in_rank_order(*a))
            first = hash;
        DDP_TRY(ddp_comm_allgather_bytes(comm, &hash, all, sizeof(hash), err));
        for (int r = 0; r < comm->size; r++)
            if (all[r] != all[0] || (in_rank_order(*a) && all[r] != first))
                return ddp_fail(err, DDP_EDATA, "%s: rank %d has other bits", (*a)->name, r);
    }
    return 0;
}

/* Returns the average of 16-bit floats that a ring must give. Each input is divided and rounded,
 * then the sum is rounded once per combine, in the order owner + 1, ..., owner. With two ranks the
 * only combine divides. */
static uint16_t ring_in_halves(struct half_format format, int owner, int ranks,
                               double (*value)(int rank, size_t i), size_t i)
{
    const float before = ranks > 2 ? (float)ranks : 1, after = ranks > 2 ? 1 : (float)ranks;
    double sum = 0;
    for (int k = 1; k <= ranks; k++) {
        const int rank = (owner + k) % ranks;
        const double x = half_decode(format, half_encode(format, value(rank, i)));
        const double share = half_decode(format, half_encode(format, (double)((float)x / before)));
        const float combined = (float)sum + (float)share;
        sum = k == 1 ? share : half_decode(format, half_encode(format, (double)(combined / after)));
    }
    return half_encode(format, sum);
}

static double thirds(int rank, size_t i)
{
    return (double)((i * 37 + (size_t)rank * 11) % 101) / 3.0;
}

/* Checks the roundings that the opening comments promise against real arithmetic. */
static int check_rounding(const struct grid *grid, struct ddp_err *err)
{
    const struct ddp_coll_alg *ring = ddp_coll_find(DDP_ALLREDUCE, "ring");
    const int ranks = grid->comm->size;
    const size_t count = 40 * (size_t)ranks;
    uint16_t *send = (uint16_t *)grid->memory[0][0], *recv = (uint16_t *)grid->memory[0][1];

    for (int k = 0; k < 2 && ranks > 1; k++) {
        const struct half_format format = k == 0 ? half_f16 : half_bf16;
        const enum ddp_dtype dtype = k == 0 ? DDP_F16 : DDP_BF16;
        const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                           .send = send,
                                           .recv = recv,
                                           .count = count,
                                           .dtype = dtype,
                                           .op = DDP_AVG};
        for (size_t i = 0; i < count; i++)
            send[i] = half_encode(format, thirds(grid->comm->rank, i));
        DDP_TRY(grid_run(grid, ring, &args, err));
        for (size_t i = 0; i < count; i++) {
            const uint16_t want = ring_in_halves(format, (int)(i / 40), ranks, thirds, i);
            if (recv[i] != want)
                return ddp_fail(err, DDP_EDATA, "ring %s on %d ranks: element %zu is %#x, not %#x",
                                ddp_dtype_name(dtype), ranks, i, recv[i], want);
        }
    }
    return 0;
}

/* Averages of large 16-bit floats do not overflow under any algorithm. */
static int check_large(const struct grid *grid, struct ddp_err *err)
{
    const uint16_t large = half_encode(half_f16, 60000);
    const size_t count = 1000;
    uint16_t *send = (uint16_t *)grid->memory[1][0], *recv = (uint16_t *)grid->memory[1][1];

    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL; a++) {
        const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                           .send = send,
                                           .recv = recv,
                                           .count = count,
                                           .dtype = DDP_F16,
                                           .op = DDP_AVG};
        if (!supports(grid, *a, count, DDP_F16, false))
            continue;
        for (size_t i = 0; i < count; i++)
            send[i] = large;
        DDP_TRY(grid_run(grid, *a, &args, err));
        for (size_t i = 0; i < count; i++) {
            const double got = half_decode(half_f16, recv[i]);
            if (!(got > 59000 && got < 61000))
                return ddp_fail(err, DDP_EDATA, "%s on %d ranks: the average of 60000 is %g",
                                (*a)->name, grid->comm->size, got);
        }
    }
    return 0;
}

/* One NaN of any sign and payload on any rank makes the result of every operation the canonical NaN
 * on all ranks, and does not change other elements. */
static int check_nan(const struct grid *grid, struct ddp_err *err)
{
    const uint32_t odd_nan = 0xffc12345, canonical = 0x7fc00000, one = 0x3f800000;
    const size_t ranks = (size_t)grid->comm->size, count = 3 * ranks;
    uint32_t *send = (uint32_t *)grid->memory[1][0], *recv = (uint32_t *)grid->memory[1][1];

    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms(); *a != NULL && ranks > 1; a++)
        for (int op = 0; op < DDP_OP_COUNT; op++) {
            const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                               .send = send,
                                               .recv = recv,
                                               .count = count,
                                               .dtype = DDP_F32,
                                               .op = (enum ddp_op)op};
            if (!supports(grid, *a, count, DDP_F32, false))
                break;
            for (size_t i = 0; i < count; i++)
                send[i] = i == 3 * (size_t)grid->comm->rank + 1 ? odd_nan : one;
            DDP_TRY(grid_run(grid, *a, &args, err));
            for (size_t i = 0; i < count; i++)
                if (i % 3 == 1 ? recv[i] != canonical : recv[i] == canonical)
                    return ddp_fail(err, DDP_EDATA, "%s %s on %zu ranks: element %zu is %#x",
                                    (*a)->name, ddp_op_name((enum ddp_op)op), ranks, i, recv[i]);
        }
    return 0;
}

/* Calls in quick succession without a barrier, with mixed algorithms and sizes and ranks out of
 * step: data slots and ring buffers must not be reused too early. */
static int check_succession(const struct grid *grid, struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    const struct ddp_coll_alg *const *all = ddp_coll_algorithms();
    size_t algorithms = 0;
    uint64_t x = 12345;

    while (all[algorithms] != NULL)
        algorithms++;
    for (int call = 0; call < (grid->depth != GRID_BRIEF ? 2000 : 500); call++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const size_t count = (x >> 33) % 8 == 0 ? (x >> 36) % 300000 : (x >> 36) % 5000;
        const struct ddp_coll_alg *alg = all[(x >> 40) % algorithms];
        float *buf = (float *)grid->memory[1][1];
        const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                           .send = buf,
                                           .recv = buf,
                                           .count = count,
                                           .dtype = DDP_F32,
                                           .op = DDP_SUM};
        if (!supports(grid, alg, count, DDP_F32, true))
            continue;
        for (size_t i = 0; i < count; i++)
            buf[i] = (float)(i % 13 + (size_t)comm->rank + (size_t)call % 7);
        for (volatile int spin = 0; spin < (comm->rank * 7919 + call * 31) % 3000; spin++)
            ;
        DDP_TRY(grid_run(grid, alg, &args, err));
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

/* Checks one sum of small integers. */
static int check_sum(const struct grid *grid, const struct ddp_coll_alg *alg, struct ddp_err *err)
{
    const int rank = grid->comm->world_rank[grid->comm->rank];
    float *send = (float *)grid->memory[1][0], *recv = (float *)grid->memory[1][1];
    const size_t count = 1000;
    const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                       .send = send,
                                       .recv = recv,
                                       .count = count,
                                       .dtype = DDP_F32,
                                       .op = DDP_SUM};
    if (!supports(grid, alg, count, DDP_F32, false))
        return 0;
    for (size_t i = 0; i < count; i++)
        send[i] = (float)(i % 13 + (size_t)rank);
    DDP_TRY(grid_run(grid, alg, &args, err));
    for (size_t i = 0; i < count; i++) {
        size_t want = 0;
        for (int r = 0; r < grid->comm->size; r++)
            want += i % 13 + (size_t)grid->comm->world_rank[r];
        if (recv[i] != (float)want)
            return ddp_fail(err, DDP_EDATA, "%s in a group: element %zu is %g, not %zu", alg->name,
                            i, (double)recv[i], want);
    }
    return 0;
}

/* Half of the ranks form a group and run at the same time as the other half. */
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
        rc = check_sum(&part, *a, err);
    ddp_comm_destroy(part.comm);
    return rc;
}

static int use(const struct grid *grid, struct ddp_err *err)
{
    DDP_TRY(check_identical(grid, err));
    DDP_TRY(check_rounding(grid, err));
    DDP_TRY(check_large(grid, err));
    DDP_TRY(check_nan(grid, err));
    DDP_TRY(check_succession(grid, err));
    return check_group(grid, err);
}

static void test_processes(void **state)
{
    (void)state;
    grid_launch(use, DDP_LAUNCH_PROCESSES, GRID_CHECK);
}

static void test_threads(void **state)
{
    (void)state;
    grid_launch(use, DDP_LAUNCH_THREADS, GRID_BRIEF);
}

static void test_hosts(void **state)
{
    (void)state;
    grid_launch_hosts(use, DDP_LAUNCH_PROCESSES, GRID_BRIEF, NULL);
    grid_launch_hosts(use, DDP_LAUNCH_THREADS, GRID_BRIEF, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests_name("allreduce in use", tests, NULL, NULL);
}
