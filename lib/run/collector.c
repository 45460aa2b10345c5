/* The collector of a run (see world.h): fills the record, writes the outputs and shows progress.
 * The ddp_emit functions, with which rank 0 sends data to the collector, are at the end. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "bench/memory_baseline.h"
#include "bench/plan.h"
#include "comm/hosts.h"
#include "device/cuda/nvml.h"
#include "device/device.h"
#include "record/field.h"
#include "record/point_keys.h"
#include "record/provenance.h"
#include "run/silent_hosts.h"
#include "run/outputs.h"
#include "run/sweep.h"
#include "run/world.h"

/* Longest time that outputs may delay the end of a failed run. */
#define LAST_MESSAGES_NS 1000000000

static void set_text(char *out, size_t out_bytes, const char *text)
{
    ddp_printable(text ? text : "", out, out_bytes);
}

static bool give_up(void *arg)
{
    struct ddp_world *w = arg;
    if (w->running)
        return ddp_launch_should_stop(w->running);
    return w->watching && ddp_signal_watch_ended(&w->watch, NULL) != 0;
}

void ddp_collector_make_room(struct ddp_world *w)
{
    ddp_log_clear_progress(&w->app->log);
    if (w->reports)
        ddp_report_pause(w->reports);
}

static void on_wait(void *arg, const char *line)
{
    struct ddp_world *w = arg;
    ddp_collector_make_room(w);
    ddp_logf(&w->app->log, DDP_LOG_NOTE, "%s", line);
}

static void set_write_deadline(struct ddp_world *w, int64_t most_ns)
{
    /* The waits of ranks that our launcher started do not time out while the collector writes.
     * Under an outside launcher the other ranks cannot see that the collector is blocked in a
     * write. The write must therefore fail before the deadlines of the other ranks expire, so it
     * gets half their timeout. */
    bool own = w->app->launcher.kind == DDP_LAUNCHER_NONE;
    int64_t timeout_ns = (int64_t)(w->options->timeout_s * 1e9) / (own ? 1 : 2);
    ddp_report_set_write_deadline(
        w->reports, &(struct ddp_write_deadline){.timeout_ns = DDP_MIN(timeout_ns, most_ns),
                                                 .give_up = give_up,
                                                 .on_wait = on_wait,
                                                 .no_fsync = w->no_fsync,
                                                 .arg = w});
}

/* Refuses outputs that would overwrite a file that the command itself reads or keeps. */
static int protect_files(const struct ddp_world *w, struct ddp_err *err)
{
    for (int i = 0; i < w->options->protected_count; i++)
        DDP_TRY(ddp_report_protect(w->reports, w->options->protected_path[i], err));
    return 0;
}

int ddp_collector_check(struct ddp_world *w, struct ddp_err *err)
{
    DDP_TRY(ddp_report_open(&w->reports, err));
    set_write_deadline(w, INT64_MAX);
    ddp_report_set_table(w->reports, &(struct ddp_table_options){.wide = w->options->wide,
                                                                 .legend = w->options->verbose,
                                                                 .plot = w->options->plot});
    int rc = ddp_outputs_add(w->reports, w->options->json, &w->options->formats, err);
    if (rc == 0)
        rc = ddp_outputs_check_plot(w->options->plot, ddp_report_has_table(w->reports), err);
    if (rc == 0)
        rc = protect_files(w, err);
    if (rc != 0) {
        ddp_report_close(w->reports);
        w->reports = NULL;
    }
    return rc;
}

/* Writes the rank counts as "1,2,4", or nothing if there is only one rank count. */
static void list_counts(const struct ddp_world *w, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (int i = 0; i < w->count_count && w->count_count > 1 && used < out_bytes; i++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s%d", i ? "," : "", w->counts[i]);
}

/* If some rank count is smaller than the number of ranks that the outside launcher started, writes
 * how --subset chooses the ranks. */
static void name_subset(const struct ddp_world *w, char *out, size_t out_bytes)
{
    for (int i = 0; i < w->count_count && !ddp_world_is_own(w); i++)
        if (w->counts[i] < w->app->launcher.rank_info.size)
            set_text(out, out_bytes, ddp_subset_names[w->options->subset]);
}

static const char *device_library(const char *name)
{
    const struct ddp_device *d = ddp_device_find(name);
    return d ? d->library : NULL;
}

/* Stores the names and versions of the libraries in use. MPI is stored if it is loaded under an
 * outside launcher, even if another backend moves the data. UCX is stored with backend ucx, NCCL
 * with a backend on GPUs, and CUDA if this host has a GPU. If the backend names a CUDA library,
 * that name replaces the name from device cuda. */
static void fill_features(struct ddp_world *w)
{
    struct ddp_record *r = &w->record;
    const struct ddp_backend *mpi = ddp_backend_find("mpi");
    if (!ddp_world_is_own(w) && mpi && mpi->library)
        set_text(r->feature_mpi, sizeof r->feature_mpi, mpi->library());
    if (strcmp(w->backend->name, "ucx") == 0)
        set_text(r->feature_ucx, sizeof r->feature_ucx, w->backend->library());
    if (r->host_count > 0 && r->hosts[0].gpu_count > 0)
        set_text(r->feature_cuda, sizeof r->feature_cuda, device_library("cuda"));
    if (!(w->backend->caps & DDP_CAP_DEVICE))
        return;
    set_text(r->feature_nccl, sizeof r->feature_nccl,
             w->backend->library ? w->backend->library() : NULL);
    if (w->backend->device_library)
        set_text(r->feature_cuda, sizeof r->feature_cuda, w->backend->device_library());
}

/* Adds the facts about the GPUs of this host to the record, if NVML can read them. Unlike CUDA,
 * NVML may be used in a process that forks later. */
static void read_gpus(struct ddp_record *record)
{
    struct ddp_gpu_facts gpus[DDP_GPU_FACTS_MAX];
    int count = 0;
    if (ddp_nvml_read(gpus, DDP_GPU_FACTS_MAX, &count, NULL) == 0)
        ddp_record_set_gpus(record, 0, gpus, count);
}

int ddp_collector_fill(struct ddp_world *w, struct ddp_err *err)
{
    struct ddp_record *r = &w->record;
    struct ddp_comm_options options;
    DDP_TRY(ddp_provenance_fill(r, w->cmd->name, w->app->argc, w->app->argv, w->max_ranks, err));
    ddp_world_comm_options(w, w->max_ranks, &options);
    r->seed = w->options->seed;
    r->world_ranks = w->max_ranks;
    set_text(r->world_backend, sizeof r->world_backend, w->backend->name);
    if (w->backend->caps & DDP_CAP_DEVICE)
        set_text(r->nccl_blocking, sizeof r->nccl_blocking, options.gpu.nonblocking ? "off" : "on");
    set_text(r->launcher, sizeof r->launcher, w->app->launcher.name);
    if (w->app->launcher.kind == DDP_LAUNCHER_NONE)
        set_text(r->launch, sizeof r->launch, ddp_launch_names[w->options->launch]);
    list_counts(w, r->rank_counts, sizeof r->rank_counts);
    name_subset(w, r->subset, sizeof r->subset);
    set_text(r->label, sizeof r->label, w->options->label);
    set_text(r->note, sizeof r->note,
             w->options->share_gpu ? "correctness-only" : w->options->note);
    read_gpus(r);
    fill_features(w);
    set_text(r->reason, sizeof r->reason, "still running");
    return 0;
}

/* Adds the planned points to the record, so that a table knows its columns in advance. */
static void add_planned(struct ddp_record *record, const struct ddp_bench_plan *plan)
{
    for (int i = 0; plan && i < plan->count; i++)
        ddp_point_range_add(&record->planned[ddp_point_kind(&plan->points[i])], &plan->points[i]);
}

int ddp_collector_open(struct ddp_world *w, struct ddp_err *err)
{
    for (int i = 0; i < (w->sweep ? w->sweep->count : 0); i++)
        add_planned(&w->record, ddp_sweep_item_plan(&w->sweep->items[i]));
    for (int i = 0; i < w->count_count && w->job->plan; i++)
        add_planned(&w->record, w->job->plan(w->values, w->counts[i]));
    if (w->sweep)
        DDP_TRY(ddp_sweep_collector_open(w->sweep, &w->record, err));
    return ddp_report_begin(w->reports, &w->record, err);
}

static int add_point(struct ddp_world *w, const void *payload, size_t bytes, struct ddp_err *err)
{
    const struct ddp_point *p = payload;
    const double *samples = p->sample_count > 0 ? (const double *)(const void *)(p + 1) : NULL;
    if (bytes != sizeof *p + (size_t)p->sample_count * sizeof(double))
        return ddp_fail(err, DDP_EINTERNAL, "received a point of %zu bytes", bytes);
    DDP_TRY(ddp_record_add_point(&w->record, p, samples, err));
    ddp_log_clear_progress(&w->app->log);
    return ddp_report_point(w->reports, &w->record, err);
}

void ddp_collector_comm_times(struct ddp_world *w, const struct ddp_comm_times *times)
{
    w->record.comm_init_ns = times->init_ns;
    w->record.comm_split_ns = times->split_ns;
    w->record.comm_destroy_ns = times->destroy_ns;
    set_text(w->record.transports, sizeof w->record.transports, times->transports);
}

static int add_left_out(struct ddp_world *w, const struct ddp_left_out *l, struct ddp_err *err)
{
    char points[32] = "";
    DDP_TRY(ddp_record_add_left_out(&w->record, l, err));
    if (ddp_report_on_screen(w->reports)) /* the table shows what is left out */
        return 0;
    if (l->points > 1)
        snprintf(points, sizeof points, " (%d points)", l->points);
    ddp_log_clear_progress(&w->app->log);
    ddp_logf(&w->app->log, DDP_LOG_NOTE, "left out: %s%s: %s", l->what, points, l->reason);
    return 0;
}

int ddp_collector_message(struct ddp_world *w, uint32_t type, const void *payload, size_t bytes,
                          struct ddp_err *err)
{
    /* Write to the journal first, because a point that was shown must not be lost. */
    if (w->sweep && type < DDP_MESSAGE_PROGRESS)
        DDP_TRY(ddp_sweep_collector_keep(w->sweep, type, payload, bytes, err));
    switch (type) {
    case DDP_MESSAGE_SWEEP:
        return ddp_sweep_record_event(w->sweep, payload, &w->record, err);
    case DDP_MESSAGE_POINT:
        return add_point(w, payload, bytes, err);
    case DDP_MESSAGE_CONTROL:
        return ddp_record_add_control(&w->record, payload, err);
    case DDP_MESSAGE_LEFT_OUT:
        return add_left_out(w, payload, err);
    case DDP_MESSAGE_TRAIN: {
        const struct ddp_train_run *run = payload;
        set_text(w->record.feature_blas, sizeof w->record.feature_blas, run->blas);
        return ddp_record_add_train(&w->record, run, err);
    }
    case DDP_MESSAGE_EPOCH:
        DDP_TRY(ddp_record_add_epoch(&w->record, payload, err));
        ddp_log_clear_progress(&w->app->log);
        return ddp_report_epoch(w->reports, &w->record, err);
    case DDP_MESSAGE_TRAIN_END:
        ddp_record_end_train(&w->record, payload);
        return 0;
    case DDP_MESSAGE_COMM: {
        ddp_collector_comm_times(w, payload);
        return 0;
    }
    case DDP_MESSAGE_RANKS:
        return ddp_record_set_ranks(&w->record, payload,
                                    (int)(bytes / sizeof(struct ddp_rank_device)), err);
    case DDP_MESSAGE_MATRIX:
        ddp_matrix_release(&w->record.matrix);
        return ddp_matrix_unpack(payload, bytes, &w->record.matrix, err);
    case DDP_MESSAGE_HEALTH:
        ddp_health_release(&w->record.health);
        DDP_TRY(ddp_health_unpack(payload, bytes, &w->record.health, err));
        ddp_fields_printable(&ddp_health_fields, &w->record.health);
        w->verdict_code = ddp_health_code(&w->record.health);
        return 0;
    case DDP_MESSAGE_PROGRESS:
        if (w->show_progress)
            ddp_log_progress(&w->app->log, "%.*s", (int)bytes, (const char *)payload);
        return 0;
    case DDP_MESSAGE_NOTE:
        ddp_collector_make_room(w);
        ddp_logf(&w->app->log, DDP_LOG_NOTE, "%.*s", (int)bytes, (const char *)payload);
        return 0;
    default:
        return ddp_fail(err, DDP_EINTERNAL, "message of unknown type %u", (unsigned)type);
    }
}

/* Returns the number of points that `ranks` ranks measure. The plan may contain points that these
 * ranks have left out. Therefore the number is taken from a measured point if there is one. */
static int count_points(const struct ddp_world *w, int ranks)
{
    const struct ddp_bench_plan *plan = w->job->plan(w->values, ranks);
    for (int i = 0; i < w->record.point_count && plan->count > 0; i++) {
        const struct ddp_point *p = &w->record.points[i];
        if (p->spec.ranks == plan->points[0].ranks && p->of > 0)
            return p->of;
    }
    return plan->count;
}

/* Writes how much of the work is done, for example "2 of 4 points done". */
static void describe_done(const struct ddp_world *w, char *out, size_t out_bytes)
{
    int64_t done = 0, all = 0;
    out[0] = '\0';
    if (w->sweep) {
        snprintf(out, out_bytes, "%d of %d runs done", w->sweep->ended,
                 w->sweep->count * (int)w->sweep->launches);
        return;
    }
    if (!w->job->plan && !w->job->epochs) {
        snprintf(out, out_bytes, "nothing is complete");
        return;
    }
    for (int i = 0; i < w->count_count; i++)
        all += w->job->plan ? count_points(w, w->counts[i]) : w->job->epochs(w->values);
    for (int i = 0; i < w->record.train_count; i++)
        done += w->record.train[i].baseline ? 0 : w->record.train[i].epoch_count;
    snprintf(out, out_bytes, "%lld of %lld %s done",
             (long long)(w->job->plan ? w->record.point_count : done), (long long)all,
             w->job->plan ? "points" : "epochs");
}

/* Describes a run that a signal has ended. Replaces *err by a message about what is done and saved.
 * Writes to `reason` the reason that the documents give. */
static void describe_signal(const struct ddp_world *w, int code, char *reason, size_t reason_bytes,
                            struct ddp_err *err)
{
    const int signal = -code - 128;
    char done[64], files[400], silent[400];
    describe_done(w, done, sizeof done);
    ddp_report_files(w->reports, files, sizeof files);
    /* A launcher also sends a signal if it has lost one of its hosts, so name the hosts that no
     * longer answer. */
    const bool is_silent = ddp_host_watch_report(w->host_watch, silent, sizeof silent);
    snprintf(reason, reason_bytes, "ended by signal %d (%s)%s%s; %s", signal, sigdescr_np(signal),
             is_silent ? "; " : "", silent, done);
    *err = DDP_ERR_INIT;
    err->interrupted = true;
    if (signal == SIGINT)
        ddp_fail(err, code, "interrupted; %s%s%s", done, files[0] ? ", saved in " : "", files);
    else
        ddp_fail(err, code, "%s%s%s", reason, files[0] ? ", saved in " : "", files);
    if (w->sweep && ddp_sweep_journal_path(w->sweep))
        ddp_text_append(err->text, sizeof err->text, "; the same command continues the sweep");
}

int ddp_collector_close(struct ddp_world *w, int code, const char *reason, struct ddp_err *err)
{
    struct ddp_record *r = &w->record;
    struct ddp_err late = DDP_ERR_INIT;
    char ended_by[560];
    ddp_log_clear_progress(&w->app->log);
    if (!w->reports)
        return code;
    if (ddp_code_is_signal(code)) {
        describe_signal(w, code, ended_by, sizeof ended_by, err);
        reason = ended_by;
    }
    bool more = false;
    if (w->sweep) {
        int ended = ddp_sweep_collector_close(w->sweep, r, code, &late);
        more = ended == DDP_CLOSE_MORE;
        if (ended != code)
            reason = late.text;
        if (ended != code && !more)
            *err = late;
        code = more ? code : ended;
    }
    if (code == 0 && !more && w->cmd->conclude) {
        code = w->cmd->conclude(w->values, r, err);
        reason = err->text;
    }
    r->status = code == 0 && !more  ? DDP_STATUS_COMPLETE
                : code == DDP_EDATA ? DDP_STATUS_FAILED
                                    : DDP_STATUS_PARTIAL;
    set_text(r->reason, sizeof r->reason, code == 0 && !more ? NULL : reason);
    ddp_clock_iso8601(r->finished, sizeof r->finished);
    if (code != 0)
        set_write_deadline(w, LAST_MESSAGES_NS);
    int rc = ddp_report_end(w->reports, r, &late);
    ddp_report_close(w->reports);
    w->reports = NULL;
    if (rc != 0 && code == 0)
        *err = late;
    if (w->sweep)
        ddp_sweep_collector_closed(w->sweep, code ? code : rc);
    return code ? code : rc;
}

/* Sends a message from rank 0 to the collector, which is this process or the parent of the ranks.
 * On other ranks does nothing. */
static int emit(struct ddp_rank *rank, uint32_t type, const void *payload, size_t bytes,
                struct ddp_err *err)
{
    if (rank->comm->rank_info.rank != 0)
        return 0;
    if (type < DDP_MESSAGE_PROGRESS)
        DDP_TRY(DDP_FAULT(SEND_COLLECTOR, 0, err));
    if (rank->collector) {
        pthread_mutex_lock(&rank->collector->lock);
        int rc = ddp_collector_message(rank->collector, type, payload, bytes, err);
        pthread_mutex_unlock(&rank->collector->lock);
        return rc;
    }
    return ddp_launch_send(rank->launch, type, payload, bytes, err);
}

int ddp_emit_point(struct ddp_rank *rank, const struct ddp_point *point, const double *samples,
                   struct ddp_err *err)
{
    size_t sample_bytes = (size_t)point->sample_count * sizeof(double);
    char *message = malloc(sizeof *point + sample_bytes);
    if (!message)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a point of %zu bytes",
                        sizeof *point + sample_bytes);
    memcpy(message, point, sizeof *point);
    if (rank->sweep)
        ddp_sweep_set_place(rank->sweep, (struct ddp_point *)(void *)message);
    if (sample_bytes)
        memcpy(message + sizeof *point, samples, sample_bytes);
    int rc = emit(rank, DDP_MESSAGE_POINT, message, sizeof *point + sample_bytes, err);
    free(message);
    return rc;
}

int ddp_emit_baseline(struct ddp_rank *rank, struct ddp_err *err)
{
    struct ddp_control control;
    if (rank->sweep && rank->sweep->has_control)
        return 0;
    DDP_TRY(ddp_memory_baseline_measure(rank->comm, &control, err));
    return emit(rank, DDP_MESSAGE_CONTROL, &control, sizeof control, err);
}

int ddp_emit_train(struct ddp_rank *rank, const struct ddp_train_run *run, bool ended,
                   struct ddp_err *err)
{
    struct ddp_train_run message = *run;
    message.epochs = NULL; /* epochs are sent one by one */
    message.epoch_count = 0;
    message.launch = rank->sweep ? ddp_sweep_launch_number(rank->sweep) : 0;
    return emit(rank, ended ? DDP_MESSAGE_TRAIN_END : DDP_MESSAGE_TRAIN, &message, sizeof message,
                err);
}

int ddp_emit_epoch(struct ddp_rank *rank, const struct ddp_epoch *epoch, struct ddp_err *err)
{
    return emit(rank, DDP_MESSAGE_EPOCH, epoch, sizeof *epoch, err);
}

int ddp_emit_left_out(struct ddp_rank *rank, const struct ddp_left_out *left_out,
                      struct ddp_err *err)
{
    return emit(rank, DDP_MESSAGE_LEFT_OUT, left_out, sizeof *left_out, err);
}

int ddp_emit_matrix(struct ddp_rank *rank, const struct ddp_matrix *matrix, struct ddp_err *err)
{
    void *message;
    size_t bytes;
    if (rank->comm->rank != 0)
        return 0;
    DDP_TRY(ddp_matrix_pack(matrix, &message, &bytes, err));
    const int rc = emit(rank, DDP_MESSAGE_MATRIX, message, bytes, err);
    free(message);
    return rc;
}

int ddp_emit_health(struct ddp_rank *rank, const struct ddp_health *health, struct ddp_err *err)
{
    void *message;
    size_t bytes;
    if (rank->comm->rank != 0)
        return 0;
    DDP_TRY(ddp_health_pack(health, &message, &bytes, err));
    const int rc = emit(rank, DDP_MESSAGE_HEALTH, message, bytes, err);
    free(message);
    return rc;
}

int ddp_emit_sweep(struct ddp_rank *rank, const struct ddp_sweep_event *event, struct ddp_err *err)
{
    return emit(rank, DDP_MESSAGE_SWEEP, event, sizeof *event, err);
}

static void emit_text(struct ddp_rank *rank, uint32_t type, const char *fmt, va_list args)
{
    char text[512] = "";
    struct ddp_err ignored = DDP_ERR_INIT; /* a lost line of progress must not fail a run */
    if (type == DDP_MESSAGE_PROGRESS && rank->sweep)
        ddp_sweep_progress(rank->sweep, text);
    size_t bytes = strlen(text); /* less than DDP_SWEEP_PROGRESS_BYTES */
    int n = vsnprintf(text + bytes, sizeof text - bytes, fmt, args);
    bytes = n < 0 ? bytes : DDP_MIN(bytes + (size_t)n, sizeof text - 1);
    if (emit(rank, type, text, bytes, &ignored) != 0)
        return;
}

void ddp_emit_progress(struct ddp_rank *rank, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    emit_text(rank, DDP_MESSAGE_PROGRESS, fmt, args);
    va_end(args);
}

void ddp_emit_note(struct ddp_rank *rank, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    emit_text(rank, DDP_MESSAGE_NOTE, fmt, args);
    va_end(args);
}
