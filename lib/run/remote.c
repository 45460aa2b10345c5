/* The head of --hosts: starts an agent on each host, and ends all of them (remote.h). */
#include "run/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"
#include "launch/launch_program.h"
#include "launch/signal_thread.h"
#include "launch/tcp.h"
#include "record/provenance.h"
#include "run/child.h"

#define SSH_FAILED 255 /* the exit code of ssh if it cannot connect or loses the connection */
/* If a host cannot be reached, the ranks of the other hosts have this time to end by themselves. */
#define ALONE_NS   INT64_C(1000000000)
#define NO_PROGRAM 127 /* the exit code of a shell that does not find a program */
#define CANNOT_RUN 126 /* a shell exits with this code if it finds a program but cannot run it */

struct head {
    struct ddp_app *app;
    struct ddp_remote_hosts hosts;
    pid_t *pid; /* [hosts.count] of ssh or of the agent; 0: has ended */
    int *input; /* [hosts.count] the agent's stdin; -1: closed */
    int alive;
    sigset_t mask;              /* signal mask of ssh and of the agents */
    char binary[PATH_MAX];      /* this binary */
    char own_name[256];         /* the name of this host */
    char master[300], port[32]; /* MASTER_ADDR and MASTER_PORT of the ranks, as NAME=value */
    char secret[2 * 16 + 32], job[2 * 8 + 32]; /* DDPBENCH_SECRET and DDPBENCH_JOB */
    struct ddp_remote_end end;
    int signal;  /* the signal that this process received; 0: none */
    int code;    /* the code of the job (ddp_remote_add_code); 0: none */
    int verdict; /* of a host that succeeded: DDP_EREGRESSION or DDP_EINCONCLUSIVE; 0: none */
};

/* Writes NAME=value, where the value has `bytes` random bytes in hexadecimal digits. */
static bool set_random(char *out, size_t out_bytes, const char *name, size_t bytes)
{
    unsigned char random[16];
    size_t n = (size_t)snprintf(out, out_bytes, "%s=", name);
    if (!ddp_random_bytes(random, bytes))
        return false;
    for (size_t i = 0; i < bytes; i++)
        n += (size_t)snprintf(out + n, out_bytes - n, "%02x", random[i]);
    return true;
}

/* Chooses the address and port at which the ranks meet, the secret and the id of the job. The port
 * is below the range from which Linux takes the ports of outgoing connections. It is random, so
 * that two jobs seldom use the same port. */
static int choose_rendezvous(struct head *h, struct ddp_err *err)
{
    const char *first = h->hosts.host[0].name, *user = strrchr(first, '@');
    uint16_t random = 0;
    if (!set_random(h->secret, sizeof h->secret, "DDPBENCH_SECRET", 16) ||
        !set_random(h->job, sizeof h->job, "DDPBENCH_JOB", 8) ||
        !ddp_random_bytes(&random, sizeof random))
        return ddp_fail_errno(err, DDP_EUNAVAIL, errno, "the kernel provides no random bytes");
    snprintf(h->master, sizeof h->master, "MASTER_ADDR=%s", user != NULL ? user + 1 : first);
    snprintf(h->port, sizeof h->port, "MASTER_PORT=%d", 20000 + random % 1000 * 10);
    return 0;
}

/* Returns whether the ranks get this variable of the head. They get LD_LIBRARY_PATH and the
 * variables that may be recorded in documents, but no variable of a launcher. */
static bool is_forwarded(const char *entry)
{
    char name[128];
    const size_t n = strcspn(entry, "=");
    if (n >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)n, entry);
    for (const char *const *v = ddp_launcher_variables(); *v != NULL; v++)
        if (strcmp(*v, name) == 0)
            return false;
    return strncmp(name, "SLURM_", 6) != 0 &&
           (ddp_provenance_env_allowed(name) || strcmp(name, "LD_LIBRARY_PATH") == 0);
}

static void add_string(struct ddp_strbuf *sb, const char *text)
{
    ddp_strbuf_add_n(sb, text, strlen(text));
    ddp_strbuf_add_n(sb, "", 1);
}

/* Writes the strings of the job to `sb`. Sets *envs to the number of environment entries. */
static void describe(const struct head *h, struct ddp_strbuf *sb, int *envs)
{
    char folder[PATH_MAX];
    const char *entry, *const own[] = {h->master, h->port, h->secret, h->job};
    add_string(sb, getcwd(folder, sizeof folder) != NULL ? folder : "/");
    *envs = 0;
    for (size_t i = 0; (entry = ddp_sysinfo_environment(i)) != NULL; i++) {
        if (is_forwarded(entry)) {
            add_string(sb, entry);
            ++*envs;
        }
    }
    for (size_t i = 0; i < DDP_COUNT_OF(own); i++, ++*envs)
        add_string(sb, own[i]);
    add_string(sb, h->binary);
    for (int i = 1; i < h->app->argc; i++)
        add_string(sb, h->app->argv[i]);
}

/* Writes the job of host `i` to its agent's stdin. */
static int send_job(const struct head *h, int i, int first, const struct ddp_strbuf *strings,
                    int envs, struct ddp_err *err)
{
    char line[128];
    const int n = snprintf(line, sizeof line, DDP_REMOTE_FORMAT "\n", first, h->hosts.host[i].ranks,
                           h->hosts.ranks, envs, h->app->argc, (unsigned)strings->length);
    int error = ddp_write_all(h->input[i], line, (size_t)n);
    if (error == 0)
        error = ddp_write_all(h->input[i], strings->text, strings->length);
    /* EPIPE means that the agent has ended already. This is no error here, because its exit code
     * says why. */
    return error == 0 || error == EPIPE
               ? 0
               : ddp_fail_errno(err, DDP_EIO, error, "cannot write to '%s'", h->hosts.host[i].name);
}

/* Starts the agent of host `i`. The remote shell gets one command line, so the path is quoted. ssh
 * ends 4 to 6 s after its host has stopped answering. */
static int start_agent(struct head *h, int i, struct ddp_err *err)
{
    char command[PATH_MAX + 64];
    const char *name = h->hosts.host[i].name;
    const char *ssh[] = {"ssh",   "-T",
                         "-o",    "BatchMode=yes",
                         "-o",    "ServerAliveInterval=2",
                         "-o",    "ServerAliveCountMax=2",
                         "-o",    "ConnectTimeout=10",
                         "--",    name,
                         command, NULL};
    const char *own[] = {h->binary, DDP_REMOTE_AGENT, NULL};
    const bool local = ddp_tcp_is_loopback(name) || strcmp(name, h->own_name) == 0;
    int ends[2];
    if (strchr(h->binary, '\'') != NULL)
        return ddp_fail(err, DDP_EUSAGE, "--hosts: the path '%s' contains a quote", h->binary);
    snprintf(command, sizeof command, "exec '%s' %s", h->binary, DDP_REMOTE_AGENT);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return ddp_fail_errno(err, DDP_EIO, errno, "cannot make a pipe");
    char **environment = ddp_conf_environment(NULL);
    const struct ddp_launch_program program = {.argv = (char *const *)(local ? own : ssh),
                                               .env = environment,
                                               .mask = &h->mask,
                                               .input = ends[0],
                                               .keep_stdout = true,
                                               .errors = -1};
    const int rc = environment == NULL ? ddp_fail(err, DDP_ENOMEM, "no memory for an environment")
                                       : ddp_launch_program(&program, &h->pid[i], err);
    free(environment);
    close(ends[0]);
    h->input[i] = ends[1];
    h->alive += rc == 0;
    return rc;
}

static int start_all(struct head *h, struct ddp_err *err)
{
    struct ddp_strbuf strings = DDP_STRBUF_INIT;
    int envs, first = 0, rc = 0;
    describe(h, &strings, &envs);
    if (strings.failed)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for the job");
    else if (strings.length > DDP_REMOTE_JOB_MAX)
        rc = ddp_fail(err, DDP_EUSAGE,
                      "--hosts: the command line and the variables for the ranks have %zu bytes; "
                      "the limit is %d",
                      strings.length, DDP_REMOTE_JOB_MAX);
    for (int i = 0; i < h->hosts.count && rc == 0; i++) {
        rc = start_agent(h, i, err);
        if (rc == 0)
            rc = send_job(h, i, first, &strings, envs, err);
        first += h->hosts.host[i].ranks;
    }
    ddp_strbuf_release(&strings);
    return rc;
}

/* Sends a signal to all agents. For SIGKILL it closes the stdins of the agents instead, so that the
 * agents end their ranks and then themselves. */
static void send_signal(struct head *h, int signal)
{
    const unsigned char byte = (unsigned char)signal;
    for (int i = 0; i < h->hosts.count; i++) {
        if (h->input[i] < 0)
            continue;
        if (signal != SIGKILL) {
            (void)!write(h->input[i], &byte, 1);
            continue;
        }
        close(h->input[i]);
        h->input[i] = -1;
    }
}

/* Handles the end of host `i`. If this is the first failure, fills *err. */
static void end_host(struct head *h, int i, int status, struct ddp_err *err)
{
    const char *name = h->hosts.host[i].name;
    const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : SSH_FAILED;
    /* No agent of the host is left, or none has started. */
    const bool alone =
        exit_code == SSH_FAILED || exit_code == NO_PROGRAM || exit_code == CANNOT_RUN;
    h->pid[i] = 0;
    h->alive--;
    if (h->input[i] >= 0)
        close(h->input[i]);
    h->input[i] = -1;
    if (exit_code == 0)
        return;
    if (exit_code == -DDP_EREGRESSION || exit_code == -DDP_EINCONCLUSIVE) {
        /* The command has succeeded, and has printed its verdict. */
        ddp_remote_add_code(&h->verdict, -exit_code);
        return;
    }
    if (exit_code == SSH_FAILED) {
        /* If ranks of other hosts have already failed, the host was lost during the run. The code
         * then stays that of the ranks. */
        if (h->code == 0)
            ddp_remote_add_code(&h->code, DDP_EUNAVAIL);
        ddp_fail(err, DDP_EUNAVAIL, "ssh to host '%s' failed; its message is above", name);
        ddp_hint(err, "does `ssh -o BatchMode=yes %s true` work?", name);
    } else if (alone) {
        ddp_remote_add_code(&h->code, DDP_EUNAVAIL);
        ddp_fail(err, DDP_EUNAVAIL, "host '%s' cannot run '%s'", name, h->binary);
        ddp_hint(err, "ddpbench must have the same path on all hosts");
    } else {
        ddp_remote_add_code(&h->code, -exit_code);
        ddp_fail(err, -exit_code, "the ranks on host '%s' ended with exit code %d", name,
                 exit_code);
    }
    /* Without an agent, no rank of that host can report anything, so the other ranks get less
     * time. */
    ddp_remote_plan(&h->end, SIGTERM, alone ? ALONE_NS : DDP_REMOTE_GRACE_NS);
}

static void reap(struct head *h, struct ddp_err *err)
{
    for (int i = 0; i < h->hosts.count; i++) {
        int status;
        if (h->pid[i] > 0 && waitpid(h->pid[i], &status, WNOHANG) == h->pid[i])
            end_host(h, i, status, err);
    }
}

/* Waits until all agents have ended. Sends them the signals that this process receives, and the
 * signals that are due. */
static void wait_all(struct head *h, int signals, struct ddp_err *err)
{
    struct pollfd p = {.fd = signals, .events = POLLIN};
    struct signalfd_siginfo info;
    bool closed = false;
    for (reap(h, err); h->alive > 0; reap(h, err)) {
        const int due = ddp_remote_due(&h->end);
        if (due == SIGKILL && closed) { /* the agents have had time to end their ranks */
            for (int i = 0; i < h->hosts.count; i++)
                if (h->pid[i] > 0)
                    (void)kill(-h->pid[i], SIGKILL);
        } else if (due != 0) {
            send_signal(h, due);
            closed = due == SIGKILL;
        }
        if (poll(&p, 1, ddp_remote_poll_ms(&h->end)) <= 0 ||
            read(signals, &info, sizeof info) != (ssize_t)sizeof info || info.ssi_signo == SIGCHLD)
            continue;
        if (h->signal == 0)
            h->signal = (int)info.ssi_signo;
        send_signal(h, (int)info.ssi_signo);
        h->end = (struct ddp_remote_end){0};
        ddp_remote_plan(&h->end, SIGKILL, 2 * DDP_REMOTE_GRACE_NS);
    }
}

static int run(struct head *h, struct ddp_err *err)
{
    sigset_t watched;
    struct ddp_err first = DDP_ERR_INIT;
    if (!ddp_own_path(h->binary, sizeof h->binary))
        return ddp_fail(err, DDP_EUNAVAIL, "--hosts: cannot find the file of this program");
    (void)gethostname(h->own_name, sizeof h->own_name - 1);
    DDP_TRY(choose_rendezvous(h, err));
    DDP_TRY(DDP_NEW(&h->pid, (size_t)h->hosts.count, err));
    DDP_TRY(DDP_NEW(&h->input, (size_t)h->hosts.count, err));
    memset(h->input, -1, (size_t)h->hosts.count * sizeof *h->input);
    ddp_signal_set_termination(&watched);
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &watched, &h->mask);
    const int signals = signalfd(-1, &watched, SFD_CLOEXEC);
    if (signals < 0)
        return ddp_fail_errno(err, DDP_EIO, errno, "cannot watch the hosts");
    const int rc = start_all(h, err);
    if (rc != 0) {
        send_signal(h, SIGKILL);
        ddp_remote_plan(&h->end, SIGKILL, DDP_REMOTE_GRACE_NS);
    }
    wait_all(h, signals, &first);
    close(signals);
    sigprocmask(SIG_SETMASK, &h->mask, NULL);
    if (rc != 0)
        return rc;
    if (h->signal != 0)
        return ddp_child_signal(&(struct ddp_child_end){.signal = h->signal}, err);
    if (first.code == 0) /* no host failed */
        return h->verdict;
    if (h->code != 0 && first.code != h->code)
        ddp_fail(err, h->code, "%s; another host ended with exit code %d", first.text,
                 ddp_exit_code(h->code));
    else if (h->code != 0)
        ddp_fail_copy(err, &first);
    return h->code;
}

int ddp_remote_run(struct ddp_app *app, const char *hosts, const char *hostfile, bool *done,
                   struct ddp_err *err)
{
    struct head h = {.app = app};
    *done = false;
    if ((hosts == NULL && hostfile == NULL) || app->launcher.kind == DDP_LAUNCHER_HOSTS)
        return 0;
    *done = true;
    if (hosts != NULL && hostfile != NULL)
        return ddp_fail(err, DDP_EUSAGE, "give --hosts or --hostfile, not both");
    if (app->launcher.kind != DDP_LAUNCHER_NONE)
        return ddp_fail(err, DDP_EUSAGE, "%s: %s has already started the ranks",
                        hosts != NULL ? "--hosts" : "--hostfile", app->launcher.name);
    DDP_TRY(ddp_remote_parse(hosts != NULL ? hosts : hostfile, hosts == NULL, &h.hosts, err));
    const int rc = run(&h, err);
    for (int i = 0; h.input != NULL && i < h.hosts.count; i++)
        if (h.input[i] >= 0)
            close(h.input[i]);
    free(h.pid);
    free(h.input);
    free(h.hosts.host);
    return rc;
}
