/* Errors: one list of codes, one struct that carries the message.
 *
 * Every fallible function of lib/ returns an int: 0, or one of the negative codes below, and takes
 * a `struct ddp_err *` last. The function that detects an error first fills the struct with
 * ddp_fail(); functions that only forward the error add nothing (DDP_TRY). Only cmd/ prints the
 * message.
 *
 * A code is the negated process exit code, so no table maps one to the other. These functions never
 * allocate, print or exit. */
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
    DDP_EREGRESSION = -10,   /* gate: the new command is slower */
    DDP_EDATA = -11,         /* a collective delivered wrong data */
    DDP_EINCONCLUSIVE = -12, /* gate: the result is not significant */
    DDP_ELOST = -13,         /* a rank died, hung or was stopped */
    DDP_EUSAGE = -64,        /* illegal command line */
    DDP_EINPUT = -65,        /* an input file is malformed */
    DDP_ENOINPUT = -66,      /* an input file is missing */
    DDP_EUNAVAIL = -69,      /* a requested library or device is absent */
    DDP_EINTERNAL = -70,     /* a bug in ddpbench */
    DDP_ENOMEM = -71,        /* memory would not suffice, or did not */
    DDP_ECREATE = -73,       /* an output file cannot be created */
    DDP_EIO = -74,           /* read or write failed */
    DDP_EMISMATCH = -76,     /* ranks, hosts, builds or fingerprints disagree */
    DDP_EPERM = -77,
    DDP_ECONFIG = -78, /* a configuration file has an illegal value */
};

/* An error and its message. The text is one line that names the subject in quotes. */
struct ddp_err {
    int code; /* the first code set; 0: nothing failed */
    int rank; /* the rank that reported the error; -1: none */
    /* Every rank of the world returns this code (ddp_comm_agree), so one rank may report it for
     * all. */
    bool agreed;
    char text[512]; /* the cause */
    char hint[768]; /* what the user can do; may be empty */
};

/* An empty error. */
#define DDP_ERR_INIT ((struct ddp_err){.code = 0, .rank = -1, .text = "", .hint = ""})

/* Fills *err and returns `code`. If *err already holds an error, it keeps the first one. err may be
 * NULL. */
int ddp_fail(struct ddp_err *err, int code, const char *fmt, ...) DDP_PRINTF(3, 4);

/* Like ddp_fail, with ": <strerror(errno_value)>" appended to the text. For "too many open files"
 * the code becomes DDP_ENOMEM, with a hint, so callers must return the returned code. */
int ddp_fail_errno(struct ddp_err *err, int code, int errno_value, const char *fmt, ...)
    DDP_PRINTF(4, 5);

/* Sets the hint of an error that has none yet. Returns err->code, or DDP_EINTERNAL if err is NULL.
 */
int ddp_hint(struct ddp_err *err, const char *fmt, ...) DDP_PRINTF(2, 3);

/* Converts a return code to the process exit code, 0..255. */
int ddp_exit_code(int code);

/* Forwards a failure: evaluates `expr` once and returns its value from this function if it is not
 * 0. */
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
