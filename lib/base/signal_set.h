/* The set of the signals to watch. It leaves out ignored signals. Linux keeps a blocked signal
 * pending even if it is ignored (sig_ignored in kernel/signal.c). A signalfd would therefore
 * receive signals that nohup or a shell made this process ignore. */
#ifndef DDP_BASE_SIGNAL_SET_H
#define DDP_BASE_SIGNAL_SET_H

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *set with SIGINT, SIGTERM and SIGHUP, by which users and launchers end a program. Leaves
 * out the signals that this process ignores. */
void ddp_signal_set_termination(sigset_t *set);

#ifdef __cplusplus
}
#endif
#endif
