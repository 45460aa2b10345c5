#include "launch/signal_watch.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"

/* The watched signals other than SIGCHLD. All end a process by default. The first four are requests
 * to end. The others have different purposes. */
static const int ending[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,   SIGALRM,
                             SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPWR};
enum { ASKING = 4 };

/* Returns whether to watch ending[i]. Ignored signals are not watched. Signals after the first four
 * are not watched if the program handles them itself. */
static bool is_watched(int i)
{
    struct sigaction old;
    if (sigaction(ending[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN)
        return false;
    return i < ASKING || old.sa_handler == SIG_DFL;
}

int ddp_signal_watch_open(struct ddp_signal_watch *watch, struct ddp_err *err)
{
    *watch = (struct ddp_signal_watch){.fd = -1};
    sigemptyset(&watch->watched);
    sigaddset(&watch->watched, SIGCHLD);
    for (int i = 0; i < (int)DDP_COUNT_OF(ending); i++) {
        if (is_watched(i))
            sigaddset(&watch->watched, ending[i]);
    }
    /* If SIGCHLD were ignored, the kernel would reap ranks itself, and their status would be
     * lost. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &standard, &watch->old_chld);
    pthread_sigmask(SIG_BLOCK, &watch->watched, &watch->old_mask);
    watch->fd = signalfd(-1, &watch->watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (watch->fd >= 0)
        return 0;
    int error = errno;
    ddp_signal_watch_close(watch);
    return ddp_fail_errno(err, DDP_EINTERNAL, error, "cannot watch signals");
}

int ddp_signal_watch_take(struct ddp_signal_watch *watch)
{
    struct signalfd_siginfo info;
    while (read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCHLD)
            continue;
        if (watch->first == 0)
            watch->first = signal;
        return signal;
    }
    return 0;
}

int ddp_signal_watch_ended(struct ddp_signal_watch *watch, struct ddp_err *err)
{
    while (ddp_signal_watch_take(watch) != 0)
        continue;
    if (watch->first == 0)
        return 0;
    return ddp_fail(err, -(128 + watch->first), "ended by signal %d (%s)", watch->first,
                    sigdescr_np(watch->first));
}

void ddp_signal_watch_leave(const struct ddp_signal_watch *watch)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    close(watch->fd);
    for (size_t i = 0; i < DDP_COUNT_OF(ending); i++) {
        if (sigismember(&watch->watched, ending[i]) == 1)
            sigaction(ending[i], &standard, NULL);
    }
    sigaction(SIGCHLD, &watch->old_chld, NULL);
    pthread_sigmask(SIG_SETMASK, &watch->old_mask, NULL);
}

void ddp_signal_watch_finish(struct ddp_signal_watch *watch)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < DDP_COUNT_OF(ending); i++) {
        if (sigismember(&watch->watched, ending[i]) == 1)
            sigaction(ending[i], &ignore, NULL);
    }
    ddp_signal_watch_close(watch);
}

void ddp_signal_watch_close(struct ddp_signal_watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
    sigaction(SIGCHLD, &watch->old_chld, NULL);
    pthread_sigmask(SIG_SETMASK, &watch->old_mask, NULL);
}
