/* Running another program to its end: gate's launches, `kernels`' helper binary.
 *
 * The child gets a process group of its own; stdin and stdout are /dev/null (or handed on), stderr
 * is kept (or handed on), its last lines are for the message when it fails. While it runs, SIGINT,
 * SIGTERM and SIGHUP to us are sent on to it, and end the wait; a deadline ends the whole group.
 * When we are killed it gets SIGTERM (comm/launch_program.h). */
#ifndef DDP_BENCH_CHILD_H
#define DDP_BENCH_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* argv: NULL-terminated. env: NULL-terminated "K=V" that are added to ours, or replace. */
struct ddp_child {
    char *const *argv;
    const char *const *env;
    int64_t timeout_ns;
    bool keep_stdout;
    bool keep_stderr;
};
struct ddp_child_end {
    int status;
    int signal;
    bool timed_out;
    int64_t took_ns;
    char last_words[512];
};
int ddp_child_run(const struct ddp_child *child, struct ddp_child_end *end,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
