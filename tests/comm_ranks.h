/* For tests of lib/comm: runs a function in N ranks, as processes or threads, on backend shm.
 *
 * Ranks must not use cmocka's asserts (they belong to the test process); they use CHECK, which
 * returns an error that the parent then sees as the outcome. */
#ifndef DDP_TESTS_COMM_RANKS_H
#define DDP_TESTS_COMM_RANKS_H

#include <stdint.h>
#include <string.h>

#include "comm/backend.h"
#include "comm/comm.h"
#include "launch/launch.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return ddp_fail(err, DDP_EDATA, "%s:%d: %s", __FILE__, __LINE__, #condition);          \
    } while (0)

struct ranks_job {
    int (*body)(struct ddp_comm *comm, struct ddp_launch_rank *rank, void *arg,
                struct ddp_err *err);
    void *arg;
    int64_t timeout_ns;
    uint64_t heap_bytes;
    bool threads; /* as in ddp_comm_options */
    int (*on_message)(void *arg, int rank, uint32_t type, const void *payload, size_t bytes,
                      struct ddp_err *err);
    void (*on_news)(void *arg, const char *line);
};

static inline int ranks_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    const struct ranks_job *job = arg;
    struct ddp_comm_options options = {
        .timeout_ns = job->timeout_ns, .heap_bytes = job->heap_bytes, .threads = job->threads};
    struct ddp_comm *comm;
    DDP_TRY(ddp_comm_create(ddp_backend_find("shm"), &rank->rank_info, &options, &comm, err));
    int rc = job->body(comm, rank, job->arg, err);
    ddp_comm_destroy(comm);
    return rc;
}

static inline int ranks_message(void *arg, int rank, uint32_t type, const void *payload,
                                size_t bytes, struct ddp_err *err)
{
    const struct ranks_job *job = arg;
    return job->on_message(job->arg, rank, type, payload, bytes, err);
}

static inline void ranks_news(void *arg, const char *line)
{
    const struct ranks_job *job = arg;
    job->on_news(job->arg, line);
}

/* Zero members of `job` get defaults: 20 s, 64 MiB. */
static inline int ranks_run(int ranks, enum ddp_launch_mode mode, struct ranks_job job,
                            struct ddp_launch_outcome *outcome, struct ddp_err *err)
{
    if (job.timeout_ns == 0)
        job.timeout_ns = INT64_C(20000000000);
    if (job.heap_bytes == 0)
        job.heap_bytes = 64u << 20;
    struct ddp_launch_job launch = {
        .ranks = ranks,
        .mode = mode,
        .timeout_ns = job.timeout_ns,
        .heap_bytes = job.heap_bytes,
        .rank_main = ranks_main,
        .on_message = job.on_message != NULL ? ranks_message : NULL,
        .on_news = job.on_news != NULL ? ranks_news : NULL,
        .arg = &job,
    };
    return ddp_launch(&launch, outcome, err);
}

/* Built with ThreadSanitizer: only threads make sense there. */
#if defined(__SANITIZE_THREAD__)
#define RANKS_TSAN 1
#else
#define RANKS_TSAN 0
#endif

#endif
