/* Connects the ranks of a job for `mpiexec ddpbench doctor`.
 *
 * MPI may abort or hang on the machines for which doctor is meant. Each rank therefore uses a child
 * process to connect to the other ranks. If the child does not succeed in time, the rank itself can
 * still print its findings. */
#include "run/doctor_child.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "run/rank_error.h"
#include "run/world.h"

/* The time limits in us. The ranks of a host vote within VOTE_US (ddp_rank_error_vote). The child
 * must connect within CONNECT_US plus RANK_US per rank of the job. When it has connected, it gets
 * REPORT_US more to print, and then REPORT_US more to end. POLL_US is the interval at which the
 * rank checks whether the child has ended. */
#define VOTE_US    2500000
#define CONNECT_US 3500000
#define RANK_US    20000
#define REPORT_US  2000000
#define POLL_US    10000

static int64_t connect_us(const struct ddp_app *app)
{
    return CONNECT_US + (int64_t)app->launcher.rank_info.size * RANK_US;
}

int64_t ddp_doctor_linger_us(const struct ddp_app *app)
{
    return VOTE_US + connect_us(app) + REPORT_US / 2;
}

/* Bytes that the child sends to the rank. */
#define CONNECTED 'c'
#define PRINTED   'p'

static int tell(int fd, char byte, struct ddp_err *err)
{
    return write(fd, &byte, 1) == 1 ? 0 : ddp_fail(err, DDP_ELOST, "the rank has ended");
}

/* Runs in the child process. Sends CONNECTED to `done`, and PRINTED when rank 0 has printed the
 * findings. The deadline of the connection is longer than the time for which the rank waits for the
 * child. A launcher may end the job when a child ends, so the child must not end before the rank
 * stops waiting. */
static int join(const struct ddp_app *app, const struct ddp_sysinfo *info, const char *mine,
                bool json, int done)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_comm *comm = NULL;
    int rc = ddp_world_join(app, 4 * ddp_doctor_linger_us(app) * 1000, &comm, &err);
    if (rc == 0)
        rc = tell(done, CONNECTED, &err);
    if (rc == 0)
        rc = ddp_comm_agree(comm, ddp_doctor_report(comm, app, info, mine, json, &err), &err);
    if (rc == 0)
        rc = tell(done, PRINTED, &err);
    if (rc == 0)
        ddp_comm_destroy(comm);
    return rc;
}

static volatile sig_atomic_t ended; /* A launcher has sent a signal that ends the job. */

static void on_end(int signal)
{
    (void)signal;
    ended = 1;
}

/* Waits for the bytes of the child, and then for its end, which closes the pipe. Stops waiting if
 * the child takes too long, or if the launcher ends the job. Returns true if rank 0 has printed. */
static bool wait_for_child(const struct ddp_app *app, int fd)
{
    int64_t until = ddp_now_ns() / 1000 + connect_us(app);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char byte = '\0';
    for (;;) {
        const int64_t left_us = until - ddp_now_ns() / 1000;
        if (left_us <= 0 || ended)
            break;
        if (poll(&wait, 1, (int)(left_us / 1000) + 1) <= 0)
            continue;
        if (read(fd, &byte, 1) != 1)
            break; /* the child has ended */
        until += REPORT_US;
    }
    return byte == PRINTED;
}

/* Returns the findings as the text of a JSON array, or NULL if there is no memory. The caller frees
 * the text. */
static char *findings_text(const struct ddp_finding *findings, int count)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++)
        ddp_doctor_add(list, &findings[i]);
    char *text = cJSON_PrintUnformatted(list);
    cJSON_Delete(list);
    return text;
}

/* Returns true if mpiexec or srun has started this rank, the build has backend mpi, and no finding
 * about a backend is a FAIL. */
static bool can_connect(const struct ddp_app *app, const struct ddp_finding *findings, int count)
{
    if (app->launcher.kind == DDP_LAUNCHER_NONE || app->launcher.over_tcp ||
        !ddp_backend_find("mpi"))
        return false;
    for (int i = 0; i < count; i++)
        if (findings[i].verdict == DDP_DOCTOR_FAIL &&
            strncmp(findings[i].subject, "backend ", 8) == 0)
            return false;
    return true;
}

bool ddp_doctor_job(const struct ddp_app *app, const struct ddp_sysinfo *info,
                    const struct ddp_finding *findings, int count, bool json, pid_t *child)
{
    const struct sigaction action = {.sa_handler = on_end};
    struct sigaction before;
    int fds[2];
    *child = -1;
    if (!ddp_rank_error_vote(app, can_connect(app, findings, count), VOTE_US) || pipe(fds) != 0)
        return false;
    char *mine = findings_text(findings, count);
    fflush(NULL);
    sigaction(SIGTERM, &action, &before);
    *child = mine ? fork() : -1;
    if (*child == 0) {
        sigaction(SIGTERM, &before, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        exit(join(app, info, mine, json, fds[1]) == 0 ? 0 : 1);
    }
    close(fds[1]);
    const bool done = *child > 0 && wait_for_child(app, fds[0]);
    sigaction(SIGTERM, &before, NULL);
    close(fds[0]);
    free(mine);
    return done;
}

void ddp_doctor_end_child(const struct ddp_app *app, pid_t child, bool done)
{
    const bool hydra = app->launcher.kind == DDP_LAUNCHER_HYDRA;
    const int64_t limit_us = done ? REPORT_US : hydra ? 0 : ddp_doctor_linger_us(app);
    const int64_t until = ddp_now_ns() / 1000 + limit_us;
    if (child <= 0)
        return;
    while (waitpid(child, NULL, WNOHANG) == 0) {
        if (ddp_now_ns() / 1000 >= until) {
            kill(child, SIGKILL);
            (void)waitpid(child, NULL, 0);
            ddp_launcher_finalize_pmi(&app->launcher);
            break;
        }
        usleep(POLL_US);
    }
}
