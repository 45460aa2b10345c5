/* Collectives of no elements, with all algorithms: nothing is written, and no rank waits. Only the
 * last rank makes the calls, and the other ranks never answer them. */
#include "grid/grid.h"

static int run_empty(const struct grid *grid, const struct ddp_coll_alg *alg, enum ddp_coll coll,
                     int registered, struct ddp_err *err)
{
    unsigned char *const *arrays = grid->memory[registered];
    const struct ddp_coll_args args = {
        .coll = coll, .send = arrays[0], .recv = arrays[1], .dtype = DDP_F32, .op = DDP_SUM};

    arrays[1][0] = 77;
    DDP_TRY(grid_run(grid, alg, &args, err));
    if (arrays[1][0] != 77)
        return ddp_fail(err, DDP_EDATA, "%s %s of no elements wrote one", ddp_coll_name(coll),
                        alg != NULL ? alg->name : "auto");
    return 0;
}

static int check_empty(const struct grid *grid, struct ddp_err *err)
{
    const bool calls = grid->comm->rank == grid->comm->size - 1;

    for (int coll = 0; calls && coll < DDP_COLL_COUNT; coll++) {
        for (int registered = 0; coll != DDP_BARRIER && registered < 2; registered++) {
            const struct ddp_coll_shape shape = {
                .coll = (enum ddp_coll)coll, .dtype = DDP_F32, .registered = registered};
            for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms();; a++) {
                if (grid_supports(grid, *a, &shape))
                    DDP_TRY(run_empty(grid, *a, shape.coll, registered, err));
                if (*a == NULL) /* this was auto */
                    break;
            }
        }
    }
    return ddp_comm_barrier(grid->comm, err);
}

static void test_processes(void **state)
{
    (void)state;
    grid_launch(check_empty, DDP_LAUNCH_PROCESSES, GRID_CHECK);
}

static void test_threads(void **state)
{
    (void)state;
    grid_launch(check_empty, DDP_LAUNCH_THREADS, GRID_BRIEF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("coll empty", tests, NULL, NULL);
}
