#include "base/log.h"

#include <math.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/terminal.h"

#define WRITE_DEADLINE_MS 1000

static const struct {
    const char *prefix, *color;
} levels[] = {
    [DDP_LOG_ERROR] = {"error: ", "\033[1;31m"},
    [DDP_LOG_WARN] = {"warning: ", "\033[1;33m"},
    [DDP_LOG_NOTE] = {"", ""},
    [DDP_LOG_DEBUG] = {"debug: ", "\033[2m"},
};

static void start_line(const struct ddp_log *log, enum ddp_log_level level, struct ddp_strbuf *line)
{
    bool color = log->color && levels[level].color[0];
    ddp_strbuf_addf(line, "ddpbench: %s%s%s", color ? levels[level].color : "",
                    levels[level].prefix, color ? "\033[0m" : "");
}

/* Returns the width of the terminal, or 0 if the stream does not go to a terminal. */
static int columns_of(const struct ddp_log *log)
{
    struct ddp_terminal terminal;
    ddp_terminal_read(fileno(log->stream), &terminal);
    return terminal.columns;
}

/* Adds a text after a prefix of `used` characters. On a terminal the text is broken into lines. */
static void add_text(const struct ddp_log *log, const char *text, int used, struct ddp_strbuf *line)
{
    ddp_strbuf_wrap(line, text, used, columns_of(log), 2);
    ddp_strbuf_add(line, "\n");
}

bool ddp_log_ready(FILE *stream, int timeout_ms)
{
    struct pollfd set = {.fd = fileno(stream), .events = POLLOUT};
    return set.fd < 0 || poll(&set, 1, timeout_ms) != 0;
}

/* Writes the whole message with one fwrite. stderr is unbuffered, so the fwrite makes one write().
 * If the reader of a pipe does not accept the message in time, the message is dropped, so that the
 * run is not delayed. */
static void write_line(const struct ddp_log *log, const char *text, size_t n)
{
    if (!ddp_log_ready(log->stream, WRITE_DEADLINE_MS))
        return;
    fwrite(text, 1, n, log->stream);
    fflush(log->stream);
}

void ddp_logf(const struct ddp_log *log, enum ddp_log_level level, const char *fmt, ...)
{
    if (!log || !log->stream || level > log->level)
        return;
    char text[2048], clean[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ddp_printable(text, clean, sizeof clean);
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    start_line(log, level, &line);
    add_text(log, clean, (int)strlen("ddpbench: ") + (int)strlen(levels[level].prefix), &line);
    if (!line.failed)
        write_line(log, line.text, line.length);
    ddp_strbuf_release(&line);
}

/* Writes progress as a whole line if log->progress_every_ns has passed since the last line, or
 * since the first call if there is no line yet. */
static void progress_line(struct ddp_log *log, const char *fmt, va_list args)
{
    const int64_t now = ddp_now_ns();
    char text[512];
    if (log->progress_since_ns == 0)
        log->progress_since_ns = now;
    if (now - log->progress_since_ns < log->progress_every_ns)
        return;
    log->progress_since_ns = now;
    vsnprintf(text, sizeof text, fmt, args);
    ddp_logf(log, DDP_LOG_NOTE, "%s", text);
}

void ddp_log_progress(struct ddp_log *log, const char *fmt, ...)
{
    va_list args;
    if (log->progress_every_ns > 0) {
        va_start(args, fmt);
        progress_line(log, fmt, args);
        va_end(args);
        return;
    }
    if (!ddp_log_ready(log->stream, 0))
        return;
    char text[512];
    const int columns = columns_of(log);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    /* A longer line would wrap, and only its last row would be replaced. */
    fprintf(log->stream, "\r\033[K%.*s", columns > 0 ? columns - 1 : (int)sizeof text, text);
    fflush(log->stream);
    log->progress_shown = true;
}

/* Appends a time in whole seconds or minutes, or in tenths of an hour. ddp_format_ns would write
 * more digits than an estimate deserves. */
static void add_time(char *text, size_t text_bytes, double s)
{
    if (s < 89.5)
        ddp_text_append(text, text_bytes, "%.0f s", s);
    else if (s < 89.5 * 60)
        ddp_text_append(text, text_bytes, "%.0f min", s / 60);
    else
        ddp_text_append(text, text_bytes, "%.1f h", s / 3600);
}

void ddp_log_progress_times(char *text, size_t text_bytes, double elapsed_s, const char *quality,
                            double left_s)
{
    ddp_text_append(text, text_bytes, ", ");
    add_time(text, text_bytes, elapsed_s);
    if (!isfinite(left_s))
        return;
    ddp_text_append(text, text_bytes, ", %s ", quality);
    add_time(text, text_bytes, fmax(left_s, 0));
    ddp_text_append(text, text_bytes, " left");
}

void ddp_log_clear_progress(struct ddp_log *log)
{
    if (log->progress_shown && ddp_log_ready(log->stream, 0))
        fputs("\r\033[K", log->stream);
    log->progress_shown = false;
}

void ddp_log_err(const struct ddp_log *log, const struct ddp_err *err)
{
    char rank[32];
    snprintf(rank, sizeof rank, "rank %d", err->rank);
    ddp_log_err_of(log, err->rank >= 0 ? rank : NULL, err);
}

void ddp_log_err_of(const struct ddp_log *log, const char *who, const struct ddp_err *err)
{
    if (!log || !log->stream || err->code == DDP_ECLOSED)
        return;
    char clean[sizeof err->hint];
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    const enum ddp_log_level level = err->interrupted ? DDP_LOG_NOTE : DDP_LOG_ERROR;
    int used = (int)strlen("ddpbench: ") + (int)strlen(levels[level].prefix);
    start_line(log, level, &line);
    if (who) {
        ddp_strbuf_addf(&line, "%s: ", who);
        used += (int)strlen(who) + 2;
    }
    ddp_printable(err->text, clean, sizeof clean);
    add_text(log, clean, used, &line);
    if (err->hint[0]) {
        ddp_printable(err->hint, clean, sizeof clean);
        ddp_strbuf_add(&line, "  ");
        add_text(log, clean, 2, &line);
    }
    /* If memory for the line ran out, write at least the text. */
    if (!line.failed)
        write_line(log, line.text, line.length);
    else
        fprintf(log->stream, "ddpbench: error: %s\n", err->text);
    ddp_strbuf_release(&line);
}
