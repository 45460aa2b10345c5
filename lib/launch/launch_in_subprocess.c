#include "launch/launch_in_subprocess.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define PAUSE_NS 500000

/* The first part of the memory that parent and child share. The bytes of the answer follow it. */
struct result {
    int code;
    struct ddp_err err;
};

_Noreturn static void child_main(int (*ask)(void *, struct ddp_err *), struct result *result)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct ddp_err err = DDP_ERR_INIT;
    const int code = ask(result + 1, &err);
    result->err = err;
    result->code = code;
    _exit(0);
}

/* Waits until the child has ended. Kills the child at the timeout. */
static int wait_for(pid_t child, int64_t timeout_ns, struct ddp_err *err)
{
    const int64_t deadline = ddp_now_ns() + timeout_ns;
    int status = 0;
    for (;;) {
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            break;
        if (ended < 0 && errno != EINTR)
            return ddp_fail_errno(err, DDP_EINTERNAL, errno, "waitpid");
        if (ddp_now_ns() >= deadline) {
            (void)kill(child, SIGKILL);
            (void)waitpid(child, &status, 0);
            return ddp_fail(err, DDP_EUNAVAIL, "the child process did not answer within %lld s",
                            (long long)(timeout_ns / 1000000000));
        }
        ddp_sleep_ns(PAUSE_NS);
    }
    if (WIFSIGNALED(status))
        return ddp_fail(err, DDP_EUNAVAIL, "the child process ended with signal %d",
                        WTERMSIG(status));
    return WEXITSTATUS(status) == 0
               ? 0
               : ddp_fail(err, DDP_EUNAVAIL, "the child process ended with status %d",
                          WEXITSTATUS(status));
}

int ddp_launch_in_subprocess(int (*ask)(void *answer, struct ddp_err *err), void *answer,
                             size_t bytes, int64_t timeout_ns, struct ddp_err *err)
{
    const size_t whole = sizeof(struct result) + bytes;
    struct result *result =
        mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (result == MAP_FAILED)
        return ddp_fail_errno(err, DDP_ENOMEM, errno, "no memory for an answer");
    result->code = DDP_EINTERNAL; /* kept if the child exits before `ask` returns */
    const pid_t child = fork();
    int rc;
    if (child == 0)
        child_main(ask, result);
    if (child < 0)
        rc = ddp_fail_errno(err, DDP_ENOMEM, errno, "cannot start a process");
    else
        rc = wait_for(child, timeout_ns, err);
    if (rc == 0 && result->code != 0) {
        rc = ddp_fail(err, result->code, "%s", result->err.text);
        if (result->err.hint[0] != '\0')
            ddp_hint(err, "%s", result->err.hint);
    } else if (rc == 0) {
        memcpy(answer, result + 1, bytes);
    }
    (void)munmap(result, whole);
    return rc;
}
