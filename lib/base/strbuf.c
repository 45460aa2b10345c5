#include "base/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and a NUL. If memory is exhausted, sets `failed` and returns
 * false. */
static bool strbuf_reserve(struct ddp_strbuf *sb, size_t more)
{
    if (sb->failed)
        return false;
    if (more >= SIZE_MAX / 2 - sb->length) {
        sb->failed = true;
        return false;
    }
    size_t need = sb->length + more + 1;
    if (need <= sb->capacity)
        return true;
    size_t capacity = sb->capacity ? sb->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    char *text = realloc(sb->text, capacity);
    if (!text) {
        sb->failed = true;
        return false;
    }
    sb->text = text;
    sb->capacity = capacity;
    return true;
}

void ddp_strbuf_add_n(struct ddp_strbuf *sb, const char *text, size_t n)
{
    if (!strbuf_reserve(sb, n))
        return;
    if (n > 0)
        memcpy(sb->text + sb->length, text, n);
    sb->length += n;
    sb->text[sb->length] = '\0';
}

void ddp_strbuf_add(struct ddp_strbuf *sb, const char *text)
{
    ddp_strbuf_add_n(sb, text, strlen(text));
}

void ddp_strbuf_addf(struct ddp_strbuf *sb, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        sb->failed = true;
        return;
    }
    if (!strbuf_reserve(sb, (size_t)n))
        return;
    va_start(args, fmt);
    vsnprintf(sb->text + sb->length, (size_t)n + 1, fmt, args);
    va_end(args);
    sb->length += (size_t)n;
}

void ddp_strbuf_pad(struct ddp_strbuf *sb, size_t n)
{
    if (!strbuf_reserve(sb, n))
        return;
    memset(sb->text + sb->length, ' ', n);
    sb->length += n;
    sb->text[sb->length] = '\0';
}

int ddp_text_columns(const char *text, size_t bytes)
{
    int columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)text[i] & 0xC0) != 0x80; /* not inside a UTF-8 sequence */
    return columns;
}

/* Returns the length of the word at the start of text. A space between two backquotes does not end
 * the word. */
static size_t word_bytes(const char *text)
{
    bool quoted = false;
    size_t n = 0;
    for (; text[n] && (quoted || text[n] != ' '); n++)
        if (text[n] == '`')
            quoted = !quoted && strchr(text + n + 1, '`') != NULL;
    return n;
}

void ddp_strbuf_wrap(struct ddp_strbuf *sb, const char *text, int used, int width, int indent)
{
    int column = used;
    for (bool first = true; *text; first = false) {
        const size_t spaces = strspn(text, " "), n = word_bytes(text + spaces);
        const int columns = ddp_text_columns(text + spaces, n);
        if (!first && n > 0 && width > 0 && column + (int)spaces + columns > width) {
            ddp_strbuf_add(sb, "\n");
            ddp_strbuf_pad(sb, (size_t)indent);
            column = indent;
        } else {
            ddp_strbuf_pad(sb, spaces);
            column += (int)spaces;
        }
        ddp_strbuf_add_n(sb, text + spaces, n);
        column += columns;
        text += spaces + n;
    }
}

void ddp_strbuf_wrap_line(struct ddp_strbuf *sb, const char *text, int used, int width, int indent)
{
    ddp_strbuf_wrap(sb, text, used, width, indent);
    ddp_strbuf_add(sb, "\n");
}

void ddp_strbuf_release(struct ddp_strbuf *sb)
{
    free(sb->text);
    *sb = DDP_STRBUF_INIT;
}

void ddp_text_vappend(char *text, size_t text_bytes, const char *fmt, va_list args)
{
    size_t used = strlen(text);
    int n = vsnprintf(text + used, text_bytes - used, fmt, args);
    if (n >= 0 && (size_t)n >= text_bytes - used)
        memcpy(text + text_bytes - 4, "...", 4);
}

void ddp_text_append(char *text, size_t text_bytes, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ddp_text_vappend(text, text_bytes, fmt, args);
    va_end(args);
}

void ddp_text_list_add(char *list, size_t list_bytes, const char *entry)
{
    const size_t length = strlen(entry);
    for (const char *at = strstr(list, entry); at != NULL; at = strstr(at + 1, entry))
        if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ','))
            return;
    ddp_text_append(list, list_bytes, "%s%s", list[0] != '\0' ? ", " : "", entry);
}

/* utf8_least[n] is the smallest code point that needs n bytes. A smaller code point in n bytes is
 * an overlong form, which is not valid. */
static const uint32_t utf8_least[5] = {0, 0, 0x80, 0x800, 0x10000};

size_t ddp_utf8_length(const char *text, size_t left)
{
    if (left == 0)
        return 0;
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n > left)
        return 0;
    uint32_t code = s[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3F);
    }
    bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < utf8_least[n] || code > 0x10FFFF || surrogate ? 0 : n;
}

void ddp_printable(const char *text, char *out, size_t out_bytes)
{
    if (out_bytes == 0)
        return;
    size_t left = strlen(text), used = 0;
    while (left > 0) {
        const unsigned char *s = (const unsigned char *)text;
        size_t n = ddp_utf8_length(text, left);
        /* C1 controls (U+0080..U+009F) control terminals as ESC does. */
        bool control = n == 0 || (n == 1 && (s[0] < 0x20 || s[0] == 0x7F)) ||
                       (n == 2 && s[0] == 0xC2 && s[1] < 0xA0);
        size_t step = n ? n : 1, wide = control ? 1 : n;
        if (used + wide >= out_bytes)
            break;
        if (control)
            out[used] = '?';
        else
            memmove(out + used, text, n);
        used += wide;
        text += step;
        left -= step;
    }
    out[used] = '\0';
}
