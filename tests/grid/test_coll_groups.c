/* Disjoint groups run different collectives at the same time. Each group runs its own random
 * sequence over all algorithms of the registry, with a collective of the world in between; ranks
 * are processes and threads. Messages and flags of one group must never reach another group. */
#include "grid/grid.h"
#include "grid/grid_values.h"

#define COUNT_MAX 3000

static uint64_t next_random(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return *x >> 33;
}

/* Runs a random collective of this group, out of place, and checks its result. The ranks of a group
 * have the same *x. */
static int check_random(const struct grid *grid, uint64_t *x, struct ddp_err *err)
{
    const struct ddp_coll_alg *const *all = ddp_coll_algorithms();
    const int me = grid->comm->rank, n = grid->comm->size;
    unsigned char *send = grid->memory[1][0], *recv = grid->memory[1][1];
    size_t algorithms = 0;

    while (all[algorithms] != NULL)
        algorithms++;
    const struct ddp_coll_alg *alg = all[next_random(x) % algorithms];
    const struct ddp_coll_shape s = {.coll = alg->coll,
                                     .count = next_random(x) % COUNT_MAX,
                                     .dtype = next_random(x) % 2 ? DDP_F32 : DDP_I32,
                                     .op = next_random(x) % 2 ? DDP_SUM : DDP_MAX,
                                     .root = (int)(next_random(x) % (uint64_t)n),
                                     .registered = true};
    if (!grid_supports(grid, alg, &s))
        return 0;
    const struct ddp_coll_args args = {.coll = s.coll,
                                       .send = send,
                                       .recv = recv,
                                       .count = s.count,
                                       .dtype = s.dtype,
                                       .op = s.op,
                                       .root = s.root};
    for (size_t i = 0; i < grid_send_count(s.coll, s.count, me, n, s.root); i++)
        grid_store(send + i * 4, s.dtype, (double)grid_input(s.dtype, s.op, me, n, i));
    DDP_TRY(grid_run(grid, alg, &args, err));
    if (s.coll == DDP_BARRIER)
        return 0;
    for (size_t i = 0; i < grid_recv_count(s.coll, s.count, me, n, s.root); i++) {
        unsigned char want[8];
        grid_store(want, s.dtype, grid_expected(s.coll, s.dtype, s.op, s.count, me, n, s.root, i));
        if (memcmp(recv + i * 4, want, 4) != 0)
            return ddp_fail(err, DDP_EDATA, "%s/%s in a group of %d: element %zu is wrong",
                            ddp_coll_name(s.coll), alg->name, n, i);
    }
    return 0;
}

/* The ranks r with even r / width form one group, the other ranks another. */
static int check_split(const struct grid *world, int width, struct ddp_err *err)
{
    struct grid part = *world;
    int members[GRID_RANKS_MAX], n = 0;
    const int mine = world->comm->rank / width % 2;
    uint64_t ours = (uint64_t)(1000 * width + mine), everybodys = (uint64_t)width;
    int rc = 0;

    for (int r = 0; r < world->comm->size; r++)
        if (r / width % 2 == mine)
            members[n++] = r;
    DDP_TRY(ddp_comm_group(world->comm, members, n, &part.comm, err));
    for (int call = 0; call < (world->depth == GRID_FULL ? 5000 : 300) && rc == 0; call++) {
        rc = check_random(&part, &ours, err);
        if (rc == 0 && call % 50 == 49)
            rc = check_random(world, &everybodys, err);
    }
    ddp_comm_destroy(part.comm);
    return rc;
}

/* Checks groups of neighbours, of every second rank, and of halves. */
static int check_groups(const struct grid *grid, struct ddp_err *err)
{
    for (int width = 1; width < grid->comm->size; width *= 2)
        DDP_TRY(check_split(grid, width, err));
    return 0;
}

static void test_processes(void **state)
{
    grid_launch(check_groups, DDP_LAUNCH_PROCESSES, *(enum grid_depth *)*state);
}

static void test_threads(void **state)
{
    grid_launch(check_groups, DDP_LAUNCH_THREADS, *(enum grid_depth *)*state);
}

/* Groups on one of several hosts, on some of them, and on all. */
static void test_hosts(void **state)
{
    grid_launch_hosts(check_groups, DDP_LAUNCH_THREADS, *(enum grid_depth *)*state, NULL);
}

int main(int argc, char **argv)
{
    enum grid_depth depth = argc > 1 && strcmp(argv[1], "--full") == 0 ? GRID_FULL : GRID_CHECK;
    if (argc > 2 && strcmp(argv[1], "--mpi") == 0)
        return grid_under_mpiexec(check_groups, argv[2], NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_processes, &depth),
        cmocka_unit_test_prestate(test_threads, &depth),
        cmocka_unit_test_prestate(test_hosts, &depth),
    };
    return cmocka_run_group_tests_name("coll groups", tests, NULL, NULL);
}
