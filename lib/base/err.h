/* Errors: one list of codes, one struct that carries the message.
 *
 * Every fallible function of lib/ returns an int: 0, or one of the negative codes below, and takes
 * a `struct ddp_err *` last. Whoever detects an error first fills it with ddp_fail(); whoever only
 * forwards it says nothing (DDP_TRY). Only cmd/ prints it.
 *
 * A code is the negated process exit code, so no table maps one to the other.
 * What this does not do: it never allocates, never prints, never exits. */
#ifndef DDP_BASE_ERR_H
#define DDP_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_MUST_CHECK               __attribute__((warn_unused_result))
#define DDP_PRINTF(fmt_index, first) __attribute__((format(printf, fmt_index, first)))

enum ddp_code {
    DDP_OK = 0,
    DDP_EREGRESSION = -10,   /* gate: the new one is slower */
    DDP_EDATA = -11,         /* a collective delivered wrong data */
    DDP_EINCONCLUSIVE = -12, /* gate: cannot tell */
    DDP_ELOST = -13,         /* a rank died, hung or was stopped */
    DDP_EUSAGE = -64,        /* command line */
    DDP_EINPUT = -65,        /* an input file is malformed */
    DDP_ENOINPUT = -66,      /* an input file is missing */
    DDP_EUNAVAIL = -69,      /* a library or device that was asked for is absent */
    DDP_EINTERNAL = -70,     /* ours to fix */
    DDP_ENOMEM = -71,        /* would not fit, or did not */
    DDP_ECREATE = -73,       /* an output file cannot be created */
    DDP_EIO = -74,           /* read or write failed */
    DDP_EMISMATCH = -76,     /* ranks, hosts, builds or fingerprints disagree */
    DDP_EPERM = -77,
    DDP_ECONFIG = -78, /* a configuration file says something illegal */
};

/* text: one line, what went wrong with the subject in quotes. hint: what to do; may be empty.
 * code: the first code set, 0 when nothing failed. rank: -1 unless a rank of the world said it.
 * agreed: every rank of the world returns this code (ddp_comm_agree), so that one of them may speak
 * for all. */
struct ddp_err {
    int code;
    int rank;
    bool agreed;
    char text[512];
    char hint[768];
};

/* An empty error. */
#define DDP_ERR_INIT ((struct ddp_err){.code = 0, .rank = -1, .text = "", .hint = ""})

/* Fills *err (unless it already holds an error: the first one stays) and returns `code`.
 * err may be NULL. */
int ddp_fail(struct ddp_err *err, int code, const char *fmt, ...) DDP_PRINTF(3, 4);

/* As ddp_fail with ": <strerror(errno_value)>" appended to the text. Too many open files is
 * DDP_ENOMEM with a hint, whatever the caller makes of other errors: return what this returns. */
int ddp_fail_errno(struct ddp_err *err, int code, int errno_value, const char *fmt, ...)
    DDP_PRINTF(4, 5);

/* Sets the hint of an error that has none yet; returns err->code, or DDP_EINTERNAL without err. */
int ddp_hint(struct ddp_err *err, const char *fmt, ...) DDP_PRINTF(2, 3);

/* The process exit code of a return code: 0..255. */
int ddp_exit_code(int code);

/* Forwards a failure: evaluates `expr` once, returns its value from this function if not 0. */
#define DDP_TRY(expr)                                                                              \
    do {                                                                                           \
        int ddp_try_rc_ = (expr);                                                                  \
        if (ddp_try_rc_ != 0)                                                                      \
            return ddp_try_rc_;                                                                    \
    } while (0)

/* Forwards a failure to a clean-up label; `rc` must be a variable of the function. */
#define DDP_TRY_GOTO(expr, label)                                                                  \
    do {                                                                                           \
        rc = (expr);                                                                               \
        if (rc != 0)                                                                               \
            goto label;                                                                            \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
