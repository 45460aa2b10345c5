/* Last messages of a process that an outside launcher ends: SIGTERM, SIGINT and SIGHUP wake a
 * sleeping thread, which calls on_signal and then lets the signal act.
 *
 * mpiexec sends such a signal to every rank, waits for a short time and then kills the ranks. Start
 * the thread before the launcher's library makes threads of its own: signals are blocked here and
 * in every thread that is started later. Ignored signals stay ignored. The thread sleeps while no
 * signal comes. It does not prevent the signal from ending the process. */
#ifndef DDP_COMM_SIGNAL_THREAD_H
#define DDP_COMM_SIGNAL_THREAD_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_signal_thread;
/* Starts the thread. It calls on_signal(arg, signal) once, for the first signal, and the process
 * then ends by that signal. The callback must lock data that it shares with other threads. Returns
 * DDP_ENOMEM or 0. */
int ddp_signal_thread_start(void (*on_signal)(void *arg, int signal), void *arg,
                            struct ddp_signal_thread **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Ends the thread and restores the signal mask of the calling thread; pending signals then act.
 * NULL is allowed. */
void ddp_signal_thread_stop(struct ddp_signal_thread *thread);

#ifdef __cplusplus
}
#endif
#endif
