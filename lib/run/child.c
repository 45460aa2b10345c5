#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "launch/launch_program.h"
#include "launch/signal_thread.h"

/* Time from the signal that asks the child to end until SIGKILL. */
#define GRACE_NS 5000000000

/* The longest wait between two calls of on_wait. */
#define TICK_MS 1000

static int start(const struct ddp_child *child, int errors, const sigset_t *mask, pid_t *pid,
                 struct ddp_err *err)
{
    int output = 0;
    if (child->stdout_path) {
        output = open(child->stdout_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (output < 0)
            return ddp_fail_errno(err, DDP_ECREATE, errno, "cannot create '%s'",
                                  child->stdout_path);
    }
    char **env = ddp_conf_environment(child->env);
    if (!env) {
        if (output > 0)
            close(output);
        return ddp_fail(err, DDP_ENOMEM, "no memory for an environment");
    }
    const struct ddp_launch_program program = {.argv = child->argv,
                                               .env = env,
                                               .mask = mask,
                                               .keep_stdout = child->keep_stdout,
                                               .output = output,
                                               .errors = child->keep_stderr ? -1 : errors};
    int rc = ddp_launch_program(&program, pid, err);
    free(env);
    if (output > 0)
        close(output);
    return rc;
}

/* Warns if the child was stopped or continued since the last call. */
static void check_stops(const struct ddp_child *child, pid_t pid)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 || info.si_pid == 0 ||
        !child->log)
        return;
    const char *const name = child->text ? child->text : child->argv[0];
    ddp_log_clear_progress(child->log);
    if (info.si_code == CLD_CONTINUED)
        ddp_logf(child->log, DDP_LOG_WARN, "'%s' (process %ld) continues", name, (long)pid);
    else
        ddp_logf(child->log, DDP_LOG_WARN,
                 "'%s' (process %ld) was stopped by signal %d (%s); ddpbench waits until "
                 "`kill -CONT %ld` continues it",
                 name, (long)pid, info.si_status, strsignal(info.si_status), (long)pid);
}

/* Reads a signal that this process received. Returns the signal if it must be passed on to the
 * child, else 0. */
static int read_signal(const struct ddp_child *child, pid_t pid, int signals)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    if (info.ssi_signo != SIGCHLD)
        return (int)info.ssi_signo;
    check_stops(child, pid);
    return 0;
}

/* Waits until the child ends. Passes signals on to the child, and ends the child after the timeout
 * (child.h). */
static void watch(const struct ddp_child *child, pid_t pid, int pidfd, int signals,
                  struct ddp_child_end *end)
{
    int64_t begun = ddp_now_ns(), signalled_ns = 0;
    for (;;) {
        struct pollfd fds[] = {{.fd = pidfd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        int64_t now = ddp_now_ns(),
                limit = signalled_ns ? signalled_ns + GRACE_NS : child->timeout_ns + begun;
        bool bounded = signalled_ns || child->timeout_ns > 0;
        if (bounded && now >= limit) {
            end->timed_out |= !signalled_ns;
            kill(-pid, signalled_ns ? SIGKILL : SIGTERM);
            signalled_ns = now;
            continue;
        }
        int64_t wait_ms = bounded ? (limit - now) / 1000000 + 1 : TICK_MS;
        if (poll(fds, 2, (int)DDP_MIN(wait_ms, (int64_t)TICK_MS)) < 0 && errno != EINTR)
            return; /* the caller's waitid then waits for the child */
        const int signal = fds[1].revents ? read_signal(child, pid, signals) : 0;
        if (signal != 0) {
            end->signal = signal;
            kill(-pid, signal);
            signalled_ns = ddp_now_ns();
        }
        if (fds[0].revents)
            return;
        if (child->on_wait)
            child->on_wait(child->arg);
    }
}

static void read_last_messages(int fd, struct ddp_child_end *end)
{
    char raw[sizeof end->last_messages];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof raw - 1 ? size - (off_t)sizeof raw + 1 : 0;
    ssize_t n = pread(fd, raw, sizeof raw - 1, from);
    n = n < 0 ? 0 : n;
    while (n > 0 && strchr(" \n", raw[n - 1]))
        n--;
    raw[n] = '\0';
    if (from > 0) { /* the beginning was cut off: start at the next line, or with "..." */
        char *line = strchr(raw, '\n');
        if (line)
            memmove(raw, line + 1, strlen(line));
        else if (n > 3)
            memcpy(raw, "...", 3);
    }
    for (char *c = raw; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    ddp_printable(raw, end->last_messages, sizeof end->last_messages);
}

int ddp_child_run(const struct ddp_child *child, struct ddp_child_end *end, struct ddp_err *err)
{
    sigset_t watched, before;
    siginfo_t info = {0};
    pid_t pid = 0;
    int rc = 0, pidfd = -1;
    *end = (struct ddp_child_end){.status = -1};
    ddp_signal_set_termination(&watched);
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &watched, &before);
    int signals = signalfd(-1, &watched, SFD_CLOEXEC);
    int errors = memfd_create("ddpbench-stderr", MFD_CLOEXEC);
    if (signals < 0 || errors < 0) {
        rc = ddp_fail_errno(err, DDP_EIO, errno, "cannot watch '%s'", child->argv[0]);
        goto out;
    }
    int64_t begun = ddp_now_ns();
    DDP_TRY_GOTO(start(child, errors, &before, &pid, err), out);
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0)
        watch(child, pid, pidfd, signals, end);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 && errno == EINTR)
        continue;
    end->took_ns = ddp_now_ns() - begun;
    end->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    read_last_messages(errors, end);
out:
    if (pidfd >= 0)
        close(pidfd);
    if (errors >= 0)
        close(errors);
    if (signals >= 0)
        close(signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int ddp_child_signal(const struct ddp_child_end *end, struct ddp_err *err)
{
    err->interrupted = true;
    if (end->signal == SIGINT)
        return ddp_fail(err, -(128 + SIGINT), "interrupted");
    return ddp_fail(err, -(128 + end->signal), "ended by signal %d (%s)", end->signal,
                    sigdescr_np(end->signal));
}

/* Copies the argument at *at to *to without its quotes. Advances *at and *to past the argument. */
static int one_word(const char **at, char **to, const char *whole, struct ddp_err *err)
{
    const char *in = *at;
    char *out = *to;
    char quote = 0;
    for (; *in && (quote || !strchr(" \t\n", *in)); in++) {
        if (!quote && (*in == '\'' || *in == '"')) {
            quote = *in;
        } else if (quote && *in == quote) {
            quote = 0;
        } else if (*in == '\\' && quote != '\'' && in[1]) {
            *out++ = *++in;
        } else if (!quote && strchr("|&;<>$`", *in)) {
            ddp_fail(err, DDP_EUSAGE,
                     "'%c' in '%s' must be quoted, because the command runs without a shell", *in,
                     whole);
            return ddp_hint(err, "quote it, or put the command into a script");
        } else {
            *out++ = *in;
        }
    }
    if (quote)
        return ddp_fail(err, DDP_EUSAGE, "a %c is not closed in '%s'", quote, whole);
    *out++ = '\0';
    *at = in;
    *to = out;
    return 0;
}

int ddp_argv_split(const char *text, struct ddp_argv *out, struct ddp_err *err)
{
    struct ddp_argv w = {.word = ddp_calloc(DDP_ARGV_MAX + 1, sizeof *w.word),
                         .text = malloc(strlen(text) + 2)};
    char *to = w.text;
    int rc;
    if (!w.word || !w.text) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to split a command");
        goto err_words;
    }
    for (const char *at = text;;) {
        at += strspn(at, " \t");
        if (*at == '\0')
            break;
        if (*at == '\n' || w.count == DDP_ARGV_MAX) {
            rc = ddp_fail(err, DDP_EUSAGE, "%s in a command",
                          *at == '\n' ? "a newline" : "too many arguments");
            goto err_words;
        }
        w.word[w.count++] = to;
        DDP_TRY_GOTO(one_word(&at, &to, text, err), err_words);
    }
    if (w.count == 0) {
        rc = ddp_fail(err, DDP_EUSAGE, "the command '%s' is empty", text);
        goto err_words;
    }
    *out = w;
    return 0;

err_words:
    ddp_argv_release(&w);
    return rc;
}

void ddp_argv_release(struct ddp_argv *words)
{
    free(words->word);
    free(words->text);
    *words = (struct ddp_argv){.count = 0};
}
