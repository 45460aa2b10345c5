/* For tests of lib/coll/async: runs a function in N ranks, each with a progress thread. Ranks must
 * not use cmocka's asserts; they use CHECK, which returns an error that the parent sees. */
#ifndef DDP_TESTS_ASYNC_RANKS_H
#define DDP_TESTS_ASYNC_RANKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "coll/async.h"
#include "launch/launch.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return ddp_fail(err, DDP_EDATA, "%s:%d: %s", __FILE__, __LINE__, #condition);          \
    } while (0)

#if defined(__SANITIZE_THREAD__)
#define ONLY_THREADS 1
#else
#define ONLY_THREADS 0
#endif

struct job {
    int (*body)(struct ddp_comm *comm, struct ddp_async *async, struct ddp_err *err);
    int64_t timeout_ns;
};

static inline int rank_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    const struct job *job = arg;
    const struct ddp_comm_options options = {
        .timeout_ns = job->timeout_ns,
        .heap_bytes = 16u << 20,
        .device = ddp_device_cpu(ddp_cpu_best_simd()),
        .threads = true,
    };
    struct ddp_comm *comm;
    struct ddp_async *async = NULL;
    DDP_TRY(ddp_comm_create(ddp_backend_find("shm"), &rank->rank_info, &options, &comm, err));
    int rc = ddp_async_create(comm, &async, err);
    if (rc == 0)
        rc = job->body(comm, async, err);
    if (rc != 0)
        ddp_comm_abort(comm, rc);
    ddp_async_destroy(async);
    ddp_comm_destroy(comm);
    return rc;
}

static inline int run(int ranks, enum ddp_launch_mode mode, struct job job,
                      struct ddp_launch_outcome *outcome, struct ddp_err *err)
{
    if (job.timeout_ns == 0)
        job.timeout_ns = INT64_C(20000000000);
    const struct ddp_launch_job launch = {
        .ranks = ranks,
        .mode = mode,
        .timeout_ns = job.timeout_ns,
        .heap_bytes = 16u << 20,
        .rank_main = rank_main,
        .arg = &job,
    };
    return ddp_launch(&launch, outcome, err);
}

static inline struct ddp_coll_args sum_of(float *data, size_t count)
{
    return (struct ddp_coll_args){.coll = DDP_ALLREDUCE,
                                  .send = data,
                                  .recv = data,
                                  .count = count,
                                  .dtype = DDP_F32,
                                  .op = DDP_SUM};
}

/* Prepares and posts a request. */
static inline int start_request(struct ddp_async *async, const struct ddp_coll_alg *alg,
                                const struct ddp_coll_args *args, struct ddp_async_request *req,
                                struct ddp_err *err)
{
    DDP_TRY(ddp_async_prepare(async, alg, args, req, err));
    ddp_async_post(req);
    return 0;
}

#endif
