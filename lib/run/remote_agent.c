/* The agent of --hosts: starts and ends the ranks of one host (remote.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/conf.h"
#include "launch/launch_program.h"
#include "launch/signal_thread.h"
#include "run/remote.h"

/* Number of environment variables that the agent sets for each rank. */
#define RANK_VARIABLES 4

struct agent {
    struct ddp_app *app;
    int first, count, size; /* ranks [first, first + count) of `size` */
    char *text;             /* strings that the head has sent; the arrays below point into it */
    const char *folder;
    const char **env; /* NULL-terminated; its last entries are those of the rank */
    int env_count;
    char **argv; /* NULL-terminated */
    pid_t *pid;  /* [count]; 0: has ended */
    int alive;
    sigset_t mask; /* signal mask of the ranks */
    struct ddp_remote_end end;
    bool ends; /* the agent has sent a signal to the ranks */
    int code;
};

static int cannot_read(struct ddp_err *err)
{
    ddp_fail(err, DDP_EUSAGE, "%s: stdin does not hold a job of --hosts", DDP_REMOTE_AGENT);
    return ddp_hint(err, "ddpbench starts this command itself; use ddpbench ... --hosts");
}

static bool read_all(int fd, char *out, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        const ssize_t n = read(fd, out + got, bytes - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Reads the first line of the job, without its newline. */
static bool read_line(int fd, char *out, size_t out_bytes)
{
    for (size_t n = 0; n + 1 < out_bytes; n++) {
        if (!read_all(fd, out + n, 1))
            return false;
        if (out[n] == '\n') {
            out[n] = '\0';
            return true;
        }
    }
    return false;
}

/* Reads the job from stdin: a line of numbers, then strings that end in '\0'. */
static int read_job(struct agent *a, struct ddp_err *err)
{
    char line[128];
    int args, envs, n = 0;
    unsigned bytes;
    if (!read_line(STDIN_FILENO, line, sizeof line) ||
        sscanf(line, DDP_REMOTE_FORMAT "%n", &a->first, &a->count, &a->size, &envs, &args, &bytes,
               &n) != 6 ||
        line[n] != '\0' || a->count < 1 || a->count > DDP_REMOTE_HOST_RANKS_MAX || a->first < 0 ||
        a->size > DDP_REMOTE_RANKS_MAX || a->first + a->count > a->size || args < 1 || envs < 0 ||
        bytes > DDP_REMOTE_JOB_MAX || (unsigned)args + (unsigned)envs >= bytes)
        return cannot_read(err);
    DDP_TRY(DDP_NEW(&a->text, (size_t)bytes + 1, err));
    DDP_TRY(DDP_NEW(&a->env, (size_t)envs + RANK_VARIABLES + 1, err));
    DDP_TRY(DDP_NEW(&a->argv, (size_t)args + 1, err));
    DDP_TRY(DDP_NEW(&a->pid, (size_t)a->count, err));
    if (!read_all(STDIN_FILENO, a->text, bytes))
        return cannot_read(err);
    char *at = a->text, *const end = a->text + bytes;
    for (int i = 0; i < 1 + envs + args; i++) {
        if (at >= end)
            return cannot_read(err);
        if (i == 0)
            a->folder = at;
        else if (i <= envs)
            a->env[i - 1] = at;
        else
            a->argv[i - 1 - envs] = at;
        at += strlen(at) + 1;
    }
    a->env_count = envs;
    return 0;
}

static int start_rank(struct agent *a, int i, struct ddp_err *err)
{
    char own[RANK_VARIABLES][32];
    snprintf(own[0], sizeof own[0], "RANK=%d", a->first + i);
    snprintf(own[1], sizeof own[1], "WORLD_SIZE=%d", a->size);
    snprintf(own[2], sizeof own[2], "LOCAL_RANK=%d", i);
    snprintf(own[3], sizeof own[3], "LOCAL_WORLD_SIZE=%d", a->count);
    for (int v = 0; v < RANK_VARIABLES; v++)
        a->env[a->env_count + v] = own[v];
    char **env = ddp_conf_environment(a->env);
    if (env == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for an environment");
    const struct ddp_launch_program program = {
        .argv = a->argv, .env = env, .mask = &a->mask, .keep_stdout = true, .errors = -1};
    const int rc = ddp_launch_program(&program, &a->pid[i], err);
    free(env);
    a->alive += rc == 0;
    return rc;
}

static void send_signal(struct agent *a, int signal)
{
    a->ends = true;
    for (int i = 0; i < a->count; i++)
        if (a->pid[i] > 0)
            (void)kill(-a->pid[i], signal);
}

/* Handles the end of a rank. */
static void end_rank(struct agent *a, int i, int status)
{
    char host[256] = "";
    a->pid[i] = 0;
    a->alive--;
    if (WIFEXITED(status)) {
        ddp_remote_add_code(&a->code, -WEXITSTATUS(status));
    } else if (a->ends) {
        ddp_remote_add_code(&a->code, -(128 + WTERMSIG(status)));
    } else {
        (void)gethostname(host, sizeof host - 1);
        ddp_logf(&a->app->log, DDP_LOG_ERROR, "rank %d on %s was killed by signal %d (%s)",
                 a->first + i, host, WTERMSIG(status), strsignal(WTERMSIG(status)));
        ddp_remote_add_code(&a->code, DDP_ELOST);
    }
    if (status != 0)
        ddp_remote_plan(&a->end, SIGTERM, DDP_REMOTE_GRACE_NS);
}

static void reap(struct agent *a)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (int i = 0; i < a->count; i++)
            if (a->pid[i] == pid)
                end_rank(a, i, status);
    }
}

/* Passes a signal on to the ranks. */
static void pass_on(struct agent *a, int signal)
{
    send_signal(a, signal);
    a->end = (struct ddp_remote_end){0};
    ddp_remote_plan(&a->end, SIGKILL, DDP_REMOTE_GRACE_NS);
}

/* Reads the signals that the head has sent. Returns false at the end of stdin, which means that the
 * head or the connection to it has ended. In this case the ranks get SIGTERM. */
static bool read_head(struct agent *a)
{
    unsigned char signals[16];
    const ssize_t n = read(STDIN_FILENO, signals, sizeof signals);
    for (ssize_t i = 0; i < n; i++)
        if (signals[i] == SIGINT || signals[i] == SIGTERM || signals[i] == SIGHUP)
            pass_on(a, signals[i]);
    if (n != 0)
        return true;
    pass_on(a, SIGTERM);
    return false;
}

/* Waits until all ranks have ended. */
static void wait_ranks(struct agent *a, int signals)
{
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    struct signalfd_siginfo info;
    for (reap(a); a->alive > 0; reap(a)) {
        const int due = ddp_remote_due(&a->end);
        if (due != 0)
            send_signal(a, due);
        if (poll(fds, 2, ddp_remote_poll_ms(&a->end)) <= 0)
            continue;
        if (fds[0].revents != 0 && read(signals, &info, sizeof info) == (ssize_t)sizeof info &&
            info.ssi_signo != SIGCHLD)
            pass_on(a, (int)info.ssi_signo);
        if (fds[1].revents != 0 && !read_head(a))
            fds[1].fd = -1;
    }
}

static int run(struct agent *a, struct ddp_err *err)
{
    sigset_t watched;
    int rc = read_job(a, err);
    if (rc != 0)
        return rc;
    if (chdir(a->folder) != 0)
        ddp_logf(&a->app->log, DDP_LOG_WARN, "cannot enter the folder '%s' on this host: %s",
                 a->folder, strerror(errno));
    ddp_signal_set_termination(&watched);
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &watched, &a->mask);
    const int signals = signalfd(-1, &watched, SFD_CLOEXEC);
    if (signals < 0)
        return ddp_fail_errno(err, DDP_EIO, errno, "cannot watch the ranks");
    for (int i = 0; i < a->count && rc == 0; i++)
        rc = start_rank(a, i, err);
    if (rc != 0)
        pass_on(a, SIGTERM);
    wait_ranks(a, signals);
    close(signals);
    return rc != 0 ? rc : a->code;
}

int ddp_remote_agent(struct ddp_app *app, struct ddp_err *err)
{
    struct agent a = {.app = app};
    const int rc = run(&a, err);
    free(a.text);
    free(a.env);
    free(a.argv);
    free(a.pid);
    return rc;
}
