/* Sets of signals to watch. Ignored ones stay out of them: a blocked signal is kept though it is
 * ignored (sig_ignored in Linux' kernel/signal.c), and a signalfd would then read what nohup or a
 * shell's background job had asked to be dropped. */
#ifndef DDP_BASE_SIGNAL_SET_H
#define DDP_BASE_SIGNAL_SET_H

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SIGINT, SIGTERM and SIGHUP, by which people and launchers end a program, less the ignored. */
void ddp_signal_set_asking(sigset_t *set);

#ifdef __cplusplus
}
#endif
#endif
