/* Reads the signals that would end this process from a descriptor. The owner of results opens the
 * watch before it writes the first result, and decides what to do when a signal comes. The launcher
 * also reads SIGCHLD from it.
 *
 * Watched are SIGHUP, SIGINT, SIGQUIT, SIGTERM, and unless the program handles them SIGALRM,
 * SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM and SIGPWR. Ignored signals stay ignored, so that nohup and
 * background jobs work. Threads started while the watch is open inherit the mask; forked children
 * must call ddp_signal_watch_leave. SIGKILL and faults of this process (SIGSEGV and the like) are
 * not watched. */
#ifndef DDP_COMM_SIGNAL_WATCH_H
#define DDP_COMM_SIGNAL_WATCH_H

#include <signal.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open watch. */
struct ddp_signal_watch {
    int fd;    /* a signalfd */
    int first; /* the first ending signal that came, 0: none */
    sigset_t watched, old_mask;
    struct sigaction old_chld;
};

int ddp_signal_watch_open(struct ddp_signal_watch *watch, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the next ending signal, 0 if there is none now. Skips SIGCHLD. */
int ddp_signal_watch_take(struct ddp_signal_watch *watch);
/* Fails with the code of the first ending signal, -(128 + signal), if one has come. */
int ddp_signal_watch_ended(struct ddp_signal_watch *watch, struct ddp_err *err) DDP_MUST_CHECK;
/* Restores actions and mask in a forked child. The watch stays the parent's. */
void ddp_signal_watch_leave(const struct ddp_signal_watch *watch);
/* Restores actions and mask; pending signals then act. */
void ddp_signal_watch_close(struct ddp_signal_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
