/* Signals that would end this process, taken from a descriptor instead: whoever owns results opens
 * the watch before the first of them is written, and decides what to do when one comes. The
 * launcher reads SIGCHLD from it, too.
 *
 * Watched: SIGHUP, SIGINT, SIGQUIT, SIGTERM, and what else ends a process that did not ask for it
 * (SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPWR) unless the program handles it. Those that
 * are ignored stay ignored, so that nohup and background jobs stay as they were. Threads started
 * while it is open inherit the mask; forked children must call leave. What it does not do: faults
 * of this process (SIGSEGV and the like), SIGKILL. */
#ifndef DDP_COMM_SIGNAL_WATCH_H
#define DDP_COMM_SIGNAL_WATCH_H

#include <signal.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* fd: a signalfd, readable when there is something to take. first: the ending signal that came
 * first, 0: none. */
struct ddp_signal_watch {
    int fd;
    int first;
    sigset_t watched, old_mask;
    struct sigaction old_chld;
};

int ddp_signal_watch_open(struct ddp_signal_watch *watch, struct ddp_err *err) DDP_MUST_CHECK;
/* The next ending signal, 0: none now. SIGCHLD is swallowed. */
int ddp_signal_watch_take(struct ddp_signal_watch *watch);
/* Fails with the code of the first ending signal (128 + n, negated) when one has come: 0, or the
 * code. */
int ddp_signal_watch_ended(struct ddp_signal_watch *watch, struct ddp_err *err) DDP_MUST_CHECK;
/* In a forked child: actions and mask as children expect them. The watch is the parent's. */
void ddp_signal_watch_leave(const struct ddp_signal_watch *watch);
/* Back to how it was; what has come since and was not taken acts now. */
void ddp_signal_watch_close(struct ddp_signal_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
