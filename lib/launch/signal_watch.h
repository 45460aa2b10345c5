/* A signal watch: the signals that would end this process are blocked, and the process reads them
 * from a file descriptor instead. The parent of the ranks opens the watch before it writes the
 * first result, and decides what to do when a signal comes. Under an outside launcher, rank 0 uses
 * signal_thread.h instead. The launcher also waits for
 * SIGCHLD on this descriptor.
 *
 * SIGHUP, SIGINT, SIGQUIT and SIGTERM are watched. SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM
 * and SIGPWR are watched unless the program handles them. Ignored signals stay ignored, so that
 * nohup and background jobs work. Other signals, such as SIGKILL and SIGSEGV, are not watched.
 *
 * Threads that are started while the watch is open inherit the signal mask. Forked children must
 * call ddp_signal_watch_leave. */
#ifndef DDP_LAUNCH_SIGNAL_WATCH_H
#define DDP_LAUNCH_SIGNAL_WATCH_H

#include <signal.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_signal_watch {
    int fd;    /* a signalfd */
    int first; /* the first signal other than SIGCHLD that was read; 0: none */
    sigset_t watched, old_mask;
    struct sigaction old_chld;
};

int ddp_signal_watch_open(struct ddp_signal_watch *watch, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the next pending signal other than SIGCHLD, or 0 if none is pending. */
int ddp_signal_watch_take(struct ddp_signal_watch *watch);
/* If a signal other than SIGCHLD has come, fails with the code -(128 + signal) of the first such
 * signal. */
int ddp_signal_watch_ended(struct ddp_signal_watch *watch, struct ddp_err *err) DDP_MUST_CHECK;
/* Ends the watch in a forked child. Gives the watched signals their default actions, and restores
 * the action of SIGCHLD and the signal mask. The parent's watch stays open. */
void ddp_signal_watch_leave(const struct ddp_signal_watch *watch);
/* Closes the watch of a program whose results are complete. From then on the watched signals are
 * ignored, including pending ones, so that the program ends with its own exit code. */
void ddp_signal_watch_finish(struct ddp_signal_watch *watch);
/* Closes the watch and restores the action of SIGCHLD and the mask. Pending signals take effect at
 * that time. */
void ddp_signal_watch_close(struct ddp_signal_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
