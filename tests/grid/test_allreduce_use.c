/* All-reduce in use: values that round, calls in quick succession, groups; every algorithm of the
 * registry, ranks as processes and as threads. */
#include "grid/grid.h"

#include "base/json.h"

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
        if (!grid_supports(grid, *a, count, DDP_F32, DDP_AVG, false, true))
            continue;
        for (size_t i = 0; i < count; i++)
            send[i] = 1.0f / (float)(1 + (i * 31 + (size_t)comm->rank * 977) % 1009);
        DDP_TRY(grid_run(grid, *a, &args, err));
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
        if (!grid_supports(grid, alg, count, DDP_F32, DDP_SUM, true, true))
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

/* One sum of small integers. */
static int check_sum(const struct grid *grid, const struct ddp_coll_alg *alg, struct ddp_err *err)
{
    const int rank = grid->comm->world_rank[grid->comm->rank];
    float *send = (float *)grid->memory[1][0], *recv = (float *)grid->memory[1][1];
    const size_t count = 1000;
    const struct ddp_coll_args args = {DDP_ALLREDUCE, send, recv, count, DDP_F32, DDP_SUM, 0};
    if (!grid_supports(grid, alg, count, DDP_F32, DDP_SUM, false, true))
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
        rc = check_sum(&part, *a, err);
    ddp_comm_destroy(part.comm);
    return rc;
}

static int use(const struct grid *grid, struct ddp_err *err)
{
    DDP_TRY(check_identical(grid, err));
    DDP_TRY(check_succession(grid, err));
    return check_group(grid, err);
}

static void test_processes(void **state)
{
    (void)state;
    grid_launch(use, DDP_LAUNCH_PROCESSES, true);
}

static void test_threads(void **state)
{
    (void)state;
    grid_launch(use, DDP_LAUNCH_THREADS, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("allreduce in use", tests, NULL, NULL);
}
