/* Lets a process write last messages when an outside launcher ends it. SIGTERM, SIGINT and SIGHUP
 * wake a sleeping thread. The thread calls on_signal, and the signal then ends the process.
 *
 * mpiexec sends such a signal to every rank, waits for a short time and then kills the ranks. Start
 * this thread before the MPI library starts threads, because the signals are blocked only in the
 * calling thread and in threads that it starts later. Ignored signals stay ignored. */
#ifndef DDP_LAUNCH_SIGNAL_THREAD_H
#define DDP_LAUNCH_SIGNAL_THREAD_H

#include <pthread.h>
#include <signal.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *set with SIGINT, SIGTERM and SIGHUP, by which users and launchers end a program. Leaves
 * out the signals that this process ignores. Linux keeps a blocked signal pending even if it is
 * ignored (sig_ignored in kernel/signal.c). A signalfd would therefore receive signals that nohup
 * or a shell made this process ignore. */
void ddp_signal_set_termination(sigset_t *set);

/* Starts a thread in which all signals are blocked, so that other threads handle signals. Returns 0
 * or an errno value. */
int ddp_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

struct ddp_signal_thread;
/* Starts the thread. It calls on_signal(arg, signal) once, for the first signal, and the process
 * then ends by that signal. The callback must lock data that it shares with other threads. Returns
 * DDP_ENOMEM if the thread or its descriptors cannot be created. */
int ddp_signal_thread_start(void (*on_signal)(void *arg, int signal), void *arg,
                            struct ddp_signal_thread **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Ends the thread and restores the signal mask of the calling thread. Pending signals take effect
 * at that time. NULL is allowed. */
void ddp_signal_thread_stop(struct ddp_signal_thread *thread);

#ifdef __cplusplus
}
#endif
#endif
