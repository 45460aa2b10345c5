/* What the grids have in common: the same job on 1 to 8 ranks of the shm backend, as processes or
 * as threads, with registered and private buffers. */
#ifndef DDP_TEST_GRID_H
#define DDP_TEST_GRID_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coll/coll.h"
#include "comm/launch.h"

#define GRID_TIMEOUT_NS  ((int64_t)60 * 1000000000)
#define GRID_ARRAY_BYTES ((size_t)3 << 20)

/* A rank's view. memory[registered][in, out]: buffers of GRID_ARRAY_BYTES. thorough: time for all.
 */
struct grid {
    struct ddp_comm *comm;
    unsigned char *memory[2][2];
    bool thorough;
};

/* What every rank runs; its return code becomes the rank's. */
typedef int grid_body(const struct grid *grid, struct ddp_err *err);

struct grid_job {
    grid_body *body;
    bool thorough;
};

static inline int grid_run(const struct grid *grid, const struct ddp_coll_alg *alg,
                           const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct ddp_coll_plan plan;
    DDP_TRY(ddp_coll_plan_init(&plan, grid->comm, alg, args, err));
    int rc = ddp_coll_run(grid->comm, &plan, err);
    ddp_coll_plan_release(&plan);
    return rc;
}

/* Can the algorithm do it? Its supports() is asked as a plan would, without running. */
static inline bool grid_supports(const struct grid *grid, const struct ddp_coll_alg *alg,
                                 size_t count, enum ddp_dtype dtype, enum ddp_op op, bool in_place,
                                 bool registered)
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

static inline int grid_open(struct grid *grid, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    const struct ddp_comm_options options = {
        .timeout_ns = GRID_TIMEOUT_NS,
        .heap_bytes = 4 * GRID_ARRAY_BYTES,
        .device = ddp_device_cpu(ddp_cpu_best_simd()),
    };
    DDP_TRY(ddp_comm_create(ddp_backend_find("shm"), &rank->place, &options, &grid->comm, err));
    for (int i = 0; i < 2; i++) {
        void *registered;
        DDP_TRY(ddp_comm_alloc(grid->comm, GRID_ARRAY_BYTES, &registered, err));
        grid->memory[1][i] = registered;
        grid->memory[0][i] = ddp_alloc_pages(GRID_ARRAY_BYTES);
        if (grid->memory[0][i] == NULL)
            return ddp_fail(err, DDP_ENOMEM, "no memory for the grid");
    }
    return 0;
}

static inline int grid_rank_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    const struct grid_job *job = arg;
    struct grid grid = {.thorough = rank->place.size <= 3 && job->thorough};

    DDP_TRY(grid_open(&grid, rank, err));
    int rc = job->body(&grid, err);
    if (rc != 0)
        ddp_comm_abort(grid.comm, rc);
    for (int i = 0; i < 2; i++) {
        ddp_free_pages(grid.memory[0][i], GRID_ARRAY_BYTES);
        if (rc == 0)
            ddp_comm_free(grid.comm, grid.memory[1][i]);
    }
    ddp_comm_destroy(grid.comm);
    return rc;
}

/* Fails the test with the story of the first rank that failed. */
static inline void grid_launch(grid_body *body, enum ddp_launch_mode mode, bool thorough)
{
    static const int ranks[] = {1, 2, 3, 4, 5, 7, 8};
    struct grid_job grid_job = {body, thorough};
    for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
        const struct ddp_launch_job job = {
            .ranks = ranks[i],
            .mode = mode,
            .timeout_ns = GRID_TIMEOUT_NS,
            .heap_bytes = 4 * GRID_ARRAY_BYTES,
            .rank_main = grid_rank_main,
            .arg = &grid_job,
        };
        struct ddp_launch_outcome outcome = {0};
        struct ddp_err err = DDP_ERR_INIT;
        if (ddp_launch(&job, &outcome, &err) != 0 || outcome.code != 0)
            fail_msg("%d ranks: %s (%s)", ranks[i], err.text, outcome.story);
    }
}

#endif
