/* Writing to what may take nothing: a pipe whose reader sleeps, a terminal stopped by Ctrl-S, a
 * named pipe without a reader. Such a wait holds up the whole run, so it has a deadline, and
 * whoever must be able to end the run is asked all along whether to go on. Private to the sinks and
 * to whoever sets them up. What it does not do: wait for a disk. */
#ifndef DDP_REPORT_PATIENCE_H
#define DDP_REPORT_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* timeout_ns: without one byte taken; time in which this process was stopped does not count.
 * give_up: asked ten times a second while waiting; true ends the wait; may be NULL. on_wait: told
 * once what is waited for, should a reader still have to come; may be NULL. arg: theirs. hurry:
 * this process is about to be killed: files get their content and name, but no fsync. */
struct ddp_patience {
    int64_t timeout_ns;
    bool (*give_up)(void *arg);
    void (*on_wait)(void *arg, const char *line);
    void *arg;
    bool hurry;
};

/* For a start: a minute, asking and telling nobody. */
#define DDP_PATIENCE_INIT ((struct ddp_patience){.timeout_ns = 60000000000})

/* Writes text[n] to fd. 0, or an errno value: of write(2), ETIMEDOUT when nothing was taken for too
 * long, ECANCELED when give_up said so. After a failure any part may have been written. */
int ddp_write_patiently(int fd, const char *text, size_t n,
                        const struct ddp_patience *patience) DDP_MUST_CHECK;
/* Opens a named pipe for writing once it has a reader: *fd, non-blocking. Errors as above; `name`
 * is what on_wait is told. */
int ddp_open_patiently(const char *path, const char *name, const struct ddp_patience *patience,
                       int *fd) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
