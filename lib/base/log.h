/* Writes messages to the user on stderr. Apart from reporters whose output is /dev/stderr, no other
 * part of lib/ writes to stderr. Each call writes one message with a single write, so that messages
 * of several ranks do not mix. The caller decides which ranks write. It sets `color` only if stderr
 * is a terminal that shows colours (terminal.h). */
#ifndef DDP_BASE_LOG_H
#define DDP_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_log_level { DDP_LOG_ERROR, DDP_LOG_WARN, DDP_LOG_NOTE, DDP_LOG_DEBUG };

/* Destination and format of the messages. */
struct ddp_log {
    FILE *stream;             /* usually stderr */
    enum ddp_log_level level; /* less important messages are not written */
    bool color;               /* escape codes are allowed */
    bool progress_shown;      /* the last line is progress, without a newline */
    /* If this interval is 0, each line of progress replaces the previous one on the terminal.
     * Otherwise progress is written in whole lines. The first line comes one interval after the
     * first call of ddp_log_progress, and later lines are at least one interval apart. */
    int64_t progress_every_ns;
    /* The time of the last whole line of progress, or of the first call. 0: no call yet. */
    int64_t progress_since_ns;
};

/* Writes a message such as "ddpbench: warning: text\n". Writes nothing if `log` is NULL, if
 * log->level is lower than `level`, or if the stream accepts no data for a second. */
void ddp_logf(const struct ddp_log *log, enum ddp_log_level level, const char *fmt, ...)
    DDP_PRINTF(3, 4);
/* Returns whether the stream can accept a line within timeout_ms. Returns false for a full pipe
 * whose reader does not read. Returns true for a stream without a file descriptor. */
bool ddp_log_ready(FILE *stream, int timeout_ms);
/* The interval between lines of progress in a pipe or a file, such as the log of a CI. */
#define DDP_LOG_PROGRESS_NS 30000000000

/* Shows a line of progress (see progress_every_ns). Does nothing if the stream cannot accept the
 * line. ddp_log_clear_progress removes a line that the next one would replace. */
void ddp_log_progress(struct ddp_log *log, const char *fmt, ...) DDP_PRINTF(2, 3);
void ddp_log_clear_progress(struct ddp_log *log);
/* Appends the time since the command began and the remaining time to a line of progress, for
 * example ", 40 s, about 3 min left". `quality` is "about" or "at most". `left_s` is NaN if the
 * remaining time is not known. */
void ddp_log_progress_times(char *text, size_t text_bytes, double elapsed_s, const char *quality,
                            double left_s);
/* Writes "ddpbench: error: [rank N: ]text\n  hint\n". Leaves out "error: " if err->interrupted is
 * set. Writes nothing if the code is DDP_ECLOSED. */
void ddp_log_err(const struct ddp_log *log, const struct ddp_err *err);
/* Like ddp_log_err, but writes `who` instead of "rank N". If `who` is NULL, neither is written. */
void ddp_log_err_of(const struct ddp_log *log, const char *who, const struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
