/* Starts another program that does not outlive this process: child processes of a gate, and the
 * helper of `kernels`.
 *
 * The program gets its own process group, the default action of every signal, and SIGTERM when the
 * thread that started it ends, even by SIGKILL of this process; mpiexec and ddpbench's launcher
 * then end their ranks. This does not reach processes that the program started and does not end
 * itself (a shell script that does not `exec` its last command), nor a set-uid program, for which
 * the kernel clears that signal. It does not wait for the program or time it. */
#ifndef DDP_COMM_LAUNCH_PROGRAM_H
#define DDP_COMM_LAUNCH_PROGRAM_H

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
    bool keep_stdout;     /* false: stdout is /dev/null */
    int errors;           /* descriptor that becomes stderr; -1: inherit */
};
/* Starts the program. *pid is for waitpid. Returns DDP_EUNAVAIL if the program does not exist or no
 * process can be made. */
int ddp_launch_program(const struct ddp_launch_program *program, pid_t *pid,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
