/* Last words of a process that somebody else's launcher ends: SIGTERM, SIGINT and SIGHUP wake a
 * sleeping thread, which tells the owner of the results and then lets the signal act.
 *
 * mpiexec sends one of them to every rank before it kills what is left, and does not wait for long.
 * Start it before the library of the launcher makes threads of its own: signals are blocked here
 * and in every thread started later, so none of them can take one. Ignored signals stay ignored.
 * What it does not do: wake up while nothing happens, or survive the signal. */
#ifndef DDP_COMM_SIGNAL_THREAD_H
#define DDP_COMM_SIGNAL_THREAD_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_signal_thread;
/* on_signal(arg, n): on the thread, once, for the first signal; what it shares with others it must
 * lock. When it returns the process ends by that signal. DDP_ENOMEM. */
int ddp_signal_thread_start(void (*on_signal)(void *arg, int signal), void *arg,
                            struct ddp_signal_thread **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Ends the thread and restores the calling thread's mask: a signal that came meanwhile acts now.
 * NULL is fine. */
void ddp_signal_thread_stop(struct ddp_signal_thread *thread);

#ifdef __cplusplus
}
#endif
#endif
