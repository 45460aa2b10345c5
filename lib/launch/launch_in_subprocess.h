/* Runs a function in a child process, for calls that a process must not make before it forks. For
 * example, the parent of the ranks must find out which GPUs exist, but an initialised CUDA driver
 * does not work after fork(). */
#ifndef DDP_LAUNCH_LAUNCH_IN_SUBPROCESS_H
#define DDP_LAUNCH_LAUNCH_IN_SUBPROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs `ask` in a child process and returns the code of `ask`. On success, copies `answer` [bytes]
 * from the child. On failure, copies the error. Must not be called while this process has other
 * threads. Returns DDP_ENOMEM if no child can be started, DDP_EUNAVAIL if the child died or took
 * longer than timeout_ns, and DDP_EINTERNAL if `ask` called exit(0) or waitpid failed. */
int ddp_launch_in_subprocess(int (*ask)(void *answer, struct ddp_err *err), void *answer,
                             size_t bytes, int64_t timeout_ns, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
