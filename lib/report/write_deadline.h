/* These functions write with a deadline to outputs that may block: a pipe whose reader sleeps, a
 * terminal stopped by Ctrl-S, a named pipe without a reader. A blocked write would stop the whole
 * run. Therefore a write fails at the deadline, or earlier if the callback give_up returns true.
 * Writes to regular files have no deadline. The sinks and the code that sets them up use this
 * header. */
#ifndef DDP_REPORT_WRITE_DEADLINE_H
#define DDP_REPORT_WRITE_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The write deadline and its callbacks. */
struct ddp_write_deadline {
    /* A write fails if the output accepts no byte for this long. Time during which this process was
     * stopped does not count. */
    int64_t timeout_ns;
    /* Optional. Called at intervals of about 0.1 s or less during a wait. If it returns true, the
     * wait ends. */
    bool (*give_up)(void *arg);
    /* Optional. Called once with a message if a named pipe has no reader yet. */
    void (*on_wait)(void *arg, const char *line);
    void *arg; /* Argument of the callbacks. */
    /* True: files are written and renamed, but not fsynced, for example because this process is
     * about to be killed. */
    bool no_fsync;
};

/* Default: a deadline of 60 s and no callbacks. */
#define DDP_WRITE_DEADLINE_INIT ((struct ddp_write_deadline){.timeout_ns = 60000000000})

/* Writes text[n] to fd. Returns 0 or an errno value: that of poll(2) or write(2), ETIMEDOUT at the
 * deadline, or ECANCELED if give_up returned true. After a failure, some of the text may have been
 * written. */
int ddp_write_before_deadline(int fd, const char *text, size_t n,
                              const struct ddp_write_deadline *deadline_policy) DDP_MUST_CHECK;
/* Opens a named pipe for writing as soon as the pipe has a reader. The descriptor *fd is
 * non-blocking. `name` is the pipe's name in the message to on_wait. Returns 0 or an errno value:
 * that of open(2), ETIMEDOUT or ECANCELED. */
int ddp_open_before_deadline(const char *path, const char *name,
                             const struct ddp_write_deadline *deadline_policy,
                             int *fd) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
