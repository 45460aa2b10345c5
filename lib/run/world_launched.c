/* Runs a command with ranks that an outside launcher such as mpiexec started. Every process is a
 * rank, and rank 0 is the collector. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "comm/comm_network.h"
#include "comm/handshake.h"
#include "comm/hosts.h"
#include "comm/waiter.h"
#include "device/cuda/nvml.h"
#include "launch/launch.h"
#include "launch/signal_thread.h"
#include "launch/watchdog.h"
#include "record/provenance.h"
#include "run/rank_error.h"
#include "run/silent_hosts.h"
#include "run/sweep.h"
#include "run/world.h"

#define CLOSE_TIMEOUT_NS 500000000 /* < 1 s: Open MPI sends SIGKILL 1 s after its first signal */
/* The time that mpiexec has to end by itself after rank 0 has ended. */
#define MPIEXEC_GRACE_NS 2000000000
#define LAST_MESSAGES_NS 100000000 /* time for the last messages to reach mpiexec */

/* Writes the last documents, possibly from a thread other than the main thread. Keeps the lock,
 * because the process ends afterwards. If the main thread is blocked in a write, this function
 * gives up after CLOSE_TIMEOUT_NS, and the documents on disk stay as they are. */
static void close_from_other_thread(struct ddp_world *w, int code, const char *why,
                                    struct ddp_err *err)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += CLOSE_TIMEOUT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_mutex_timedlock(&w->lock, &until) == 0 && w->reports)
        ddp_collector_close(w, code, why, err);
}

/* Called when a deadline expires, by the main thread if it is in a wait of ddpbench, else by the
 * watchdog. The watchdog is needed because blocking calls of a library do not check the deadline.
 * Reports the operation that hangs, and saves the finished points. The process ends afterwards. */
static void on_expire(void *arg, const char *report_text)
{
    struct ddp_world *w = arg;
    struct ddp_err err = DDP_ERR_INIT;
    char waits[400] = "", whole[1024], who[256];
    char silent[400] = "";
    bool was_reported = w->comm && ddp_wait_report(w->comm, -1, waits, sizeof waits);
    /* Both the main thread and the watchdog may call this function, so only the first call
     * reports. */
    const bool first = !atomic_exchange(&w->expired, true);
    const bool is_silent = first && ddp_host_watch_report(w->host_watch, silent, sizeof silent);
    snprintf(whole, sizeof whole, "%s%s%s%s%s", silent, is_silent ? "; " : "", report_text,
             was_reported ? "; " : "", waits);
    if (first) {
        ddp_rank_error_origin(w->app, who, sizeof who);
        ddp_logf(&w->app->log, DDP_LOG_ERROR, "%s: %s", who, whole);
    }
    /* The deadlines of all ranks expire at about the same time, and mpiexec ends the job when the
     * first rank ends. The other ranks therefore give rank 0 time to write its documents. */
    if (!first || w->app->launcher.rank_info.rank > 0)
        ddp_sleep_ns(DDP_HOST_WATCH_NS + 2 * CLOSE_TIMEOUT_NS);
    w->no_fsync = true;
    close_from_other_thread(w, DDP_ELOST, whole, &err);
    if (is_silent && w->app->launcher.rank_info.rank == 0 &&
        (w->app->launcher.kind == DDP_LAUNCHER_OPENMPI ||
         w->app->launcher.kind == DDP_LAUNCHER_HYDRA))
        ddp_launch_end_mpiexec(MPIEXEC_GRACE_NS);
}

/* Writes the last documents when the launcher ends the job. The documents give the signal as the
 * reason. */
static void on_signal(void *arg, int signal)
{
    struct ddp_world *w = arg;
    struct ddp_err err = DDP_ERR_INIT;
    char why[64];
    snprintf(why, sizeof why, "ended by %s", strsignal(signal));
    w->no_fsync = true;
    close_from_other_thread(w, -(128 + signal), why, &err);
    if (err.code != 0)
        ddp_log_err(&w->app->log, &err);
}

/* Sets w->host_of to the host of each rank. all [size]: the facts about each rank's host. */
static int find_hosts(struct ddp_world *w, const struct ddp_comm *comm, const struct ddp_host *all,
                      struct ddp_err *err)
{
    DDP_TRY(DDP_NEW(&w->host_of, (size_t)comm->size, err));
    for (int r = 0; r < comm->size; r++) {
        int first = 0;
        while (strcmp(all[first].name, all[r].name) != 0)
            first++;
        w->host_of[r] = comm->hosts ? (uint64_t)comm->hosts->of[r] : (uint64_t)first;
    }
    return 0;
}

/* Fills the hosts of the record. Every rank sends the facts about its host. Rank 0 merges the facts
 * from ranks on the same host. */
static int gather_hosts(struct ddp_world *w, struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_host mine, *all;
    struct ddp_host_watch *watch = NULL;
    DDP_TRY(ddp_comm_find_nic(comm, err));
    DDP_TRY(DDP_NEW(&all, (size_t)comm->size, err));
    ddp_provenance_host(1, comm->nic.name, &mine);
    /* NVML takes long to start, so only one rank per host reads the facts. A failure is not an
     * error, because the run does not need these facts. */
    if (comm->rank_info.local_rank != 0 ||
        ddp_nvml_read(mine.gpus, DDP_GPU_FACTS_MAX, &mine.gpu_count, NULL) != 0)
        mine.gpu_count = 0;
    int rc = ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err);
    if (rc == 0)
        rc = find_hosts(w, comm, all, err);
    if (rc == 0)
        rc = ddp_host_watch_open(comm, all, &watch, err);
    w->host_watch = watch;
    w->record.host_count = 0;
    for (int r = 0; r < comm->size && rc == 0 && comm->rank == 0; r++) {
        int h = 0;
        while (h < w->record.host_count && strcmp(w->record.hosts[h].name, all[r].name) != 0)
            h++;
        if (h == w->record.host_count) {
            rc = ddp_record_add_host(&w->record, &all[r], err);
            continue;
        }
        struct ddp_host *host = &w->record.hosts[h];
        host->ranks++;
        if (all[r].gpu_count > 0)
            ddp_record_set_gpus(&w->record, h, all[r].gpus, all[r].gpu_count);
        host->usable_cores = DDP_MIN(host->usable_cores, all[r].usable_cores);
    }
    free(all);
    return rc;
}

/* Runs the command on a subset of the ranks: --subset chooses `ranks` of them. The others are
 * idle. */
static int run_subset(struct ddp_world *w, struct ddp_comm *world, int ranks, struct ddp_err *err)
{
    struct ddp_rank rank = {.comm = world, .collector = w};
    bool idle = true;
    int *members;
    DDP_TRY(DDP_NEW(&members, (size_t)ranks, err));
    int rc = ddp_hosts_subset((enum ddp_subset)w->options->subset, w->host_of, world->size, ranks,
                              members, err);
    for (int i = 0; i < ranks; i++)
        idle = idle && members[i] != world->rank;
    if (rc == 0 && !idle)
        rc = ddp_comm_group(world, members, ranks, &rank.comm, err);
    free(members);
    if (idle)
        return ddp_comm_agree_idle(world, ranks, rc, err);
    DDP_TRY(rc);
    rc = w->job->rank_main(&rank, w->values, err);
    ddp_comm_destroy(rank.comm);
    if (rc != 0 && !err->agreed)
        return rc;
    return ddp_comm_agree(world, rc, err);
}

/* Runs the command on `ranks` ranks, which may be all ranks or a subset. */
static int run_count(struct ddp_world *w, struct ddp_comm *world, int ranks, struct ddp_err *err)
{
    struct ddp_rank rank = {.comm = world, .collector = w};
    if (ranks < world->size)
        return run_subset(w, world, ranks, err);
    const int rc = w->job->rank_main(&rank, w->values, err);
    if (rc != 0 && !err->agreed)
        return rc;
    return ddp_comm_agree(world, rc, err);
}

/* Adds the host and the GPU of each rank to the record of rank 0. */
static int fill_ranks(struct ddp_world *w, struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_rank_device *ranks = NULL;
    int rc = ddp_world_gather_ranks(comm, &ranks, err);
    if (rc == 0 && comm->rank == 0)
        rc = ddp_record_set_ranks(&w->record, ranks, comm->size, err);
    free(ranks);
    return ddp_comm_agree(comm, rc, err);
}

static int open_collector(struct ddp_world *w, struct ddp_err *err)
{
    pthread_mutex_lock(&w->lock);
    int rc = ddp_collector_open(w, err);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static int close_collector(struct ddp_world *w, int code, const char *reason, struct ddp_err *err)
{
    pthread_mutex_lock(&w->lock);
    int rc = ddp_collector_close(w, code, reason, err);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static int run_all(struct ddp_world *w, struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_comm_times times;
    int rc = comm->rank == 0 ? ddp_collector_check(w, err) : 0;
    if (rc == 0)
        rc = ddp_world_prepare(w, err);
    bool done = rc == DDP_PREPARE_DONE;
    DDP_TRY(ddp_comm_agree(comm, done ? 0 : rc, err));
    if (done)
        return 0;
    rc = comm->rank == 0 ? ddp_collector_fill(w, err) : 0;
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    DDP_TRY(gather_hosts(w, comm, err));
    DDP_TRY(fill_ranks(w, comm, err));
    DDP_TRY(ddp_world_comm_times(comm, &times, err));
    ddp_collector_comm_times(w, &times);
    ddp_world_announce(w);
    rc = comm->rank == 0 ? open_collector(w, err) : 0;
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    if (w->sweep)
        DDP_TRY(ddp_sweep_share(w->sweep, comm, err));
    for (int i = 0, ranks = 1; rc == 0 && ranks > 0; i++) {
        rc = ddp_world_launch_group(w, i, &ranks, err);
        if (rc == 0 && ranks > 0)
            rc = run_count(w, comm, ranks, err);
    }
    return rc;
}

/* Creates the communicator. If that fails, main reports the error on each rank. */
static int open_comm(struct ddp_world *w, const struct ddp_comm_options *options,
                     struct ddp_comm **out, struct ddp_err *err)
{
    const struct ddp_rank_info *rank_info = &w->app->launcher.rank_info;
    int rc = DDP_FAULT(RANK_START, rank_info->rank, err);
    if (rc == 0)
        rc = ddp_comm_create(w->backend, rank_info, options, out, err);
    return rc;
}

/* If this rank has lost another rank, and the ranks have not agreed on the error, adds the names of
 * silent hosts to the message. */
static void add_silent_hosts(const struct ddp_world *w, int rc, struct ddp_err *err)
{
    char silent[400], text[sizeof err->text];
    if (rc != DDP_ELOST || err->agreed ||
        !ddp_host_watch_report(w->host_watch, silent, sizeof silent))
        return;
    memcpy(text, err->text, sizeof text);
    snprintf(err->text, sizeof err->text, "%s; ", silent);
    ddp_text_append(err->text, sizeof err->text, "%s", text);
}

static int run_launched(struct ddp_world *w, struct ddp_err *err)
{
    struct ddp_comm_options options;
    struct ddp_comm *comm;
    struct ddp_watchdog *dog = NULL;
    char who[256];
    ddp_world_comm_options(w, w->max_ranks, &options);
    options.on_expire = on_expire;
    options.on_expire_arg = w;
    DDP_TRY(open_comm(w, &options, &comm, err));
    w->comm = comm;
    if (comm->rank == 0 && comm->hosts && comm->hosts->why[0])
        ddp_logf(&w->app->log, DDP_LOG_NOTE, "ranks of one host share no memory: %s",
                 comm->hosts->why);
    const struct ddp_comm *local = comm->hosts ? comm->hosts->local : NULL;
    int rc = ddp_watchdog_start(comm->flight, local ? local->rank_info.segment : NULL,
                                options.timeout_ns, on_expire, w, &dog, err);
    if (rc == 0)
        rc = ddp_handshake(comm, w->app->argc - 1, w->app->argv + 1, err);
    if (rc == 0)
        rc = run_all(w, comm, err);
    if (rc == 0)
        rc = DDP_FAULT(EXIT, comm->rank, err);
    /* The other ranks wait for the result of rank 0's last write. */
    if (rc == 0)
        rc = ddp_comm_agree(comm, close_collector(w, 0, NULL, err), err);
    ddp_watchdog_stop(dog);
    add_silent_hosts(w, rc, err);
    rc = close_collector(w, rc, err->text, err);
    if (rc != 0 && !err->agreed) {
        /* The other ranks do not know this error. Report it here, then abort the other ranks.
         * main() does not report an error again if err->rank is set and err->agreed is false. */
        ddp_rank_error_origin(w->app, who, sizeof who);
        ddp_log_err_of(&w->app->log, who, err);
        err->rank = comm->rank;
        ddp_comm_abort(comm, rc);
    } else if (rc != 0 && comm->rank == 0) {
        /* Report the error before this rank closes its communicator, because the other ranks wait
         * for this rank when they close theirs. As soon as one rank ends, mpiexec ends the other
         * ranks, and drops output that it has not forwarded yet. */
        ddp_log_err(&w->app->log, err);
        ddp_sleep_ns(LAST_MESSAGES_NS);
        err->agreed = false;
        err->rank = 0; /* tells main() that the error was reported */
    }
    ddp_comm_destroy(comm);
    return rc;
}

/* Prints a note that unknown processes may join the job, if rank 0 has no secret that they would
 * have to know. */
static void warn_open_rendezvous(const struct ddp_world *w)
{
    const struct ddp_launcher *l = &w->app->launcher;
    if (l->over_tcp && l->rank_info.rank == 0 && l->rank_info.size > 1 &&
        ddp_conf_get(DDP_CONF_SECRET) == NULL)
        ddp_logf(
            &w->app->log, DDP_LOG_NOTE,
            "DDPBENCH_SECRET is not set, so any process that can connect to rank 0 can join the "
            "job; rank 0 listens on the address in MASTER_ADDR, or on all addresses if "
            "MASTER_ADDR is a host name that resolves to a loopback address on its host");
}

int ddp_world_run_launched(struct ddp_world *w, struct ddp_err *err)
{
    struct ddp_signal_thread *signals = NULL;
    pthread_mutex_init(&w->lock, NULL);
    /* Must run before MPI or NCCL creates threads (see signal_thread.h). */
    if (w->app->launcher.rank_info.rank == 0)
        DDP_TRY(ddp_signal_thread_start(on_signal, w, &signals, err));
    warn_open_rendezvous(w);
    int rc = run_launched(w, err);
    ddp_signal_thread_stop(signals);
    ddp_host_watch_close(w->host_watch);
    w->host_watch = NULL;
    return rc;
}

int ddp_world_join(const struct ddp_app *app, int64_t timeout_ns, struct ddp_comm **out,
                   struct ddp_err *err)
{
    char dir[4200];
    const struct ddp_comm_options options = {
        .timeout_ns = timeout_ns,
        .device = ddp_device_cpu(ddp_conf_simd()),
        .module_dir = dir,
    };
    ddp_conf_module_dir(app->binary_dir, dir, sizeof dir);
    return ddp_comm_create(ddp_backend_find("mpi"), &app->launcher.rank_info, &options, out, err);
}
