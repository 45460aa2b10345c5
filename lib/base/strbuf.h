/* A growing string. Once an allocation has failed the buffer stays in the failed state, so callers
 * append freely and look once, at the end. Does not print. */
#ifndef DDP_BASE_STRBUF_H
#define DDP_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* text is NUL-terminated (never NULL after the first append); failed: memory ran out at some point.
 */
struct ddp_strbuf {
    char *text;
    size_t length, capacity;
    bool failed;
};
#define DDP_STRBUF_INIT ((struct ddp_strbuf){0})

void ddp_strbuf_add(struct ddp_strbuf *sb, const char *text);
void ddp_strbuf_add_n(struct ddp_strbuf *sb, const char *text, size_t n);
void ddp_strbuf_addf(struct ddp_strbuf *sb, const char *fmt, ...) DDP_PRINTF(2, 3);
/* n spaces. */
void ddp_strbuf_pad(struct ddp_strbuf *sb, size_t n);
/* Length 0, memory kept. */
void ddp_strbuf_clear(struct ddp_strbuf *sb);
void ddp_strbuf_release(struct ddp_strbuf *sb);

/* Bytes (1 to 4) of the valid UTF-8 sequence that text[0..left) begins with; 0 when it is none. */
size_t ddp_utf8_length(const char *text, size_t left);

/* Copies `text` for people to read: control characters (ESC, DEL and C1 too) and bytes that are not
 * UTF-8 become '?'. Cut at a whole character when it does not fit; always NUL-terminated. */
void ddp_printable(const char *text, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
