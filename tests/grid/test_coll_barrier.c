/* Every barrier of the registry: no rank leaves before all have entered, in quick succession and
 * out of step, with ranks as processes and as threads. */
#include <stdatomic.h>

#include "grid/grid.h"

/* Each rank writes the round that it enters to its own word. After the barrier all other ranks must
 * have reached that round, and none may be more than one round further. */
static int check_rounds(const struct grid *grid, const struct ddp_coll_alg *alg, uint32_t *round,
                        struct ddp_err *err)
{
    struct ddp_comm *comm = grid->comm;
    const struct ddp_coll_args args = {.coll = DDP_BARRIER};
    _Atomic(uint32_t) *word = (_Atomic(uint32_t) *)grid->memory[1][0];

    for (int i = 0; i < (grid->depth == GRID_BRIEF ? 300 : 2000); i++) {
        for (volatile int spin = 0; spin < (comm->rank * 7919 + i * 31) % 2000; spin++)
            ;
        atomic_store(word, ++*round);
        DDP_TRY(grid_run(grid, alg, &args, err));
        for (int r = 0; r < comm->size; r++) {
            const uint32_t seen =
                atomic_load((_Atomic(uint32_t) *)ddp_comm_map(comm, r, grid->memory[1][0]));
            if (seen != *round && seen != *round + 1)
                return ddp_fail(err, DDP_EDATA, "%s: rank %d left round %u, rank %d is at %u",
                                alg != NULL ? alg->name : "auto", comm->rank, *round, r, seen);
        }
    }
    return 0;
}

static int check_barriers(const struct grid *grid, struct ddp_err *err)
{
    const struct ddp_coll_shape shape = {.coll = DDP_BARRIER};
    uint32_t round = 0;

    atomic_store((_Atomic(uint32_t) *)grid->memory[1][0], 0);
    DDP_TRY(ddp_comm_barrier(grid->comm, err));
    for (const struct ddp_coll_alg *const *a = ddp_coll_algorithms();; a++) {
        if (grid_supports(grid, *a, &shape))
            DDP_TRY(check_rounds(grid, *a, &round, err));
        if (*a == NULL) /* this was auto; the words must outlive the slowest reader */
            return ddp_comm_barrier(grid->comm, err);
    }
}

static void test_processes(void **state)
{
    (void)state;
    grid_launch(check_barriers, DDP_LAUNCH_PROCESSES, GRID_CHECK);
}

static void test_threads(void **state)
{
    (void)state;
    grid_launch(check_barriers, DDP_LAUNCH_THREADS, GRID_BRIEF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("coll barrier", tests, NULL, NULL);
}
