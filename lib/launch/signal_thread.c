#include "launch/signal_thread.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"

struct ddp_signal_thread {
    void (*on_signal)(void *arg, int signal);
    void *arg;
    pthread_t thread;
    int signals, stop; /* a signalfd, and an eventfd that ends the thread */
    sigset_t old_mask;
};

void ddp_signal_set_termination(sigset_t *set)
{
    static const int termination[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now;
    sigemptyset(set);
    for (size_t i = 0; i < DDP_COUNT_OF(termination); i++) {
        if (sigaction(termination[i], NULL, &now) != 0 || now.sa_handler != SIG_IGN)
            sigaddset(set, termination[i]);
    }
}

/* Ends the process by the signal, so that the launcher sees this signal as the cause of death. */
static void raise_default(int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void *watch(void *arg)
{
    struct ddp_signal_thread *t = arg;
    struct pollfd fds[] = {{.fd = t->signals, .events = POLLIN}, {.fd = t->stop, .events = POLLIN}};
    struct signalfd_siginfo info;
    for (;;) {
        if (poll(fds, DDP_COUNT_OF(fds), -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        if (fds[0].revents && read(t->signals, &info, sizeof info) == sizeof info) {
            t->on_signal(t->arg, (int)info.ssi_signo);
            raise_default((int)info.ssi_signo);
        }
    }
}

static void release(struct ddp_signal_thread *t)
{
    if (t->signals >= 0)
        close(t->signals);
    if (t->stop >= 0)
        close(t->stop);
    pthread_sigmask(SIG_SETMASK, &t->old_mask, NULL);
    free(t);
}

int ddp_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

int ddp_signal_thread_start(void (*on_signal)(void *arg, int signal), void *arg,
                            struct ddp_signal_thread **out, struct ddp_err *err)
{
    sigset_t set;
    struct ddp_signal_thread *t;
    DDP_TRY(DDP_NEW(&t, 1, err));
    ddp_signal_set_termination(&set);
    t->on_signal = on_signal;
    t->arg = arg;
    pthread_sigmask(SIG_BLOCK, &set, &t->old_mask);
    t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    t->stop = eventfd(0, EFD_CLOEXEC);
    /* The thread reads signals from the signalfd, so it must keep them blocked. ddp_thread_start
     * blocks all signals. */
    int rc = t->signals < 0 || t->stop < 0 ? errno : ddp_thread_start(&t->thread, watch, t);
    if (rc != 0) {
        release(t);
        return ddp_fail_errno(err, DDP_ENOMEM, rc, "cannot watch signals");
    }
    *out = t;
    return 0;
}

void ddp_signal_thread_stop(struct ddp_signal_thread *t)
{
    const uint64_t one = 1;
    if (!t)
        return;
    while (write(t->stop, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(t->thread, NULL);
    release(t);
}
