/* Non-blocking collectives. Each rank has a progress thread with its own communicator. The thread
 * runs collectives one at a time, in the order in which they were started. It sleeps while there is
 * nothing to run.
 *
 * Usage:
 *     ddp_async_create(comm, &async, err);                         once, all ranks
 *     ddp_async_prepare(async, NULL, &args, &request, err);        once per collective
 *     ddp_async_post(&request);                                    all ranks, same order
 *     ... compute; neither read nor write the arrays ...
 *     ddp_async_wait(&request, 0, err);                            post and wait as often as needed
 *     ddp_async_release(&request);
 *
 * Only the thread that owns the parent communicator may call these functions. The progress thread
 * runs the collectives, the jobs (ddp_async_prepare_job) and the function `after` of a request. At
 * the same time the owner may use the parent communicator, because the two communicators share no
 * flags, slots or messages. The parent must have been opened with ddp_comm_options.threads.
 *
 * If a collective or a job fails, later requests are not run. ddp_async_wait then returns the same
 * error for the failed request and for every later request.
 *
 * The progress thread has its own flight recorder. While the rank waits for a request, the parent's
 * recorder shows this request, too. A report on a hang can therefore name the operation that the
 * rank waits for. */
#ifndef DDP_COLL_ASYNC_H
#define DDP_COLL_ASYNC_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_async;

enum ddp_async_state { DDP_ASYNC_READY, DDP_ASYNC_QUEUED, DDP_ASYNC_DONE };

/* A request. The caller owns the memory of the request and must not move the request while it is
 * queued. Callers may use only `after` and `arg`. All other members belong to async.c. */
struct ddp_async_request {
    struct ddp_async *async;
    struct ddp_async_request *next;
    struct ddp_coll_plan plan;
    /* Optional. After the collective has succeeded, the progress thread calls after(arg), and then
     * marks the request as done. Set both members between prepare and post. */
    void (*after)(void *arg);
    void *arg;
    int (*job)(void *arg, struct ddp_err *err); /* runs instead of a collective */
    /* Times at which the run began and ended (ddp_now_ns). The run includes the call of `after`. */
    int64_t started_ns, finished_ns;
    bool reported; /* the parent's recorder has shown this post */
    uint64_t seq;  /* number of this post among all posts, from 0 */
    int code;
    struct ddp_err err;
    _Atomic(int) state; /* enum ddp_async_state */
};

/* Starts the progress thread. Collective over the ranks of `parent`, which must outlive *out. Opens
 * a group of all ranks (ddp_comm_group) for the progress thread. If the ranks share no memory, the
 * backend's library may block the progress thread forever. The caller must then watch
 * ddp_async_flight() with a watchdog. */
int ddp_async_create(struct ddp_comm *parent, struct ddp_async **out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for all posted requests, ends the thread and frees *async. Collective, unless a failure
 * occurred. Afterwards the caller must still release the requests. `async` may be NULL. */
void ddp_async_destroy(struct ddp_async *async);
/* Returns the progress thread's communicator. Jobs use this communicator. Callers may use it to
 * choose an algorithm, and may read its counters while no request is queued. */
struct ddp_comm *ddp_async_comm(struct ddp_async *async);
/* Returns the progress thread's flight recorder, for a watchdog. The recorder is valid until
 * ddp_async_destroy. */
const struct ddp_flight *ddp_async_flight(const struct ddp_async *async);

/* Prepares a collective that can be started many times. alg may be NULL for `auto`. Not collective.
 * Returns 0 or an error of ddp_coll_plan_init. */
int ddp_async_prepare(struct ddp_async *async, const struct ddp_coll_alg *alg,
                      const struct ddp_coll_args *args, struct ddp_async_request *req,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Prepares a job, which may run several collectives. The progress thread calls job(arg). The job
 * may use only the communicator ddp_async_comm(). `arg` is borrowed. The member `after` of a job
 * must stay NULL. While a rank waits for the job, the flight recorder of the parent communicator
 * shows it as an all-reduce of `bytes` bytes of dtype. The recorder of the progress thread shows
 * the collectives that the job runs. */
void ddp_async_prepare_job(struct ddp_async *async, int (*job)(void *arg, struct ddp_err *err),
                           void *arg, enum ddp_dtype dtype, uint64_t bytes,
                           struct ddp_async_request *req);
/* Queues a prepared request and returns at once. The request must not be queued already.
 * Collective: all ranks must post their requests in the same order. */
void ddp_async_post(struct ddp_async_request *req);
/* Releases what the prepare function allocated, and zeroes *req. If the request is queued, waits
 * for it first. A zeroed request is allowed. */
void ddp_async_release(struct ddp_async_request *req);

/* Sleeps until the request is finished, and returns the result of the request, which is 0 or the
 * error of the progress thread. Returns 0 if the request was never posted. If timeout_ns is 0, only
 * the deadlines of the progress thread's own waits apply. If timeout_ns > 0 and the request is not
 * finished after this time, the function aborts the world and returns DDP_ELOST. Before it
 * returns DDP_ELOST, it waits until the progress thread has stopped using the arrays. It does not
 * wait if the ranks share no memory, because the thread may be blocked in a library. */
int ddp_async_wait(struct ddp_async_request *req, int64_t timeout_ns,
                   struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
