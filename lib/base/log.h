/* News for people, on stderr: the one place in lib/ that writes there, and only what it is told.
 * One whole line a call (a single write), so that lines of several ranks do not mix.
 * Colour only on a terminal and without NO_COLOR; the caller decides who speaks. */
#ifndef DDP_BASE_LOG_H
#define DDP_BASE_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_log_level { DDP_LOG_ERROR, DDP_LOG_WARN, DDP_LOG_NOTE, DDP_LOG_DEBUG };

/* stream: where lines go (stderr); level: highest level written; color: escape codes allowed. */
struct ddp_log {
    FILE *stream;
    enum ddp_log_level level;
    bool color;
};

/* "ddpbench: warning: text\n". A NULL log is silent. */
void ddp_logf(const struct ddp_log *log, enum ddp_log_level level, const char *fmt, ...)
    DDP_PRINTF(3, 4);
/* Will a line be taken within timeout_ms? Not by a full pipe whose reader sleeps. True of streams
 * that are no descriptors. */
bool ddp_log_ready(FILE *stream, int timeout_ms);
/* "ddpbench: error: [rank N: ]text\n  hint\n" */
void ddp_log_err(const struct ddp_log *log, const struct ddp_err *err);
/* The same with "WHO: " in the place of the rank; who: NULL for nobody. */
void ddp_log_err_of(const struct ddp_log *log, const char *who, const struct ddp_err *err);

#ifdef __cplusplus
}
#endif
#endif
