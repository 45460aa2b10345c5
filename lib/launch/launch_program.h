/* Starts another program that ends when this process ends: the child processes of a gate, and the
 * helper of `ddpbench kernels`.
 *
 * The program gets its own process group and the default action of every signal. The kernel sends
 * SIGTERM to the program when the thread that started it ends, even if this process was killed. On
 * SIGTERM mpiexec and ddpbench's launcher end their ranks.
 *
 * SIGTERM does not reach a set-uid program. In a shell script it reaches only the shell and a
 * command that the script starts by `exec`. */
#ifndef DDP_LAUNCH_LAUNCH_PROGRAM_H
#define DDP_LAUNCH_LAUNCH_PROGRAM_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program to start. argv and env are NULL-terminated, and argv[0] is searched in this process's
 * PATH. stdin is /dev/null. */
struct ddp_launch_program {
    char *const *argv, *const *env;
    const sigset_t *mask; /* signals that the program blocks */
    bool keep_stdout;     /* inherit stdout */
    int output;           /* without keep_stdout: descriptor that becomes stdout; 0: /dev/null */
    int errors;           /* descriptor that becomes stderr; -1: inherit */
};
/* Starts the program and does not wait for it. The caller passes *pid to waitpid. Returns
 * DDP_EUNAVAIL if the program cannot be executed or no process can be made. */
int ddp_launch_program(const struct ddp_launch_program *program, pid_t *pid,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
