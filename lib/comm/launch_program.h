/* Starts another program that does not outlive us: gate's launches, the helper of `kernels`.
 *
 * It gets a process group of its own, every signal's default, and SIGTERM when the thread that
 * started it ends, however that is, SIGKILL of our process included: mpiexec and ddpbench's own
 * launcher then take their ranks along. What it does not do: reach what that program has started
 * and does not end itself (a shell script that does not `exec` its last command), nor a set-uid
 * program, from which the kernel takes that signal away; wait, or time anything. */
#ifndef DDP_COMM_LAUNCH_PROGRAM_H
#define DDP_COMM_LAUNCH_PROGRAM_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* argv, env: NULL-terminated; argv[0] is searched in our PATH. mask: of signals it blocks. stdin is
 * /dev/null, stdout too unless kept; errors: its stderr, -1: ours. */
struct ddp_launch_program {
    char *const *argv, *const *env;
    const sigset_t *mask;
    bool keep_stdout;
    int errors;
};
/* DDP_EUNAVAIL: there is no such program, or no process for it. *pid is for waitpid. */
int ddp_launch_program(const struct ddp_launch_program *program, pid_t *pid,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
