/* Helpers of the grid tests: they run a test body on 1 to 8 ranks of the shm backend, as processes
 * or as threads, with registered and private buffers. */
#ifndef DDP_TEST_GRID_H
#define DDP_TEST_GRID_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coll/coll.h"
#include "comm/shm/comm_shm.h"
#include "launch/launch.h"
#include "launch/launcher.h"

#define GRID_TIMEOUT_NS  ((int64_t)60 * 1000000000)
#define GRID_ARRAY_BYTES ((size_t)3 << 20)
#define GRID_RANKS_MAX   19

/* Under ThreadSanitizer, which checks threads only, a few processes are enough. */
#if defined(__SANITIZE_THREAD__)
#define GRID_TSAN 1
#else
#define GRID_TSAN 0
#endif

/* How many combinations of a grid to run. The combinations that are left out test nothing new. */
enum grid_depth { GRID_BRIEF, GRID_CHECK, GRID_FULL };

/* The grid as one rank sees it. memory[registered][send, recv]: buffers of GRID_ARRAY_BYTES. depth:
 * the requested depth, or brief if ranks share cores and the full grid was not requested. only: the
 * only algorithm to test, NULL for all. */
struct grid {
    struct ddp_comm *comm;
    unsigned char *memory[2][2];
    enum grid_depth depth;
    const char *only;
};

/* The test body that every rank runs. Its return value becomes the rank's. */
typedef int grid_body(const struct grid *grid, struct ddp_err *err);

struct grid_job {
    grid_body *body;
    enum grid_depth depth;
    const char *only;
};

/* Runs a call. Before every fifth one, moves the flags, if there are any. A call of no elements may
 * be made by one rank alone, so the flags do not move before it. */
static inline int grid_run(const struct grid *grid, const struct ddp_coll_alg *alg,
                           const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_coll_plan plan;
    if (grid->comm->shm != NULL && args->count > 0 && grid->comm->collectives % 5 == 4)
        DDP_TRY(ddp_shm_move_flags(grid->comm, err));
    DDP_TRY(ddp_coll_plan_init(&plan, grid->comm, alg, args, err));
    int rc = ddp_coll_run(grid->comm, &plan, err);
    ddp_coll_plan_release(&plan);
    return rc;
}

/* True if the algorithm (NULL: auto) supports the shape. Asks as a plan would, without running. */
static inline bool grid_supports(const struct grid *grid, const struct ddp_coll_alg *alg,
                                 const struct ddp_coll_shape *shape)
{
    struct ddp_err reason = DDP_ERR_INIT;
    if (alg == NULL)
        return ddp_coll_auto(grid->comm, shape, &reason) != NULL;
    return alg->coll == shape->coll && ddp_coll_supports(alg, grid->comm, shape, &reason) == 0;
}

/* True if the algorithm sends messages between ranks, instead of sharing memory. The kind of memory
 * makes no difference to it. */
static inline bool grid_sends(const struct ddp_coll_alg *alg)
{
    return (alg->needs & DDP_NEEDS_MESSAGES) != 0;
}

/* Opens the world, runs the body in it and closes it. */
static inline int grid_in_world(const struct grid_job *job, const char *backend,
                                const struct ddp_rank_info *rank_info, const char *module_dir,
                                struct ddp_err *err)
{
    const struct ddp_comm_options options = {
        .timeout_ns = GRID_TIMEOUT_NS,
        .heap_bytes = 4 * GRID_ARRAY_BYTES,
        .device = ddp_device_cpu(ddp_cpu_best_simd()),
        .module_dir = module_dir,
    };
    struct grid grid = {.depth = job->depth, .only = job->only};
    int rc = 0;

    DDP_TRY(ddp_comm_create(ddp_backend_find(backend), rank_info, &options, &grid.comm, err));
    if (grid.depth == GRID_CHECK && grid.comm->size > 3)
        grid.depth = GRID_BRIEF;
    for (int i = 0; i < 2 && rc == 0; i++) {
        void *registered = NULL;
        rc = ddp_comm_alloc(grid.comm, GRID_ARRAY_BYTES, &registered, err);
        grid.memory[1][i] = registered;
        grid.memory[0][i] = ddp_alloc_pages(GRID_ARRAY_BYTES);
        if (rc == 0 && grid.memory[0][i] == NULL)
            rc = ddp_fail(err, DDP_ENOMEM, "no memory for the grid");
    }
    if (rc == 0)
        rc = job->body(&grid, err);
    if (rc != 0 &&
        module_dir != NULL) /* under mpiexec no other process can report it after an abort */
        fprintf(stderr, "%s\n", err->text);
    if (rc != 0)
        ddp_comm_abort(grid.comm, rc);
    for (int i = 0; i < 2; i++) {
        if (grid.memory[0][i] != NULL)
            ddp_free_pages(grid.memory[0][i], GRID_ARRAY_BYTES);
        if (rc == 0)
            ddp_comm_free(grid.comm, grid.memory[1][i]);
    }
    ddp_comm_destroy(grid.comm);
    return rc;
}

static inline int grid_rank_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    return grid_in_world(arg, "shm", &rank->rank_info, NULL, err);
}

/* Runs the body under mpiexec on backend mpi, or with torchrun's variables on backend ucx, with the
 * modules in module_dir. Returns the exit code. tests/mpi/coll_grid.bats and
 * tests/ucx/ucx_grid.bats start it. */
static inline int grid_under_mpiexec(grid_body *body, const char *module_dir, const char *only)
{
    const struct grid_job job = {.body = body, .depth = GRID_BRIEF, .only = only};
    struct ddp_launcher launcher;
    struct ddp_err err = DDP_ERR_INIT;
    int rc = ddp_launcher_detect(&launcher, &err);

    if (rc == 0)
        rc = grid_in_world(&job, launcher.over_tcp ? "ucx" : "mpi", &launcher.rank_info, module_dir,
                           &err);
    return ddp_exit_code(rc);
}

/* Fails the test with the report of the first rank that failed. */
static inline void grid_start(struct grid_job *grid_job, enum ddp_launch_mode mode, int ranks)
{
    const struct ddp_launch_job job = {
        .ranks = ranks,
        .mode = mode,
        .timeout_ns = GRID_TIMEOUT_NS,
        .heap_bytes = 4 * GRID_ARRAY_BYTES,
        .rank_main = grid_rank_main,
        .arg = grid_job,
    };
    struct ddp_launch_outcome outcome = {0};
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_launch(&job, &outcome, &err) != 0 || outcome.code != 0)
        fail_msg("%d ranks: %s (%s)", ranks, err.text, outcome.report_text);
}

static inline void grid_launch(grid_body *body, enum ddp_launch_mode mode, enum grid_depth depth)
{
    static const int all[] = {1, 2, 3, 8, 4, 5, 7};
    const bool few = GRID_TSAN && mode == DDP_LAUNCH_PROCESSES;
    /* Processes and threads run the same algorithms, so a brief grid of threads has fewer ranks. */
    const bool brief = mode == DDP_LAUNCH_THREADS && depth == GRID_BRIEF;
    struct grid_job job = {.body = body, .depth = few ? GRID_BRIEF : depth};
    for (size_t i = 0; i < (few ? 3 : brief ? 4 : DDP_COUNT_OF(all)); i++)
        grid_start(&job, mode, all[i]);
}

/* Like grid_launch, but the ranks are treated as ranks of several hosts (hosts.h). */
static inline void grid_launch_hosts(grid_body *body, enum ddp_launch_mode mode,
                                     enum grid_depth depth, const char *only)
{
    static const struct {
        const char *hosts;
        int ranks;
    } rows[] = {{"2", 4}, {"1+3", 4}, {"2", 6}, {"3*", 7}, {"1", 3}};
    struct grid_job job = {.body = body, .depth = depth, .only = only};
    if (GRID_TSAN && mode == DDP_LAUNCH_PROCESSES)
        return;
    for (size_t i = 0; i < (GRID_TSAN ? 2 : DDP_COUNT_OF(rows)); i++) {
        setenv("DDPBENCH_SIMULATE_HOSTS", rows[i].hosts, 1);
        grid_start(&job, mode, rows[i].ranks);
    }
    unsetenv("DDPBENCH_SIMULATE_HOSTS");
}

#endif
