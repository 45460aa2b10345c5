/* Runs another program and waits until it ends. The command `gate` runs its child processes in this
 * way, and the command `kernels` runs its helper program.
 *
 * The child gets a process group of its own. The child's stdin is /dev/null. The child's stdout is
 * /dev/null, a file, or the stdout of this process. The child's stderr is the stderr of this
 * process, or is kept in memory for an error message. While the child runs, SIGINT, SIGTERM and
 * SIGHUP to this process are passed on to the child's process group, unless this process ignores
 * the signal. After the timeout, the group gets SIGTERM. If the child is still running 5 s after
 * the last of these signals, the group gets SIGKILL. If this process is killed, the child gets
 * SIGTERM (launch/launch_program.h).
 *
 * A warning reports that the child was stopped, for example by SIGSTOP. Another warning reports
 * that it continues. The time for which the child is stopped counts towards the timeout. */
#ifndef DDP_RUN_CHILD_H
#define DDP_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"

struct ddp_child {
    char *const *argv;      /* NULL-terminated */
    const char *const *env; /* NULL-terminated "K=V": set or replaced in the environment */
    int64_t timeout_ns;     /* 0: none */
    bool keep_stdout;       /* the child writes to this process's stdout */
    bool keep_stderr; /* the child writes to this process's stderr; last_messages stays empty */
    const char *stdout_path; /* file for the child's stdout, or NULL */
    const char *text;        /* the command in warnings; NULL: argv[0] */
    struct ddp_log *log;     /* receives the warnings; NULL: no warnings */
    /* Optional: called about once per second while the child runs. */
    void (*on_wait)(void *arg);
    void *arg;
};

/* Describes how the child ended. */
struct ddp_child_end {
    int status; /* exit status, or 128 + the signal that ended the child */
    int signal; /* the signal that this process received while it waited; 0: none */
    bool timed_out;
    int64_t took_ns;
    char last_messages[512]; /* the child's last output to stderr, printable, on one line */
};
/* Returns 0 if the child was started. *end then says whether the child failed. Returns DDP_EUNAVAIL
 * if the child could not be started, for example because there is no such program. Returns
 * DDP_ECREATE if stdout_path cannot be created, DDP_ENOMEM if there is no memory, and DDP_EIO if
 * this process cannot watch the child. */
int ddp_child_run(const struct ddp_child *child, struct ddp_child_end *end,
                  struct ddp_err *err) DDP_MUST_CHECK;
/* Fills *err with the message that this process ends because of end->signal. Returns -(128 +
 * end->signal). */
int ddp_child_signal(const struct ddp_child_end *end, struct ddp_err *err);

#define DDP_ARGV_MAX 256

struct ddp_argv {
    char **word; /* [count], then NULL: pointers into text */
    int count;
    char *text;
};
/* Splits a command line into arguments by rules like those of a POSIX shell, without running a
 * shell. Spaces and tabs separate arguments. '...', "..." and backslashes quote; inside "..." a
 * backslash quotes any character. Nothing is expanded. An unquoted | & ; < > $ ` or newline is an
 * error, because a shell would interpret it. Release *out with ddp_argv_release. Returns DDP_EUSAGE
 * for an open quote, an unquoted special character, an empty command, or more than DDP_ARGV_MAX
 * arguments. Returns DDP_ENOMEM if there is no memory. */
int ddp_argv_split(const char *text, struct ddp_argv *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_argv_release(struct ddp_argv *words);

#endif
