/* Runs a command that needs ranks. Chooses the backend, the rank counts and the launcher. With
 * ddpbench's own launcher, this process forks the ranks, collects their results, and ends after
 * them. */
#include "run/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "comm/gpu_share.h"
#include "launch/segment.h"
#include "run/outputs.h"
#include "run/remote.h"
#include "run/sweep.h"

const struct ddp_cmd *ddp_command_in(const struct ddp_cmd *const *commands, const char *name)
{
    for (; *commands; commands++) {
        if (strcmp((*commands)->name, name) == 0)
            return *commands;
        for (const char *const *a = (*commands)->aliases; a && *a; a++)
            if (strcmp(*a, name) == 0)
                return *commands;
    }
    return NULL;
}

int ddp_check_operands(const struct ddp_app *app, const struct ddp_opt_result *parsed, int most,
                       const char *takes, struct ddp_err *err)
{
    if (parsed->operand_count <= most)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "%s takes %s; unexpected argument '%.64s'", app->cmd->name,
                    takes, parsed->operands[most]);
}

static const char *backend_name(const void *ctx, int i)
{
    (void)ctx;
    const struct ddp_backend *const *all = ddp_backend_all();
    return i == 0 ? "auto" : all[i - 1] ? all[i - 1]->name : NULL;
}

int ddp_job_check_ranks(const char *command, const char *backend, int ranks, uint64_t bytes,
                        struct ddp_err *err)
{
    struct ddp_sysinfo host;
    char needed[24];
    if (ranks < 2) {
        ddp_fail(err, DDP_EUSAGE, "%s needs at least 2 ranks, but this run has one (backend %s)",
                 command, backend);
        return ddp_hint(err, "use --ranks 4, --hosts or mpiexec");
    }
    if (bytes == 0)
        return 0;
    ddp_sysinfo_read(&host);
    ddp_format_size(bytes, needed, sizeof needed);
    if (ddp_memory_check(bytes, host.available_bytes, err, "%s needs %s on this host", command,
                         needed) == 0)
        return 0;
    return ddp_hint(err, "use a smaller --size");
}

uint64_t ddp_job_heap_bytes(const struct ddp_job *job, const void *values, int ranks)
{
    return job->heap_bytes ? job->heap_bytes(values, ranks) : 0;
}

bool ddp_job_threads(const struct ddp_job *job, const void *values)
{
    return job->threads && job->threads(values);
}

bool ddp_world_is_own(const struct ddp_world *w)
{
    if (w->backend->caps & DDP_CAP_ANY_LAUNCHER)
        return w->app->launcher.kind == DDP_LAUNCHER_NONE;
    return !(w->backend->caps & DDP_CAP_LAUNCHED);
}

/* Fills *out with the command's GPU options. Returns DDP_EUNAVAIL if the command cannot run on
 * GPUs. */
static int check_gpu(const struct ddp_world *w, struct ddp_gpu_options *out, struct ddp_err *err)
{
    *out = (struct ddp_gpu_options){.share = w->options->share_gpu,
                                    .nonblocking = w->options->nccl_blocking != 0};
    return w->job->gpu(w->values, out, err);
}

/* Returns true if the command can use GPUs, the ranks are processes, and each rank of this host can
 * have its own GPU. If ddpbench starts the ranks, at least two GPUs are needed, because a single
 * rank has nothing to send. */
static bool gpus_suffice(const struct ddp_world *w)
{
    const struct ddp_launcher *l = &w->app->launcher;
    const struct ddp_backend *nccl = ddp_backend_find("nccl");
    const struct ddp_int_list *asked = &w->options->ranks;
    struct ddp_err ignored = DDP_ERR_INIT;
    struct ddp_gpu_options unused;
    int64_t wanted = l->kind != DDP_LAUNCHER_NONE ? l->rank_info.local_size : 2;
    for (int i = 0; i < asked->n && l->kind == DDP_LAUNCHER_NONE; i++)
        wanted = DDP_MAX(wanted, asked->v[i]);
    if (check_gpu(w, &unused, &ignored) != 0 || w->options->launch == DDP_LAUNCH_THREADS)
        return false;
    return nccl && nccl->places && nccl->places() >= wanted;
}

static const char *choose_auto(const struct ddp_world *w)
{
    struct ddp_gpu_options asked = {0};
    struct ddp_err ignored = DDP_ERR_INIT;
    /* An option that only backend nccl supports selects that backend. */
    if (w->options->share_gpu ||
        (check_gpu(w, &asked, &ignored) == 0 && (asked.graph || asked.window)) || gpus_suffice(w))
        return "nccl";
    /* Only backends nccl and ucx connect ranks that have no MPI. If neither is usable, the chosen
     * backend determines the error message. Under srun this is mpi, because srun may be able to
     * provide PMI. Otherwise it is nccl. */
    if (w->app->launcher.over_tcp && ddp_backend_find("ucx")->probe(w->module_dir, &ignored) == 0)
        return "ucx";
    if (w->app->launcher.over_tcp && w->app->launcher.kind != DDP_LAUNCHER_SLURM)
        return "nccl";
    return w->app->launcher.kind != DDP_LAUNCHER_NONE ? "mpi" : "shm";
}

int ddp_world_check_gpus(const struct ddp_backend *backend, const char *subject, int ranks,
                         struct ddp_err *err)
{
    const int gpus = backend->places();
    if (ranks <= gpus)
        return 0;
    ddp_fail(err, DDP_EUNAVAIL, "%s: each rank needs a GPU, but there %s %d usable", subject,
             gpus == 1 ? "is" : "are", gpus);
    return ddp_hint(err, "--share-gpu lets ranks share a GPU, to check results only");
}

int ddp_world_check_no_gpu(const struct ddp_backend *backend, const struct ddp_gpu_options *asked,
                           struct ddp_err *err)
{
    const char *option = asked->share ? "share-gpu" : asked->graph ? "graph" : NULL;
    return option
               ? ddp_fail(err, DDP_EUSAGE, "--%s: backend '%s' uses no GPU", option, backend->name)
               : 0;
}

/* Checks that the GPU options and the backend agree, and sets up --share-gpu. */
static int check_device(const struct ddp_world *w, struct ddp_err *err)
{
    struct ddp_gpu_options asked = {0};
    if (w->backend->caps & DDP_CAP_DEVICE) {
        DDP_TRY(check_gpu(w, &asked, err));
        if (!asked.share)
            return 0;
        if (w->app->launcher.kind != DDP_LAUNCHER_NONE || w->options->launch == DDP_LAUNCH_THREADS)
            return ddp_fail(err, DDP_EUSAGE,
                            "--share-gpu works only if ddpbench starts the ranks as processes; "
                            "leave out %s",
                            w->app->launcher.kind != DDP_LAUNCHER_NONE ? w->app->launcher.name
                                                                       : "--launch threads");
        return ddp_gpu_share_all(err);
    }
    struct ddp_err ignored = DDP_ERR_INIT;
    if (check_gpu(w, &asked, &ignored) != 0)
        asked = (struct ddp_gpu_options){.share = w->options->share_gpu};
    return ddp_world_check_no_gpu(w->backend, &asked, err);
}

static int choose_backend(struct ddp_world *w, struct ddp_err *err)
{
    const struct ddp_launcher *l = &w->app->launcher;
    bool launched = l->kind != DDP_LAUNCHER_NONE;
    const char *name = w->options->backend;
    if (strcmp(name, "auto") == 0)
        name = choose_auto(w);
    w->backend = ddp_backend_find(name);
    if (!w->backend)
        return ddp_fail_unknown(err, "backend", name, "", backend_name, NULL);
    bool wants_launcher = w->backend->caps & DDP_CAP_LAUNCHED;
    bool any_launcher = w->backend->caps & DDP_CAP_ANY_LAUNCHER;
    if (wants_launcher && !launched) {
        ddp_fail(err, DDP_EUNAVAIL,
                 "backend '%s' needs an outside launcher, and none started this process", name);
        return ddp_hint(err, "use mpiexec -n 2 ddpbench ..., or --backend shm");
    }
    if (launched && w->options->launch == DDP_LAUNCH_THREADS)
        return ddp_fail(err, DDP_EUSAGE,
                        "--launch threads: %s has already started the ranks as processes", l->name);
    if (!wants_launcher && !any_launcher && launched && l->rank_info.size > 1) {
        ddp_fail(err, DDP_EMISMATCH,
                 "%s started %d processes, but with backend '%s' they would be %d separate jobs",
                 l->name, l->rank_info.size, name, l->rank_info.size);
        return ddp_hint(err, "leave out %s (ddpbench starts its own ranks), or use --backend %s",
                        l->over_tcp ? l->name : "mpiexec", l->over_tcp ? "ucx" : "mpi");
    }
    DDP_TRY(w->backend->probe(w->module_dir, err));
    const int rc = check_device(w, err);
    if (rc != 0 && err->hint[0] == '\0' && l->over_tcp)
        ddp_hint(err, "ranks of %s need a GPU each, or --backend ucx", l->name);
    return rc;
}

int ddp_world_default_ranks(const struct ddp_app *app)
{
    if (app->launcher.kind != DDP_LAUNCHER_NONE)
        return app->launcher.rank_info.size;
    return DDP_MIN(ddp_cpu_usable_cores(), DDP_DEFAULT_RANKS_MAX);
}

/* Writes the largest allowed rank count and the default. Under an outside launcher, both are the
 * number of ranks that it started. Otherwise the default is one rank per usable core or, for a
 * backend on GPUs, per GPU, but at most DDP_DEFAULT_RANKS_MAX. */
static void rank_limits(const struct ddp_world *w, int *most, int *usual)
{
    const int places = w->backend->places ? w->backend->places() : ddp_cpu_usable_cores();
    *most = !ddp_world_is_own(w)                           ? w->app->launcher.rank_info.size
            : w->backend->caps & DDP_CAP_SELF              ? 1
            : w->backend->places && !w->options->share_gpu ? places
                                                           : DDP_SHM_RANKS_MAX;
    *usual = !ddp_world_is_own(w) ? *most : DDP_MIN(DDP_MIN(places, DDP_DEFAULT_RANKS_MAX), *most);
}

static int choose_counts(struct ddp_world *w, struct ddp_err *err)
{
    const struct ddp_launcher *l = &w->app->launcher;
    const bool own = ddp_world_is_own(w);
    const struct ddp_int_list *asked = &w->options->ranks;
    int most, usual;
    rank_limits(w, &most, &usual);
    w->count_count = asked->n ? asked->n : 1;
    for (int i = 0; i < w->count_count; i++) {
        w->counts[i] = asked->n ? (int)asked->v[i] : usual;
        char subject[32];
        for (int j = 0; j < i; j++)
            if (w->counts[j] == w->counts[i])
                return ddp_fail(err, DDP_EUSAGE, "--ranks %d is given twice", w->counts[i]);
        snprintf(subject, sizeof subject, "--ranks %d", w->counts[i]);
        if (own && w->backend->places && !w->options->share_gpu)
            DDP_TRY(ddp_world_check_gpus(w->backend, subject, w->counts[i], err));
        if (w->counts[i] > most)
            return ddp_fail(err, DDP_EUSAGE, "--ranks %d: the limit of %s is %d", w->counts[i],
                            own ? "this backend" : l->name, most);
        w->max_ranks = DDP_MAX(w->max_ranks, w->counts[i]);
    }
    return 0;
}

int ddp_world_launch_group(struct ddp_world *w, int i, int *ranks, struct ddp_err *err)
{
    const char *name = w->backend->name;
    *ranks = !w->sweep && i < w->count_count ? w->counts[i] : 0;
    if (!w->sweep || !ddp_sweep_next(w->sweep, i, &name, ranks))
        return 0;
    if (strcmp(name, w->backend->name) == 0)
        return 0;
    w->backend = ddp_backend_find(name);
    if (!w->backend)
        return ddp_fail_unknown(err, "backend", name, "", backend_name, NULL);
    DDP_TRY(w->backend->probe(w->module_dir, err));
    return check_device(w, err);
}

int ddp_world_prepare(struct ddp_world *w, struct ddp_err *err)
{
    DDP_TRY(w->job->prepare(w->app, w->values, w->backend->name, w->max_ranks, err));
    return w->cmd->show ? w->cmd->show(w->app, w->values, w->backend->name, w->max_ranks, err) : 0;
}

void ddp_world_announce(const struct ddp_world *w)
{
    const bool own = ddp_world_is_own(w);
    if (own && w->options->ranks.n == 0)
        ddp_logf(&w->app->log, DDP_LOG_NOTE,
                 "%d rank%s over %s on this machine; choose with --ranks or mpiexec", w->max_ranks,
                 w->max_ranks == 1 ? "" : "s", w->backend->name);
    if (own && ddp_launcher_slurm_nodes() > 1)
        ddp_logf(&w->app->log, DDP_LOG_NOTE,
                 "this Slurm job has %d nodes, but this run measures one of them; `srun ddpbench "
                 "...` measures all",
                 ddp_launcher_slurm_nodes());
    const int cores = ddp_cpu_usable_cores();
    if (own && w->max_ranks > cores)
        ddp_logf(&w->app->log, DDP_LOG_WARN,
                 "%d ranks take turns on %d usable core%s: times include the scheduler",
                 w->max_ranks, cores, cores == 1 ? "" : "s");
    else if (!own && w->app->launcher.rank_info.oversubscribed &&
             w->app->launcher.rank_info.rank == 0)
        ddp_logf(&w->app->log, DDP_LOG_WARN,
                 "%d ranks take turns on the cores of this host: times include the scheduler",
                 w->app->launcher.rank_info.local_size);
}

void ddp_world_comm_options(const struct ddp_world *w, int ranks, struct ddp_comm_options *out)
{
    *out = (struct ddp_comm_options){
        .timeout_ns = (int64_t)(w->options->timeout_s * 1e9),
        .heap_bytes = ddp_job_heap_bytes(w->job, w->values, ranks),
        .device = ddp_device_cpu(ddp_conf_simd()),
        .module_dir = w->module_dir,
        .threads = ddp_job_threads(w->job, w->values),
    };
    struct ddp_err ignored = DDP_ERR_INIT;
    if ((w->backend->caps & DDP_CAP_DEVICE) && check_gpu(w, &out->gpu, &ignored) != 0)
        out->gpu = (struct ddp_gpu_options){0}; /* an earlier check has reported the error */
}

/* The time to create a group is measured only if opening the communicator took no longer than this,
 * because on many GPUs both take seconds. */
#define SPLIT_MOST_NS 2000000000

/* Measures the time to create a group of all ranks. Collective. */
static int time_split(struct ddp_comm *comm, int64_t *ns, struct ddp_err *err)
{
    struct ddp_comm *group = NULL;
    int *ranks;
    int rc = DDP_NEW(&ranks, (size_t)comm->size, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), out);
    for (int r = 0; r < comm->size; r++)
        ranks[r] = r;
    const int64_t began = ddp_now_ns();
    DDP_TRY_GOTO(ddp_comm_group(comm, ranks, comm->size, &group, err), out);
    *ns = ddp_now_ns() - began;
    ddp_comm_destroy(group);
out:
    free(ranks);
    return rc;
}

/* Adds the entries of `more`, such as "tcp/eth0, posix/memory", to `list`. */
static void merge_transports(char *list, size_t list_bytes, char *more)
{
    char *rest = NULL;
    for (char *entry = strtok_r(more, ", ", &rest); entry; entry = strtok_r(NULL, ", ", &rest))
        ddp_text_list_add(list, list_bytes, entry);
}

/* Sets *slowest to the largest value that a rank passes as `mine`. `all` [size] is scratch memory.
 * Collective. */
static int max_over_ranks(struct ddp_comm *comm, int64_t mine, int64_t *all, int64_t *slowest,
                          struct ddp_err *err)
{
    DDP_TRY(ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err));
    *slowest = 0;
    for (int r = 0; r < comm->size; r++)
        *slowest = DDP_MAX(*slowest, all[r]);
    return 0;
}

/* Measures the times of *out. `all` [size] is scratch memory. Collective. */
static int comm_times(struct ddp_comm *comm, int64_t *all, struct ddp_comm_times *out,
                      struct ddp_err *err)
{
    int64_t split = 0, slowest;
    DDP_TRY(max_over_ranks(comm, comm->init_ns, all, &slowest, err));
    out->init_ns = (double)slowest;
    if ((comm->backend->caps & DDP_CAP_DEVICE) == 0 || slowest > SPLIT_MOST_NS)
        return 0;
    DDP_TRY(time_split(comm, &split, err));
    DDP_TRY(max_over_ranks(comm, split, all, &slowest, err));
    out->split_ns = (double)slowest;
    return 0;
}

static int gather_transports(struct ddp_comm *comm, struct ddp_comm_times *out, struct ddp_err *err)
{
    struct {
        char text[sizeof out->transports];
    } mine = {.text = ""}, *all;
    int rc = DDP_NEW(&all, (size_t)comm->size, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), out_free);
    comm->backend->transports(comm, mine.text, sizeof mine.text);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(comm, &mine, all, sizeof mine, err), out_free);
    for (int r = 0; r < comm->size; r++)
        merge_transports(out->transports, sizeof out->transports, all[r].text);
out_free:
    free(all);
    return rc;
}

int ddp_world_comm_times(struct ddp_comm *comm, struct ddp_comm_times *out, struct ddp_err *err)
{
    int64_t *all;
    int rc = DDP_NEW(&all, (size_t)comm->size, err);
    *out = (struct ddp_comm_times){.split_ns = NAN, .destroy_ns = NAN};
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), out_free);
    DDP_TRY_GOTO(comm_times(comm, all, out, err), out_free);
    if (comm->backend->transports)
        DDP_TRY_GOTO(gather_transports(comm, out, err), out_free);
out_free:
    free(all);
    return rc;
}

int ddp_world_gather_ranks(struct ddp_comm *comm, struct ddp_rank_device **out, struct ddp_err *err)
{
    struct ddp_rank_device mine = {.device = -1};
    struct ddp_device_info info;
    struct ddp_sysinfo host;
    int rc = DDP_NEW(out, (size_t)comm->size, err);
    DDP_TRY(ddp_comm_agree(comm, rc, err));
    ddp_sysinfo_read(&host);
    snprintf(mine.host, sizeof mine.host, "%s", host.host);
    if (comm->backend->caps & DDP_CAP_DEVICE) {
        mine.device = comm->device_index;
        if (comm->device->info(comm->device_index, &info, NULL) == 0)
            snprintf(mine.bus, sizeof mine.bus, "%s", info.bus);
    }
    return ddp_comm_allgather_bytes(comm, &mine, *out, sizeof mine, err);
}

/* Sends the hosts and GPUs of the ranks to the collector. Collective. */
static int send_ranks(struct ddp_comm *comm, struct ddp_launch_rank *launch, struct ddp_err *err)
{
    struct ddp_rank_device *ranks = NULL;
    int rc = ddp_world_gather_ranks(comm, &ranks, err);
    if (rc == 0 && comm->rank == 0)
        rc = ddp_launch_send(launch, DDP_MESSAGE_RANKS, ranks, (size_t)comm->size * sizeof *ranks,
                             err);
    free(ranks);
    return rc;
}

static int rank_main(void *arg, struct ddp_launch_rank *launch, struct ddp_err *err)
{
    struct ddp_world *w = arg;
    struct ddp_comm_options options;
    struct ddp_comm *comm;
    ddp_world_comm_options(w, launch->rank_info.size, &options);
    ddp_flight_phase(launch->flight, "init");
    DDP_TRY(ddp_comm_create(w->backend, &launch->rank_info, &options, &comm, err));
    struct ddp_rank rank = {.comm = comm, .launch = launch};
    struct ddp_comm_times times;
    int rc = ddp_world_comm_times(comm, &times, err);
    if (rc == 0)
        rc = send_ranks(comm, launch, err);
    if (rc == 0)
        rc = w->job->rank_main(&rank, w->values, err);
    if (rc != 0)
        ddp_comm_abort(comm, rc);
    const int64_t began = ddp_now_ns();
    ddp_comm_destroy(comm);
    times.destroy_ns = (double)(ddp_now_ns() - began);
    if (rc == 0 && launch->rank_info.rank == 0)
        rc = ddp_launch_send(launch, DDP_MESSAGE_COMM, &times, sizeof times, err);
    return rc;
}

static int on_message(void *arg, int rank, uint32_t type, const void *payload, size_t bytes,
                      struct ddp_err *err)
{
    (void)rank;
    return ddp_collector_message(arg, type, payload, bytes, err);
}

static void on_news(void *arg, const char *line)
{
    struct ddp_world *w = arg;
    ddp_collector_make_room(w);
    ddp_logf(&w->app->log, DDP_LOG_WARN, "%s", line);
}

/* Starts the ranks once and waits for their end. Returns the code of the outcome. If it is an
 * error, *err holds the report of the outcome. */
static int launch_once(struct ddp_world *w, int ranks, struct ddp_err *err)
{
    struct ddp_launch_outcome outcome;
    struct ddp_launch_job job = {
        .ranks = ranks,
        .mode = (enum ddp_launch_mode)w->options->launch,
        .timeout_ns = (int64_t)(w->options->timeout_s * 1e9),
        .heap_bytes = ddp_job_heap_bytes(w->job, w->values, ranks),
        .unpinned = w->backend->caps & DDP_CAP_DEVICE,
        .rank_main = rank_main,
        .on_message = on_message,
        .on_news = on_news,
        .arg = w,
        .watch = &w->watch,
        .running = &w->running,
    };
    DDP_TRY(ddp_signal_watch_ended(&w->watch, err));
    DDP_TRY(ddp_launch(&job, &outcome, err));
    if (ddp_code_is_signal(outcome.code))
        ddp_logf(&w->app->log, DDP_LOG_DEBUG, "%s", outcome.report_text);
    if (outcome.code != 0 && err->code == 0)
        ddp_fail(err, outcome.code, "%s",
                 outcome.report_text[0] ? outcome.report_text : "a rank failed");
    return outcome.code;
}

/* Opens the outputs, starts the ranks for every rank count or launch group, and closes the outputs.
 * A signal ends the run, but never leaves a partly written document on disk. */
static int run_watched(struct ddp_world *w, struct ddp_err *err)
{
    DDP_TRY(ddp_signal_watch_open(&w->watch, err));
    w->watching = true;
    int rc = ddp_collector_fill(w, err);
    if (rc == 0)
        rc = ddp_collector_open(w, err);
    for (int i = 0, ranks = 1; rc == 0 && ranks > 0; i++) {
        rc = ddp_world_launch_group(w, i, &ranks, err);
        if (rc == 0 && ranks > 0)
            rc = launch_once(w, ranks, err);
    }
    rc = ddp_collector_close(w, rc, err->text, err);
    struct ddp_err ended = DDP_ERR_INIT;
    /* A signal also ends a wait for a slow reader of an output. In this case report the signal and
     * not the write error. */
    if (rc == DDP_EIO && ddp_signal_watch_ended(&w->watch, &ended) != 0) {
        *err = ended;
        rc = ended.code;
    }
    w->watching = false;
    /* A signal that comes after the documents were closed must not end the process, because the
     * documents would then contradict the exit code. */
    ddp_signal_watch_finish(&w->watch);
    return rc;
}

static int run_own(struct ddp_world *w, struct ddp_err *err)
{
    DDP_TRY(ddp_collector_check(w, err));
    int prepared = ddp_world_prepare(w, err);
    if (prepared != 0)
        return prepared == DDP_PREPARE_DONE ? 0 : prepared;
    ddp_world_announce(w);
    int rc = run_watched(w, err);
    if (DDP_FAULTS && ddp_fault_missed() != NULL)
        ddp_logf(&w->app->log, DDP_LOG_WARN, "DDPBENCH_FAULT: '%s' was never reached",
                 ddp_fault_missed());
    return rc;
}

int ddp_world_run(struct ddp_app *app, const struct ddp_cmd *cmd, void *values, struct ddp_err *err)
{
    const struct ddp_world_options *options = values;
    struct ddp_world *w;
    bool done;
    DDP_TRY(ddp_remote_run(app, options->hosts, options->hostfile, &done, err));
    if (done)
        return 0;
    DDP_TRY(DDP_NEW(&w, 1, err));
    w->app = app;
    w->cmd = cmd;
    w->job = cmd->job;
    w->sweep = cmd->job == &ddp_sweep_job ? values : NULL;
    w->values = values;
    w->options = values;
    w->show_progress = !w->options->quiet && w->options->progress != 2;
    if (w->options->progress == 1) /* show every line, even in a pipe */
        app->log.progress_every_ns = 0;
    ddp_record_init(&w->record);
    ddp_conf_module_dir(app->binary_dir, w->module_dir, sizeof w->module_dir);
    int rc = ddp_outputs_check_label(w->options->label, err);
    if (rc == 0)
        rc = ddp_backend_check(err);
    if (rc == 0)
        rc = choose_backend(w, err);
    if (rc == 0)
        rc = choose_counts(w, err);
    if (rc == 0)
        rc = ddp_world_is_own(w) ? run_own(w, err) : ddp_world_run_launched(w, err);
    if (rc == 0)
        rc = w->verdict_code;
    ddp_report_close(w->reports); /* not NULL if the run failed before its start */
    ddp_record_release(&w->record);
    free(w->host_of);
    free(w);
    return rc;
}
