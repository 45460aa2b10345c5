/* Errors: the list of codes, and the struct that carries the message.
 *
 * Most functions of lib/ that can fail return 0 or one of the negative codes below. 0 is success.
 * The comments of these functions name the error codes, but do not mention 0. The last parameter is
 * usually a `struct ddp_err *`. The function that detects an error fills this struct with
 * ddp_fail(). Functions that only forward the error do not change the struct (DDP_TRY). cmd/ and
 * lib/run print the message.
 *
 * A code is the negated exit code of the process. The functions of this header never allocate
 * memory, print or exit. */
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
    DDP_EREGRESSION = -10,   /* gate: the new command is slower; health: DEGRADED */
    DDP_EDATA = -11,         /* a collective delivered wrong data */
    DDP_EINCONCLUSIVE = -12, /* gate: the result is not significant; health: CANNOT TELL */
    DDP_ELOST = -13,         /* a rank died, hung or was stopped */
    DDP_EUSAGE = -64,        /* illegal command line, option or environment variable */
    DDP_EINPUT = -65,        /* an input file is malformed */
    DDP_ENOINPUT = -66,      /* an input file is missing */
    DDP_EUNAVAIL = -69,      /* a requested library or device is absent */
    DDP_EINTERNAL = -70,     /* a bug in ddpbench */
    DDP_ENOMEM = -71,        /* memory is exhausted, or a check shows that it would not suffice */
    DDP_ECREATE = -73,       /* an output file cannot be created */
    DDP_EIO = -74,           /* read or write failed */
    DDP_EMISMATCH = -76,     /* ranks, hosts, builds or fingerprints disagree */
    DDP_EPERM = -77,
    DDP_ECONFIG = -78,  /* a configuration file has an illegal value */
    DDP_ECLOSED = -141, /* the reader of stdout has closed the pipe; no message reports this */
};

/* Returns whether `code` is -(128 + signal), the code of a run that a signal ended. Returns false
 * for DDP_ECLOSED, which has this form (SIGPIPE), but is an error. */
static inline bool ddp_code_is_signal(int code)
{
    return code < -128 && code != DDP_ECLOSED;
}

/* An error and its message. The text is one line. */
struct ddp_err {
    int code; /* the error code; 0: there is no error */
    int rank; /* the rank that reported the error; -1: not known, or not a rank */
    /* True if every rank of the world returns this code (ddp_comm_agree). One rank may then report
     * the error for all ranks. */
    bool agreed;
    bool interrupted; /* a signal ended the run; the message is then not an error message */
    char text[512];   /* the cause */
    char hint[768];   /* what the user can do; may be empty */
};

#define DDP_ERR_INIT ((struct ddp_err){.code = 0, .rank = -1, .text = "", .hint = ""})

/* Fills *err and returns `code`. If *err already holds an error, *err does not change. err may be
 * NULL. */
int ddp_fail(struct ddp_err *err, int code, const char *fmt, ...) DDP_PRINTF(3, 4);

/* Like ddp_fail, but appends ": <strerror(errno_value)>" to the text. If errno_value means "too
 * many open files", the code becomes DDP_ENOMEM and a hint is added. Callers must therefore return
 * the value of this function. */
int ddp_fail_errno(struct ddp_err *err, int code, int errno_value, const char *fmt, ...)
    DDP_PRINTF(4, 5);

/* Copies *cause to *err unless *err already holds an error. Returns cause->code. err may be NULL.
 */
int ddp_fail_copy(struct ddp_err *err, const struct ddp_err *cause);

/* Sets the hint of *err if it has none yet. Returns err->code, or DDP_EINTERNAL if err is NULL. */
int ddp_hint(struct ddp_err *err, const char *fmt, ...) DDP_PRINTF(2, 3);

/* Converts a return code to the process exit code, 0..255. Returns 70 for a value that is not a
 * code. */
int ddp_exit_code(int code);

/* Forwards a failure. Evaluates `expr` once, and returns its value from the calling function if the
 * value is not 0. */
#define DDP_TRY(expr)                                                                              \
    do {                                                                                           \
        int ddp_try_rc_ = (expr);                                                                  \
        if (ddp_try_rc_ != 0)                                                                      \
            return ddp_try_rc_;                                                                    \
    } while (0)

/* Like DDP_TRY, but stores the value in the variable `rc` of the calling function and jumps to a
 * clean-up label. */
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
