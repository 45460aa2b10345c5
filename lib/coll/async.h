/* Non-blocking collectives: a progress thread a rank that runs them in the order they were started,
 * on a communicator of its own, and sleeps when there is nothing to do.
 *
 * For who has work to do meanwhile (the bucketer, `--overlap-compute`). Use:
 *     ddp_async_create(comm, &async, err);                         once, all ranks
 *     ddp_async_start(async, NULL, &args, &request, err);          all ranks, same order
 *     ... compute; neither read nor write the arrays ...
 *     ddp_async_wait(&request, 0, err);
 * or, for the same collective in every step: ddp_async_prepare once, then ddp_async_post and
 * ddp_async_wait each time, ddp_async_release at the end.
 *
 * All functions belong to the thread that owns the parent communicator; only the collectives and
 * `after` run in the progress thread. The parent may be used meanwhile: it and the thread have
 * flags, slots and messages apart. It must have been opened with ddp_comm_options.threads.
 * A failure of the thread comes back from test and wait of the request that failed, and of every
 * later one, which are not run any more. The thread keeps a flight recorder of its own; in the
 * parent's, the rank is in the collective while it waits for it (so a supervisor can say what a
 * lost rank was doing).
 * What this does not do: reorder, merge, or run two collectives at once. */
#ifndef DDP_COLL_ASYNC_H
#define DDP_COLL_ASYNC_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_async;

enum ddp_async_state { DDP_ASYNC_READY, DDP_ASYNC_QUEUED, DDP_ASYNC_DONE };

/* The caller's memory; stays where it is until waited for (or released). All members but `after`
 * and `arg` are async.c's. after: NULL, or run by the progress thread when the collective has
 * succeeded, before the request is done; set between prepare and post. */
struct ddp_async_request {
    struct ddp_async *async;
    struct ddp_async_request *next;
    struct ddp_coll_plan plan;
    void (*after)(void *arg);
    void *arg;
    int (*job)(void *arg, struct ddp_err *err); /* instead of the plan's collective */
    int64_t started_ns, finished_ns; /* by the progress thread: when it ran the collective */
    bool once;                       /* made by ddp_async_start: released when done */
    bool told;                       /* the parent's recorder has it */
    uint64_t seq;                    /* which of the progress thread's it is */
    int code;
    struct ddp_err err;
    _Atomic(int) state; /* enum ddp_async_state */
};

/* Collective over the ranks of `parent`, which must outlive it. Takes one of the backend's
 * channels. On a backend whose native calls block (no shared flags), the caller watches
 * ddp_async_flight() with a watchdog. */
int ddp_async_create(struct ddp_comm *parent, struct ddp_async **out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for what was started (each with its deadline), ends the thread, frees. Collective when
 * healthy. Requests still queued are done then, but must be released. NULL is fine. */
void ddp_async_destroy(struct ddp_async *async);
/* The communicator the thread uses: for a plan's shape and for counters while nothing is queued. */
struct ddp_comm *ddp_async_comm(struct ddp_async *async);
/* What the thread is doing, for a watchdog. Lives until ddp_async_destroy. */
const struct ddp_flight *ddp_async_flight(const struct ddp_async *async);

/* Makes a collective ready to be run often. alg NULL: auto. Not collective; errors as
 * ddp_coll_plan_init. */
int ddp_async_prepare(struct ddp_async *async, const struct ddp_coll_alg *alg,
                      const struct ddp_coll_args *args, struct ddp_async_request *req,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* The same for what is more than one collective: job(arg) is run by the progress thread, on
 * ddp_async_comm alone; arg is borrowed. `after` is not for jobs. bytes: what the recorders say of
 * it (as an all-reduce of f32). */
void ddp_async_prepare_job(struct ddp_async *async, int (*job)(void *arg, struct ddp_err *err),
                           void *arg, uint64_t bytes, struct ddp_async_request *req);
/* Queues a prepared request that is not queued; returns at once. Collective: all ranks, same order.
 * No system call while the thread is busy, one to wake it. */
void ddp_async_post(struct ddp_async_request *req);
/* Frees what prepare made, after the request is done if it is queued. A zeroed request is fine. */
void ddp_async_release(struct ddp_async_request *req);

/* ddp_async_prepare and ddp_async_post in one; the request is released when test or wait has said
 * that it is done. */
int ddp_async_start(struct ddp_async *async, const struct ddp_coll_alg *alg,
                    const struct ddp_coll_args *args, struct ddp_async_request *req,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* *done: is it finished (never posted: true)? Then its result is returned: 0 or the error of the
 * thread. Never blocks, makes no system call. */
int ddp_async_test(struct ddp_async_request *req, bool *done, struct ddp_err *err) DDP_MUST_CHECK;
/* Sleeps until it is finished, and returns its result. timeout_ns > 0: longest wait; 0: the
 * communicator's timeout, begun afresh whenever the thread gets one request further. When it
 * passes, the world is ended with DDP_ELOST, and the call returns when the thread has let go of
 * the arrays (where it is inside a library's blocking call: at once). */
int ddp_async_wait(struct ddp_async_request *req, int64_t timeout_ns,
                   struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
