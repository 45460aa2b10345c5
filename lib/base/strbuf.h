/* A growing string. A failed allocation sets `failed`, and all later appends do nothing. Callers
 * can therefore append without checks and test `failed` once at the end. */
#ifndef DDP_BASE_STRBUF_H
#define DDP_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A string buffer. Initialise it with DDP_STRBUF_INIT. */
struct ddp_strbuf {
    char *text; /* NUL-terminated; not NULL after the first successful append */
    size_t length, capacity;
    bool failed; /* memory was exhausted */
};
#define DDP_STRBUF_INIT ((struct ddp_strbuf){0})

void ddp_strbuf_add(struct ddp_strbuf *sb, const char *text);
void ddp_strbuf_add_n(struct ddp_strbuf *sb, const char *text, size_t n);
void ddp_strbuf_addf(struct ddp_strbuf *sb, const char *fmt, ...) DDP_PRINTF(2, 3);
/* Appends n spaces. */
void ddp_strbuf_pad(struct ddp_strbuf *sb, size_t n);
void ddp_strbuf_release(struct ddp_strbuf *sb);

/* Appends text, broken at spaces into lines of at most `width` characters. The current line already
 * has `used` characters. Each further line begins with `indent` spaces. Text between backquotes,
 * and words that are longer than a line, are not broken. If width is 0, no line is broken. Appends
 * no newline at the end. */
void ddp_strbuf_wrap(struct ddp_strbuf *sb, const char *text, int used, int width, int indent);
/* Like ddp_strbuf_wrap, but also appends a newline at the end. */
void ddp_strbuf_wrap_line(struct ddp_strbuf *sb, const char *text, int used, int width, int indent);
/* Returns the number of terminal columns that text [bytes] takes. Each character counts as one
 * column. The text must have no escape codes. */
int ddp_text_columns(const char *text, size_t bytes);

/* Appends to the NUL-terminated string in the buffer text [text_bytes]. If the result does not fit,
 * it is cut and ends in "...". text_bytes must be at least 4. */
void ddp_text_append(char *text, size_t text_bytes, const char *fmt, ...) DDP_PRINTF(3, 4);
void ddp_text_vappend(char *text, size_t text_bytes, const char *fmt, va_list args);
/* Appends `entry` to a list such as "tcp/eth0, posix/memory", unless the list already has this
 * entry. A list that does not fit is cut as by ddp_text_append. */
void ddp_text_list_add(char *list, size_t list_bytes, const char *entry);

/* Returns the length (1 to 4) of the UTF-8 sequence at the start of text [left], or 0 if the
 * sequence is not valid. */
size_t ddp_utf8_length(const char *text, size_t left);

/* Copies `text` for display. Control characters (including ESC, DEL and C1) and bytes that are not
 * UTF-8 become '?'. Text that does not fit is cut between two characters. The copy is
 * NUL-terminated. `out` may be `text`. */
void ddp_printable(const char *text, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
