/* A question answered by a process of its own: for what a process must not do before it starts
 * others. CUDA's driver does not survive fork(), and it is the parent of the ranks that wants to
 * know which GPUs there are. */
#ifndef DDP_COMM_LAUNCH_APART_H
#define DDP_COMM_LAUNCH_APART_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs ask in a child, which ends with it; answer [bytes] is copied back when it returned 0, and
 * its error when not. Not while this process has other threads. DDP_EUNAVAIL: the child died, or
 * took longer than timeout_ns. */
int ddp_launch_apart(int (*ask)(void *answer, struct ddp_err *err), void *answer, size_t bytes,
                     int64_t timeout_ns, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
