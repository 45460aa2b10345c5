/* Starts another program that ends when this process ends: the child processes of a gate, the
 * helper of `ddpbench kernels`, and the ssh and the ranks of --hosts.
 *
 * The program gets its own process group and the default action of every signal. The kernel sends
 * SIGTERM to the program when the thread that started it ends, even if this process was killed. On
 * SIGTERM mpiexec and ddpbench's launcher end their ranks.
 *
 * The kernel sends no SIGTERM to a set-uid program. If the program is a shell script, the shell
 * gets the SIGTERM, but the commands that it runs do not. A command that the script starts by
 * `exec` replaces the shell and gets the SIGTERM. */
#ifndef DDP_LAUNCH_LAUNCH_PROGRAM_H
#define DDP_LAUNCH_LAUNCH_PROGRAM_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program to start. `argv` and `env` are NULL-terminated. If argv[0] contains no slash, it is
 * searched in this process's PATH. */
struct ddp_launch_program {
    char *const *argv, *const *env;
    const sigset_t *mask; /* signals that the program blocks */
    int input;            /* descriptor that becomes stdin; 0: /dev/null */
    /* If `output` is greater than 0, this descriptor becomes the program's stdout. If not, the
     * program inherits stdout if `keep_stdout` is true, and otherwise gets /dev/null. */
    bool keep_stdout;
    int output;
    int errors; /* descriptor that becomes stderr; -1: inherit stderr */
};
/* Starts the program and does not wait for it. The caller passes *pid to waitpid. Returns
 * DDP_EUNAVAIL if the program cannot be executed or no process can be made. */
int ddp_launch_program(const struct ddp_launch_program *program, pid_t *pid,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
