/* Sets of signals to watch. Ignored signals stay out of the set: Linux queues a blocked signal even
 * if it is ignored (sig_ignored in kernel/signal.c), so a signalfd would receive signals that nohup
 * or a shell's background job wanted to be dropped. */
#ifndef DDP_BASE_SIGNAL_SET_H
#define DDP_BASE_SIGNAL_SET_H

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *set with the signals by which people and launchers end a program, SIGINT, SIGTERM and
 * SIGHUP, except those that this process ignores. */
void ddp_signal_set_termination(sigset_t *set);

#ifdef __cplusplus
}
#endif
#endif
