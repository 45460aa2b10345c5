#include "base/err.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"

/* Stores the code and the text unless *err already holds an error. Returns whether they were
 * stored. */
static bool store(struct ddp_err *err, int code, const char *fmt, va_list args)
{
    if (!err || err->code != 0)
        return false;
    err->code = code;
    err->text[0] = '\0';
    ddp_text_vappend(err->text, sizeof err->text, fmt, args);
    return true;
}

int ddp_fail(struct ddp_err *err, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)store(err, code, fmt, args);
    va_end(args);
    return code;
}

int ddp_fail_errno(struct ddp_err *err, int code, int errno_value, const char *fmt, ...)
{
    const bool descriptors = errno_value == EMFILE || errno_value == ENFILE;
    if (descriptors)
        code = DDP_ENOMEM;
    va_list args;
    va_start(args, fmt);
    const bool stored = store(err, code, fmt, args);
    va_end(args);
    if (stored) {
        char why[128];
        ddp_text_append(err->text, sizeof err->text, ": %s",
                        strerror_r(errno_value, why, sizeof why));
        if (descriptors)
            ddp_hint(err, "allow more open files: ulimit -n");
    }
    return code;
}

int ddp_fail_copy(struct ddp_err *err, const struct ddp_err *cause)
{
    if (err && err->code == 0)
        *err = *cause;
    return cause->code;
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
    ddp_text_vappend(err->hint, sizeof err->hint, fmt, args);
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
