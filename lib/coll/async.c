/* Non-blocking collectives: the queue, the progress thread, and waiting for a request.
 *
 * `lock` guards the queue and `stopping`. The condition `work` wakes the progress thread. The
 * condition `finished` wakes the thread that waits for a request. The progress thread writes a
 * request's result and then sets the state to DONE (release). A thread that reads DONE (acquire)
 * may therefore read the result without the lock. */
#include "coll/async.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit.h"
#include "comm/backend.h"
#include "comm/hosts.h"
#include "comm/shm/comm_shm.h"
#include "comm/waiter.h"
#include "launch/segment.h"

/* Number of polls of a wait before it sleeps. All these polls together take less time than going to
 * sleep and waking up. */
#define POLLS_BEFORE_SLEEP 64

struct ddp_async {
    struct ddp_comm *parent, *comm;
    /* `flight` is the progress thread's recorder: block->progress or own_flight. `block` is this
     * rank's block in the segment, or NULL if the progress thread uses own_flight. */
    struct ddp_flight *flight, own_flight;
    struct ddp_segment_rank *block;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    struct ddp_async_request *first, *last;
    bool stopping, rank_is_thread;
    uint64_t posted; /* number of requests posted so far, the same on all ranks */
    /* The first failure. Only the progress thread uses these two members. */
    int code;
    struct ddp_err failed;
};

/* Adds cores to the affinity mask of the progress thread. If our launcher has pinned the rank to a
 * core, the progress thread could run on this core only while the rank does not compute. The
 * progress thread may therefore also use the launcher's cores. If the rank is a process, the
 * launcher is its parent process. If the rank is a thread, the launcher is the main thread of this
 * process. Under an outside launcher the user chooses the mask, so the function does not change
 * it. */
static void leave_core_of_rank(const struct ddp_comm *comm, bool rank_is_thread)
{
    cpu_set_t all, more;
    if ((comm->backend->caps & DDP_CAP_LAUNCHED) != 0 || comm->rank_info.segment == NULL ||
        sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    if (sched_getaffinity(rank_is_thread ? getpid() : getppid(), sizeof more, &more) != 0)
        return;
    CPU_OR(&all, &all, &more);
    (void)pthread_setaffinity_np(pthread_self(), sizeof all, &all);
}

static void run_request(struct ddp_async *async, struct ddp_async_request *req)
{
    req->started_ns = ddp_now_ns();
    if (async->code == 0) {
        async->code = req->job != NULL ? req->job(req->arg, &req->err)
                                       : ddp_coll_run(async->comm, &req->plan, &req->err);
        if (async->code != 0) {
            async->failed = req->err;
            /* Abort, so that the other ranks do not wait for the collectives that this rank will
             * not run. */
            ddp_comm_abort(async->comm, async->code);
        }
    } else {
        req->err = async->failed;
    }
    req->code = async->code;
    if (req->code == 0 && req->after != NULL)
        req->after(req->arg);
    req->finished_ns = ddp_now_ns();
}

static void *progress(void *arg)
{
    struct ddp_async *async = arg;
    (void)pthread_setname_np(pthread_self(), "ddp async");
    leave_core_of_rank(async->comm, async->rank_is_thread);
    pthread_mutex_lock(&async->lock);
    for (;;) {
        while (async->first == NULL && !async->stopping)
            pthread_cond_wait(&async->work, &async->lock);
        struct ddp_async_request *req = async->first;
        if (req == NULL)
            break;
        async->first = req->next;
        pthread_mutex_unlock(&async->lock);
        run_request(async, req);
        pthread_mutex_lock(&async->lock);
        /* Store the state under the lock, so that a waiting thread cannot miss the wake-up between
         * its check and its sleep. */
        atomic_store_explicit(&req->state, DDP_ASYNC_DONE, memory_order_release);
        pthread_cond_broadcast(&async->finished);
    }
    pthread_mutex_unlock(&async->lock);
    return NULL;
}

static int start_thread(struct ddp_async *async, struct ddp_err *err)
{
    /* The new thread inherits a mask that blocks all signals, so that other threads handle them. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&async->thread, NULL, progress, async);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return ddp_fail_errno(err, DDP_ENOMEM, rc, "cannot start the progress thread");
    return 0;
}

/* Returns the recorder for the progress thread. The shared segment has one such recorder per rank,
 * which other processes can read after the rank has died. The progress thread uses this recorder if
 * there is a segment and no other progress thread of the rank uses it. Otherwise the progress
 * thread uses a recorder in private memory. */
static struct ddp_flight *find_recorder(struct ddp_async *async)
{
    const struct ddp_comm *comm = async->parent;
    while (comm->parent != NULL)
        comm = comm->parent;
    if (comm->rank_info.segment == NULL)
        return &async->own_flight;
    struct ddp_segment_rank *block = ddp_segment_rank_of(comm->rank_info.segment, comm->rank);
    async->block = block;
    if (atomic_exchange_explicit(&block->progress_used, 1, memory_order_acq_rel) == 0)
        return &block->progress;
    async->block = NULL;
    return &async->own_flight;
}

/* Releases the recorder in the segment, so that another progress thread can use it. */
static void leave_recorder(const struct ddp_async *async)
{
    if (async->block != NULL)
        atomic_store_explicit(&async->block->progress_used, 0, memory_order_release);
}

static int open_comm(struct ddp_async *async, struct ddp_err *err)
{
    struct ddp_comm *parent = async->parent;
    int *ranks = ddp_calloc((size_t)parent->size, sizeof *ranks);
    if (ranks == NULL) {
        ddp_comm_abort(parent, DDP_ENOMEM);
        return ddp_fail(err, DDP_ENOMEM, "no memory for a group of %d ranks", parent->size);
    }
    for (int r = 0; r < parent->size; r++)
        ranks[r] = r;
    int rc = ddp_comm_group(parent, ranks, parent->size, &async->comm, err);
    free(ranks);
    DDP_TRY(rc);
    /* The progress thread gets its own recorder, because two threads must not write to the same
     * recorder. The progress thread competes with its rank for cores, so waits of the progress
     * thread yield early. */
    struct ddp_comm *local = async->comm->hosts != NULL ? async->comm->hosts->local : NULL;
    struct ddp_comm *const all[] = {async->comm, local, async->comm->control};
    async->flight = find_recorder(async);
    for (size_t i = 0; i < DDP_COUNT_OF(all); i++) {
        if (all[i] == NULL)
            continue;
        all[i]->flight = async->flight;
        all[i]->rank_info.oversubscribed = true;
        if (all[i]->shm != NULL) {
            all[i]->shm->spin = DDP_SPIN_SHARED;
            all[i]->shm->oversubscribed = true;
        } else {
            /* Without shared memory, waits of the progress thread sleep, so that the rank can
             * compute on the core. Waits on the side channel (comm->control) need not sleep. Only
             * communicators of backend nccl have comm->control, and its ranks compute on GPUs. */
            all[i]->sleeps_in_waits = all[i] != async->comm->control;
        }
    }
    ddp_flight_phase(async->flight, "progress thread");
    return 0;
}

int ddp_async_create(struct ddp_comm *parent, struct ddp_async **out, struct ddp_err *err)
{
    struct ddp_async *async = ddp_calloc(1, sizeof *async);
    if (async == NULL) {
        ddp_comm_abort(parent, DDP_ENOMEM);
        return ddp_fail(err, DDP_ENOMEM, "no memory for a progress thread");
    }
    int rc = 0;
    async->parent = parent;
    async->rank_is_thread = (pid_t)syscall(SYS_gettid) != getpid();
    DDP_TRY_GOTO(open_comm(async, err), err_free);
    pthread_mutex_init(&async->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&async->work, &attr);
    pthread_cond_init(&async->finished, &attr);
    pthread_condattr_destroy(&attr);
    DDP_TRY_GOTO(start_thread(async, err), err_thread);
    *out = async;
    return 0;

err_thread:
    /* The other ranks may have a progress thread, which would wait for this rank's collectives. */
    ddp_comm_abort(parent, rc);
    pthread_cond_destroy(&async->finished);
    pthread_cond_destroy(&async->work);
    pthread_mutex_destroy(&async->lock);
    ddp_comm_destroy(async->comm);
    leave_recorder(async);
err_free:
    free(async);
    return rc;
}

void ddp_async_destroy(struct ddp_async *async)
{
    if (async == NULL)
        return;
    pthread_mutex_lock(&async->lock);
    async->stopping = true;
    pthread_cond_signal(&async->work);
    pthread_mutex_unlock(&async->lock);
    pthread_join(async->thread, NULL);
    pthread_cond_destroy(&async->finished);
    pthread_cond_destroy(&async->work);
    pthread_mutex_destroy(&async->lock);
    ddp_comm_destroy(async->comm);
    leave_recorder(async);
    free(async);
}

struct ddp_comm *ddp_async_comm(struct ddp_async *async)
{
    return async->comm;
}

const struct ddp_flight *ddp_async_flight(const struct ddp_async *async)
{
    return async->flight;
}

int ddp_async_prepare(struct ddp_async *async, const struct ddp_coll_alg *alg,
                      const struct ddp_coll_args *args, struct ddp_async_request *req,
                      struct ddp_err *err)
{
    memset(req, 0, sizeof *req);
    DDP_TRY(ddp_coll_plan_init(&req->plan, async->comm, alg, args, err));
    req->async = async;
    return 0;
}

void ddp_async_prepare_job(struct ddp_async *async, int (*job)(void *arg, struct ddp_err *err),
                           void *arg, enum ddp_dtype dtype, uint64_t bytes,
                           struct ddp_async_request *req)
{
    memset(req, 0, sizeof *req);
    req->async = async;
    req->job = job;
    req->arg = arg;
    req->plan.args = (struct ddp_coll_args){.coll = DDP_ALLREDUCE, .dtype = dtype};
    req->plan.bytes = bytes;
}

static bool is_queued(const struct ddp_async_request *req)
{
    return atomic_load_explicit(&req->state, memory_order_acquire) == DDP_ASYNC_QUEUED;
}

void ddp_async_post(struct ddp_async_request *req)
{
    struct ddp_async *async = req->async;
    assert(async != NULL && !is_queued(req) && "the request must be prepared and not queued");
    req->next = NULL;
    req->reported = false;
    req->seq = async->posted++;
    req->code = 0;
    req->err = DDP_ERR_INIT;
    atomic_store_explicit(&req->state, DDP_ASYNC_QUEUED, memory_order_relaxed);
    pthread_mutex_lock(&async->lock);
    if (async->first == NULL)
        async->first = req;
    else
        async->last->next = req;
    async->last = req;
    pthread_cond_signal(&async->work);
    pthread_mutex_unlock(&async->lock);
}

/* Returns the result of a request that is done. */
static int collect(const struct ddp_async_request *req, struct ddp_err *err)
{
    if (req->code != 0 && err != NULL && err->code == 0)
        *err = req->err;
    return req->code;
}

/* Records the request in the parent's recorder. Returns the index of the entry for
 * ddp_flight_leave. ddp_async_wait calls this function at most once per post. Ranks that wait for
 * their requests in the same order therefore record the same sequence. */
static uint64_t report_to_parent(struct ddp_async_request *req)
{
    const struct ddp_async *async = req->async;
    const struct ddp_flight_op op = {.what = req->plan.args.coll,
                                     .dtype = req->plan.args.dtype,
                                     .bytes = req->plan.bytes,
                                     .group = async->comm->id,
                                     .seq = req->seq,
                                     .ranks = async->comm->size};
    req->reported = true;
    return ddp_flight_enter_op(async->parent->flight, &op);
}

/* Sleeps until the request is done and returns true. Returns false if deadline_ns passes first.
 * deadline_ns 0 means no deadline. */
static bool sleep_until_done(struct ddp_async_request *req, int64_t deadline_ns)
{
    struct ddp_async *async = req->async;
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                                   .tv_nsec = (long)(deadline_ns % 1000000000)};
    int rc = 0;
    pthread_mutex_lock(&async->lock);
    while (is_queued(req) && rc != ETIMEDOUT)
        rc = deadline_ns != 0 ? pthread_cond_timedwait(&async->finished, &async->lock, &until)
                              : pthread_cond_wait(&async->finished, &async->lock);
    bool done = !is_queued(req);
    pthread_mutex_unlock(&async->lock);
    return done;
}

static int expire(struct ddp_async_request *req, int64_t timeout_ns, struct ddp_err *err)
{
    struct ddp_async *async = req->async;
    char time[32], where[384];
    ddp_format_ns((double)timeout_ns, time, sizeof time);
    ddp_flight_describe(async->flight, where, sizeof where);
    ddp_comm_abort(async->parent, DDP_ELOST);
    /* If the ranks share memory, the progress thread notices the abort and ends the request. Wait
     * until the request has ended. Ignore the request's own error, because the abort causes it. */
    if (async->comm->shm != NULL)
        sleep_until_done(req, 0);
    return ddp_fail(err, DDP_ELOST, "rank %d waited %s for its progress thread, which is in %.200s",
                    async->parent->world_rank[async->parent->rank], time, where);
}

int ddp_async_wait(struct ddp_async_request *req, int64_t timeout_ns, struct ddp_err *err)
{
    if (req->async == NULL ||
        atomic_load_explicit(&req->state, memory_order_relaxed) == DDP_ASYNC_READY)
        return 0;
    uint64_t seq = 0;
    const bool reports = !req->reported;
    if (reports)
        seq = report_to_parent(req);
    for (int i = 0; i < POLLS_BEFORE_SLEEP && is_queued(req); i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    int rc = 0;
    if (is_queued(req) && !sleep_until_done(req, timeout_ns > 0 ? ddp_now_ns() + timeout_ns : 0))
        rc = expire(req, timeout_ns, err);
    if (rc == 0)
        rc = collect(req, err);
    if (reports)
        ddp_flight_leave(req->async->parent->flight, seq, rc != 0);
    return rc;
}

void ddp_async_release(struct ddp_async_request *req)
{
    if (req->async != NULL && is_queued(req))
        sleep_until_done(req, 0);
    ddp_coll_plan_release(&req->plan);
    memset(req, 0, sizeof *req);
}
