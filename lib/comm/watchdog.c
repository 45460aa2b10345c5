#include "comm/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit.h"

/* A watchdog. */
struct ddp_watchdog {
    const struct ddp_flight *flight;
    int64_t timeout_ns;
    void (*on_expire)(void *arg, const char *report_text);
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* guarded by `lock`; changes signal `wake` */
};

_Noreturn static void expire(const struct ddp_watchdog *dog)
{
    char where[384], time[32], report_text[512];
    ddp_flight_describe(dog->flight, where, sizeof where);
    ddp_format_ns((double)dog->timeout_ns, time, sizeof time);
    snprintf(report_text, sizeof report_text, "no progress for %s in %s", time, where);
    if (dog->on_expire != NULL)
        dog->on_expire(dog->arg, report_text);
    _exit(ddp_exit_code(DDP_ELOST));
}

/* Sleeps one period; returns false if the watchdog is stopped. */
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

static void *watch(void *arg)
{
    struct ddp_watchdog *dog = arg;
    uint64_t seen = 0;
    int64_t since = 0, last = ddp_now_ns();
    while (sleep_period(dog)) {
        int64_t now = ddp_now_ns();
        uint64_t seq = 0;
        bool busy = ddp_flight_busy(dog->flight, &seq) &&
                    !atomic_load_explicit(&dog->flight->untimed, memory_order_acquire);
        /* A much longer sleep means that the process was stopped; that time does not count. */
        if (since != 0 && now - last > dog->timeout_ns)
            since += now - last;
        last = now;
        if (!busy)
            since = 0;
        else if (since == 0 || seq != seen)
            since = now;
        else if (now - since > dog->timeout_ns)
            expire(dog);
        seen = seq;
    }
    return NULL;
}

int ddp_watchdog_start(const struct ddp_flight *flight, int64_t timeout_ns,
                       void (*on_expire)(void *arg, const char *report_text), void *arg,
                       struct ddp_watchdog **out, struct ddp_err *err)
{
    struct ddp_watchdog *dog = ddp_calloc(1, sizeof *dog);
    if (dog == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a watchdog");
    dog->flight = flight;
    dog->timeout_ns = timeout_ns;
    dog->on_expire = on_expire;
    dog->arg = arg;
    pthread_mutex_init(&dog->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&dog->wake, &attr);
    pthread_condattr_destroy(&attr);

    /* Block all signals in the watchdog's thread, so that other threads handle them. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&dog->thread, NULL, watch, dog);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        pthread_cond_destroy(&dog->wake);
        pthread_mutex_destroy(&dog->lock);
        free(dog);
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
    pthread_cond_destroy(&dog->wake);
    pthread_mutex_destroy(&dog->lock);
    free(dog);
}
