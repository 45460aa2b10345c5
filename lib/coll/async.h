/* Non-blocking collectives. Each rank has a progress thread with its own communicator. The thread
 * runs collectives in the order in which they were started, and sleeps while there are none.
 *
 * Callers are those that have other work to do meanwhile (the bucketer, `--overlap-compute`).
 * Usage:
 *     ddp_async_create(comm, &async, err);                         once, all ranks
 *     ddp_async_start(async, NULL, &args, &request, err);          all ranks, same order
 *     ... compute; neither read nor write the arrays ...
 *     ddp_async_wait(&request, 0, err);
 * A collective that runs in every step is prepared once with ddp_async_prepare, then started with
 * ddp_async_post and awaited with ddp_async_wait each time, and freed with ddp_async_release.
 *
 * The thread that owns the parent communicator calls all functions. Only the collectives and
 * `after` run in the progress thread. The parent may be used meanwhile, because it and the progress
 * thread share no flags, slots or messages. It must have been opened with ddp_comm_options.threads.
 * If a collective fails, ddp_async_test and ddp_async_wait return its error for that request and
 * for every later one; the later ones are not run. The progress thread has its own flight recorder.
 * The parent's recorder shows the collective while the rank waits for it, so a supervisor can
 * report what a lost rank was doing. The progress thread does not reorder or merge collectives, and
 * never runs two at once. */
#ifndef DDP_COLL_ASYNC_H
#define DDP_COLL_ASYNC_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_async;

enum ddp_async_state { DDP_ASYNC_READY, DDP_ASYNC_QUEUED, DDP_ASYNC_DONE };

/* A request. The caller owns the memory and must not move it before the request was awaited or
 * released. Callers may use only `after` and `arg`; all other members belong to async.c. */
struct ddp_async_request {
    struct ddp_async *async;
    struct ddp_async_request *next;
    struct ddp_coll_plan plan;
    /* Optional. The progress thread calls after(arg) when the collective has succeeded, before the
     * request is done. To be set between prepare and post. */
    void (*after)(void *arg);
    void *arg;
    int (*job)(void *arg, struct ddp_err *err); /* run instead of the plan's collective */
    int64_t started_ns, finished_ns; /* when the progress thread began and ended the collective */
    bool once;                       /* made by ddp_async_start: released when done */
    bool reported;                   /* the parent's recorder shows this request */
    uint64_t seq;                    /* number of this request, from 0 */
    int code;
    struct ddp_err err;
    _Atomic(int) state; /* enum ddp_async_state */
};

/* Starts the progress thread. Collective over the ranks of `parent`, which must outlive *out. Uses
 * one of the backend's channels. If the backend's native calls block and no flags are shared, the
 * caller must watch ddp_async_flight() with a watchdog. */
int ddp_async_create(struct ddp_comm *parent, struct ddp_async **out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for all started requests, each with its own deadline, ends the thread and frees *async.
 * Collective, unless a failure occurred. Queued requests are done afterwards, but must still be
 * released. NULL is allowed. */
void ddp_async_destroy(struct ddp_async *async);
/* Returns the progress thread's communicator. Use it for the shape of a plan, and for its counters
 * while no request is queued. */
struct ddp_comm *ddp_async_comm(struct ddp_async *async);
/* Returns the progress thread's flight recorder, for a watchdog. It is valid until
 * ddp_async_destroy. */
const struct ddp_flight *ddp_async_flight(const struct ddp_async *async);

/* Prepares a collective that can be started many times. alg may be NULL for `auto`. Not collective.
 * Returns the errors of ddp_coll_plan_init. */
int ddp_async_prepare(struct ddp_async *async, const struct ddp_coll_alg *alg,
                      const struct ddp_coll_args *args, struct ddp_async_request *req,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Prepares a job that consists of more than one collective. The progress thread calls job(arg),
 * which may only use ddp_async_comm(). arg is borrowed. Jobs have no `after`. bytes: the message
 * size that the flight recorders show, as an all-reduce of f32. */
void ddp_async_prepare_job(struct ddp_async *async, int (*job)(void *arg, struct ddp_err *err),
                           void *arg, uint64_t bytes, struct ddp_async_request *req);
/* Queues a prepared request that is not queued yet, and returns at once. Collective: all ranks post
 * in the same order. Makes no system call while the thread is busy, and one to wake it. */
void ddp_async_post(struct ddp_async_request *req);
/* Frees the prepared request; waits first if it is queued. A zeroed request is allowed. */
void ddp_async_release(struct ddp_async_request *req);

/* Prepares and posts a request. The request is released when ddp_async_test or ddp_async_wait
 * reports that it is done. */
int ddp_async_start(struct ddp_async *async, const struct ddp_coll_alg *alg,
                    const struct ddp_coll_args *args, struct ddp_async_request *req,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Sets *done to true if the request is finished or was never posted. Then returns its result: 0 or
 * the error of the progress thread. Never blocks and makes no system call. */
int ddp_async_test(struct ddp_async_request *req, bool *done, struct ddp_err *err) DDP_MUST_CHECK;
/* Sleeps until the request is finished, and returns its result. timeout_ns > 0 is the longest wait;
 * with 0 the communicator's timeout applies, and starts again each time the thread completes a
 * request. On timeout the function aborts the world with DDP_ELOST. It returns when the progress
 * thread no longer uses the arrays, or at once if the thread is inside a blocking call of a
 * library. */
int ddp_async_wait(struct ddp_async_request *req, int64_t timeout_ns,
                   struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
