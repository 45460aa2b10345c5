#include "launch/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/unit.h"
#include "launch/segment.h"
#include "launch/signal_thread.h"

/* The watchdog waits at least this much longer than the timeout if the rank is idle or computes. */
#define IDLE_GRACE_NS 1000000000

struct ddp_watchdog {
    const struct ddp_flight *flight;
    const struct ddp_segment *host; /* NULL: no other rank's recorder can be read */
    int64_t timeout_ns;
    void (*on_expire)(void *arg, const char *report_text);
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* guarded by `lock`; `wake` is signalled after a change */
};

/* Returns the world rank of rank r of this host, or -1 if this rank is idle. A rank is idle while
 * it waits in ddp_comm_agree_idle. During this time the member `working` of its flight recorder is
 * the number of working ranks for which it waits. Otherwise this member is 0. */
static int working_rank(const struct ddp_watchdog *dog, int r)
{
    const struct ddp_segment_rank *rank = ddp_segment_rank_of(dog->host, r);
    const bool idle = atomic_load_explicit(&rank->flight.working, memory_order_acquire) > 0;
    return idle ? -1 : atomic_load_explicit(&rank->world_rank, memory_order_relaxed);
}

/* Returns whether any working rank is on this host. *steps becomes a number that changes whenever a
 * working rank of this host makes progress. */
static bool working_progress(const struct ddp_watchdog *dog, uint64_t *steps)
{
    bool any = false;
    *steps = 0;
    for (int r = 0; dog->host != NULL && r < dog->host->ranks; r++) {
        if (working_rank(dog, r) < 0)
            continue;
        const struct ddp_segment_rank *rank = ddp_segment_rank_of(dog->host, r);
        *steps += ddp_flight_progress(&rank->flight) + ddp_flight_progress(&rank->progress);
        any = true;
    }
    return any;
}

/* Writes the operation of each working rank of this host. Text that does not fit is cut. */
static void describe_working(const struct ddp_watchdog *dog, char *out, size_t out_bytes)
{
    char where[384];
    out[0] = '\0';
    for (int r = 0; r < dog->host->ranks; r++) {
        const int rank = working_rank(dog, r);
        if (rank < 0)
            continue;
        ddp_flight_describe(&ddp_segment_rank_of(dog->host, r)->flight, where, sizeof where);
        ddp_text_append(out, out_bytes, "%srank %d is in %.150s", out[0] != '\0' ? "; " : "", rank,
                        where);
    }
}

/* Reports that there was no progress for at least the timeout, and ends the process. `working` is
 * the number of working ranks if this rank is idle, else 0. */
_Noreturn static void expire(const struct ddp_watchdog *dog, int working)
{
    char where[384], time[32], report_text[512];
    if (working > 0)
        describe_working(dog, where, sizeof where);
    else
        ddp_flight_describe(dog->flight, where, sizeof where);
    ddp_format_ns((double)dog->timeout_ns, time, sizeof time);
    snprintf(report_text, sizeof report_text,
             working > 0 ? "no progress of the working ranks for %s: %s"
                         : "no progress for %s in %s",
             time, where);
    if (dog->on_expire != NULL)
        dog->on_expire(dog->arg, report_text);
    _exit(ddp_exit_code(DDP_ELOST));
}

/* Sleeps for one period. Returns false if the watchdog is stopped. */
static bool sleep_period(struct ddp_watchdog *dog)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t end = (int64_t)until.tv_sec * 1000000000 + until.tv_nsec + dog->timeout_ns / 8;
    until.tv_sec = (time_t)(end / 1000000000);
    until.tv_nsec = (long)(end % 1000000000);
    pthread_mutex_lock(&dog->lock);
    while (!dog->stopping) {
        if (pthread_cond_timedwait(&dog->wake, &dog->lock, &until) == ETIMEDOUT)
            break;
    }
    bool go_on = !dog->stopping;
    pthread_mutex_unlock(&dog->lock);
    return go_on;
}

/* The activity of this rank to which a deadline applies. */
enum work { WORK_NONE, WORK_OPERATION, WORK_COMPUTATION, WORK_IDLE };

/* The state of this rank. If `work`, `working` and `seq` do not change for longer than `limit_ns`,
 * the watchdog acts. */
struct state {
    enum work work;
    int working; /* number of working ranks if this rank is idle, else 0 */
    uint64_t seq;
    int64_t limit_ns;
};

static struct state read_state(const struct ddp_watchdog *dog)
{
    const struct ddp_flight *f = dog->flight;
    struct state s = {.limit_ns = dog->timeout_ns + dog->timeout_ns / 4};
    const bool busy = ddp_flight_busy(f, &s.seq);
    const int working = atomic_load_explicit(&f->working, memory_order_acquire);
    if (busy && working == 0) {
        s.work = WORK_OPERATION;
        return s;
    }
    s.limit_ns = dog->timeout_ns + DDP_MAX(IDLE_GRACE_NS, dog->timeout_ns / 2);
    if (busy) {
        s.work = working_progress(dog, &s.seq) ? WORK_IDLE : WORK_NONE;
        s.working = working;
    } else if (atomic_load_explicit(&f->computing, memory_order_acquire) != 0) {
        s.work = WORK_COMPUTATION;
        s.seq = ddp_flight_progress(f);
    }
    return s;
}

static void *watch(void *arg)
{
    struct ddp_watchdog *dog = arg;
    struct state seen = {.work = WORK_NONE};
    int64_t since = 0, last = ddp_now_ns();
    while (sleep_period(dog)) {
        const int64_t now = ddp_now_ns();
        const struct state s = read_state(dog);
        /* If the sleep took much longer than a period, the process was probably stopped. The time
         * of this sleep does not count. */
        if (since != 0 && now - last > dog->timeout_ns)
            since += now - last;
        last = now;
        if (s.work == WORK_NONE)
            since = 0;
        else if (since == 0 || s.work != seen.work || s.seq != seen.seq ||
                 s.working != seen.working)
            since = now;
        else if (now - since > s.limit_ns)
            expire(dog, s.working);
        seen = s;
    }
    return NULL;
}

static void release(struct ddp_watchdog *dog)
{
    pthread_cond_destroy(&dog->wake);
    pthread_mutex_destroy(&dog->lock);
    free(dog);
}

int ddp_watchdog_start(const struct ddp_flight *flight, const struct ddp_segment *host,
                       int64_t timeout_ns, void (*on_expire)(void *arg, const char *report_text),
                       void *arg, struct ddp_watchdog **out, struct ddp_err *err)
{
    struct ddp_watchdog *dog;
    DDP_TRY(DDP_NEW(&dog, 1, err));
    dog->flight = flight;
    dog->host = host;
    dog->timeout_ns = timeout_ns;
    dog->on_expire = on_expire;
    dog->arg = arg;
    pthread_mutex_init(&dog->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&dog->wake, &attr);
    pthread_condattr_destroy(&attr);

    int rc = ddp_thread_start(&dog->thread, watch, dog);
    if (rc != 0) {
        release(dog);
        return ddp_fail_errno(err, DDP_ENOMEM, rc, "cannot start the watchdog");
    }
    *out = dog;
    return 0;
}

void ddp_watchdog_stop(struct ddp_watchdog *dog)
{
    if (dog == NULL)
        return;
    pthread_mutex_lock(&dog->lock);
    dog->stopping = true;
    pthread_cond_signal(&dog->wake);
    pthread_mutex_unlock(&dog->lock);
    pthread_join(dog->thread, NULL);
    release(dog);
}
