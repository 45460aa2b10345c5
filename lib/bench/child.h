/* Runs another program and waits for its end: the child processes of `gate`, and the helper binary
 * of `kernels`.
 *
 * The child gets a process group of its own. Its stdin is /dev/null. Its stdout is /dev/null or
 * ours. Its stderr is kept in memory or is ours; if the child fails, the last lines go into the
 * error message. While it runs, SIGINT, SIGTERM and SIGHUP that this process receives are passed on
 * to the child and end the wait. After the timeout the whole process group is ended. If this
 * process is killed, the child gets SIGTERM (comm/launch_program.h). */
#ifndef DDP_BENCH_CHILD_H
#define DDP_BENCH_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_child {
    char *const *argv;      /* NULL-terminated */
    const char *const *env; /* NULL-terminated "K=V": added to our environment, or replacing */
    int64_t timeout_ns;     /* 0: none */
    bool keep_stdout;       /* the child writes to our stdout */
    bool keep_stderr;       /* the child writes to our stderr; last_messages stays empty */
};

/* How the child ended. */
struct ddp_child_end {
    int status; /* exit status, or 128 + signal */
    int signal; /* the signal that this process received meanwhile; 0: none */
    bool timed_out;
    int64_t took_ns;
    char last_messages[512]; /* the end of its stderr, printable, on one line */
};
/* Returns 0 if the child could be started, however it ended; DDP_EUNAVAIL if it could not (no such
 * program), DDP_EIO on a system error. */
int ddp_child_run(const struct ddp_child *child, struct ddp_child_end *end,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
