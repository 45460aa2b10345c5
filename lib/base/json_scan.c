/* Checks a JSON text strictly before cJSON parses it. The check does not recurse or allocate. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json_impl.h"

struct scan {
    const char *text, *name;
    size_t bytes;
    size_t at; /* the current byte */
    unsigned values;
    int depth;
    char stack[DDP_JSON_MAX_DEPTH]; /* '{' or '[' for each open value */
    struct ddp_err *err;
};

/* Returns the current byte, or NUL at the end. A NUL inside the text is always an error, so callers
 * need not tell the two cases apart. */
static char peek(const struct scan *s)
{
    return s->at < s->bytes ? s->text[s->at] : '\0';
}

static int refuse(const struct scan *s, const char *why)
{
    return ddp_fail(s->err, DDP_EINPUT, "'%s' is not legal JSON at byte %zu: %s", s->name, s->at,
                    why);
}

static void skip_space(struct scan *s)
{
    while (s->at < s->bytes && memchr(" \t\r\n", s->text[s->at], 4))
        s->at++;
}

/* Returns the value of the four hexadecimal digits of \uXXXX, or -1. */
static int hex4(const struct scan *s, size_t at)
{
    int v = 0;
    if (at + 4 > s->bytes)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        int c = tolower((unsigned char)s->text[i]);
        if (!isxdigit(c))
            return -1;
        v = v * 16 + (isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return v;
}

static int scan_escape(struct scan *s)
{
    s->at++;
    char c = peek(s);
    if (c != 'u') {
        if (c == '\0' || !strchr("\"\\/bfnrt", c))
            return refuse(s, "unknown escape");
        s->at++;
        return DDP_OK;
    }
    int v = hex4(s, s->at + 1);
    s->at += 5;
    if (v <= 0)
        return refuse(s, v < 0 ? "\\u needs four hexadecimal digits" : "\\u0000 is refused");
    if (v >= 0xDC00 && v <= 0xDFFF)
        return refuse(s, "a low surrogate without a high surrogate");
    if (v >= 0xD800 && v <= 0xDBFF) {
        int low = s->at + 6 <= s->bytes && memcmp(s->text + s->at, "\\u", 2) == 0
                      ? hex4(s, s->at + 2)
                      : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return refuse(s, "a high surrogate without a low surrogate");
        s->at += 6;
    }
    return DDP_OK;
}

static int scan_string(struct scan *s)
{
    if (peek(s) != '"')
        return refuse(s, "a string was expected");
    s->at++;
    while (peek(s) != '"') {
        if (s->at >= s->bytes)
            return refuse(s, "the string does not end");
        if (peek(s) == '\\') {
            DDP_TRY(scan_escape(s));
            continue;
        }
        size_t n = ddp_utf8_length(s->text + s->at, s->bytes - s->at);
        if (n == 0)
            return refuse(s, "not UTF-8");
        if ((unsigned char)s->text[s->at] < 0x20)
            return refuse(s, "a control character in a string");
        s->at += n;
    }
    s->at++;
    return DDP_OK;
}

static size_t scan_digits(struct scan *s)
{
    size_t start = s->at;
    while (isdigit((unsigned char)peek(s)))
        s->at++;
    return s->at - start;
}

static int scan_number(struct scan *s)
{
    size_t start = s->at;
    s->at += peek(s) == '-';
    bool zero = peek(s) == '0';
    size_t digits = scan_digits(s);
    if (digits == 0 || (zero && digits > 1))
        return refuse(s, "not a value");
    if (peek(s) == '.') {
        s->at++;
        if (scan_digits(s) == 0)
            return refuse(s, "a number ends in a decimal point");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        s->at += peek(s) == '+' || peek(s) == '-';
        if (scan_digits(s) == 0)
            return refuse(s, "a number has an empty exponent");
    }
    /* cJSON copies a number into a buffer of 64 bytes and ignores the rest. */
    if (s->at - start > 60)
        return refuse(s, "a number of more than 60 characters");
    return DDP_OK;
}

static int scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);
    if (s->bytes - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return refuse(s, "not a value");
    s->at += n;
    return DDP_OK;
}

/* Scans a value that is not an object or array. */
static int scan_plain(struct scan *s)
{
    switch (peek(s)) {
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        return scan_number(s);
    }
}

static int scan_key(struct scan *s)
{
    skip_space(s);
    DDP_TRY(scan_string(s));
    skip_space(s);
    if (peek(s) != ':')
        return refuse(s, "':' was expected");
    s->at++;
    return DDP_OK;
}

/* Scans the text after a value and closes the objects and arrays that end there. Sets *more to
 * whether another value of an open object or array follows. */
static int scan_after_value(struct scan *s, bool *more)
{
    *more = false;
    while (s->depth > 0) {
        skip_space(s);
        char open = s->stack[s->depth - 1];
        if (peek(s) == ',') {
            s->at++;
            *more = true;
            return open == '{' ? scan_key(s) : DDP_OK;
        }
        if (peek(s) != (open == '{' ? '}' : ']'))
            return refuse(s, open == '{' ? "',' or '}' was expected" : "',' or ']' was expected");
        s->at++;
        s->depth--;
    }
    return DDP_OK;
}

/* Scans an opening bracket. Sets *inside to true if a value follows, and to false if the object or
 * array is empty. */
static int scan_open(struct scan *s, bool *inside)
{
    char open = peek(s);
    if (s->depth == DDP_JSON_MAX_DEPTH)
        return refuse(s, "nested too deeply");
    s->at++;
    skip_space(s);
    *inside = peek(s) != (open == '{' ? '}' : ']');
    if (!*inside) {
        s->at++;
        return DDP_OK;
    }
    s->stack[s->depth++] = open;
    return open == '{' ? scan_key(s) : DDP_OK;
}

int ddp_json_scan(const char *text, size_t bytes, const char *name, struct ddp_err *err)
{
    struct scan s = {.text = text, .name = name, .bytes = bytes, .err = err};
    if (bytes > DDP_JSON_MAX_BYTES)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %zu bytes; the limit is %u", name, bytes,
                        DDP_JSON_MAX_BYTES);
    for (bool more = true; more;) { /* each turn consumes a bracket or a value, so the loop ends */
        skip_space(&s);
        if (++s.values > DDP_JSON_MAX_VALUES)
            return refuse(&s, "too many values");
        bool inside = false;
        if (peek(&s) == '{' || peek(&s) == '[')
            DDP_TRY(scan_open(&s, &inside));
        else
            DDP_TRY(scan_plain(&s));
        if (!inside)
            DDP_TRY(scan_after_value(&s, &more));
    }
    skip_space(&s);
    if (s.at != bytes)
        return refuse(&s, "bytes after the document");
    return DDP_OK;
}
