#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Appends to a NUL-terminated text. If the result does not fit, it is cut and ends in "...". */
static void text_vappend(char *text, size_t text_bytes, const char *fmt, va_list args)
{
    size_t used = strlen(text);
    int n = vsnprintf(text + used, text_bytes - used, fmt, args);
    if (n >= 0 && (size_t)n >= text_bytes - used)
        memcpy(text + text_bytes - 4, "...", 4);
}

static void text_append(char *text, size_t text_bytes, const char *fmt, ...) DDP_PRINTF(3, 4);
static void text_append(char *text, size_t text_bytes, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    text_vappend(text, text_bytes, fmt, args);
    va_end(args);
}

int ddp_fail(struct ddp_err *err, int code, const char *fmt, ...)
{
    if (!err || err->code != 0)
        return code;
    err->code = code;
    err->text[0] = '\0';
    va_list args;
    va_start(args, fmt);
    text_vappend(err->text, sizeof err->text, fmt, args);
    va_end(args);
    return code;
}

int ddp_fail_errno(struct ddp_err *err, int code, int errno_value, const char *fmt, ...)
{
    const bool descriptors = errno_value == EMFILE || errno_value == ENFILE;
    if (descriptors)
        code = DDP_ENOMEM;
    if (!err || err->code != 0)
        return code;
    err->code = code;
    err->text[0] = '\0';
    va_list args;
    va_start(args, fmt);
    text_vappend(err->text, sizeof err->text, fmt, args);
    va_end(args);
    char why[128];
    text_append(err->text, sizeof err->text, ": %s", strerror_r(errno_value, why, sizeof why));
    if (descriptors)
        ddp_hint(err, "allow more open files: ulimit -n");
    return code;
}

int ddp_hint(struct ddp_err *err, const char *fmt, ...)
{
    /* `return ddp_hint(err, ...)` must return a failure even if the caller passes no err. */
    if (!err)
        return DDP_EINTERNAL;
    if (err->hint[0] != '\0')
        return err->code;
    va_list args;
    va_start(args, fmt);
    text_vappend(err->hint, sizeof err->hint, fmt, args);
    va_end(args);
    return err->code;
}

int ddp_exit_code(int code)
{
    if (code == 0)
        return 0;
    /* A code that is not a negated exit code is a bug. Report it as an internal error, never as
     * success. */
    return code < 0 && code >= -255 ? -code : -DDP_EINTERNAL;
}
