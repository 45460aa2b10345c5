/* Running a command that needs ranks: which backend, how many, and who starts them. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "plain.h"
#include "world.h"

#define DEFAULT_RANKS_MAX 8 /* ranks started without --ranks; a laptop stays usable */

static const char *launch_word(int i)
{
    return i == DDP_LAUNCH_PROCESSES ? "processes" : i == DDP_LAUNCH_THREADS ? "threads" : NULL;
}
static const char *progress_word(int i)
{
    static const char *const words[] = {"auto", "always", "never"};
    return i < 3 ? words[i] : NULL;
}
const struct ddp_opt_words ddp_launch_words = {.word = launch_word};
const struct ddp_opt_words ddp_progress_words = {.word = progress_word};

static const char *backend_word(const void *ctx, int i)
{
    (void)ctx;
    const struct ddp_backend *const *all = ddp_backend_all();
    return i == 0 ? "auto" : all[i - 1] ? all[i - 1]->name : NULL;
}

static int unknown_backend(const char *name, struct ddp_err *err)
{
    char legal[256] = "";
    for (int i = 0; backend_word(NULL, i); i++) {
        size_t n = strlen(legal);
        snprintf(legal + n, sizeof legal - n, "%s%s", i ? ", " : "", backend_word(NULL, i));
    }
    const char *near = ddp_nearest(name, backend_word, NULL);
    ddp_fail(err, DDP_EUSAGE, "unknown backend '%s'; legal: %s", name, legal);
    return near ? ddp_hint(err, "did you mean '%s'?", near) : err->code;
}

static int choose_backend(struct ddp_world *w, struct ddp_err *err)
{
    const struct ddp_launcher *l = &w->app->launcher;
    bool launched = l->kind != DDP_LAUNCHER_NONE;
    const char *name = w->options->backend;
    if (strcmp(name, "auto") == 0)
        name = launched ? "mpi" : "shm";
    w->backend = ddp_backend_find(name);
    if (!w->backend)
        return unknown_backend(name, err);
    bool wants_launcher = w->backend->caps & DDP_CAP_LAUNCHED;
    if (wants_launcher && !launched) {
        ddp_fail(err, DDP_EUNAVAIL,
                 "backend '%s' needs an outside launcher, and none started this process", name);
        return ddp_hint(err, "mpiexec -n 2 ddpbench ..., or --backend shm");
    }
    if (launched && w->options->launch == DDP_LAUNCH_THREADS)
        return ddp_fail(err, DDP_EUSAGE,
                        "--launch threads: %s has started the ranks, as processes of its own",
                        l->name);
    if (!wants_launcher && launched && l->place.size > 1) {
        ddp_fail(err, DDP_EMISMATCH,
                 "%s started %d processes, but backend '%s' would make %d worlds of them", l->name,
                 l->place.size, name, l->place.size);
        return ddp_hint(err,
                        "leave out mpiexec (ddpbench starts its own ranks), or use --backend mpi");
    }
    return w->backend->probe(w->module_dir, err);
}

int ddp_world_default_ranks(const struct ddp_app *app)
{
    if (app->launcher.kind != DDP_LAUNCHER_NONE)
        return app->launcher.place.size;
    return DDP_MIN(ddp_cpu_usable_cores(), DEFAULT_RANKS_MAX);
}

static int choose_counts(struct ddp_world *w, struct ddp_err *err)
{
    const struct ddp_launcher *l = &w->app->launcher;
    bool own = !(w->backend->caps & DDP_CAP_LAUNCHED);
    const struct ddp_int_list *asked = &w->options->ranks;
    int most = own ? (w->backend->caps & DDP_CAP_SELF ? 1 : 256) : l->place.size;
    w->count_count = asked->n ? asked->n : 1;
    for (int i = 0; i < w->count_count; i++) {
        int cores = DDP_MIN(ddp_cpu_usable_cores(), DEFAULT_RANKS_MAX);
        w->counts[i] = asked->n ? (int)asked->v[i] : own ? DDP_MIN(cores, most) : most;
        if (w->counts[i] > most)
            return ddp_fail(err, DDP_EUSAGE, "--ranks %d: %s has %d", w->counts[i],
                            own ? "this backend" : l->name, most);
        w->max_ranks = DDP_MAX(w->max_ranks, w->counts[i]);
    }
    return 0;
}

int ddp_world_stage(struct ddp_world *w, int i, int *ranks, struct ddp_err *err)
{
    const struct ddp_cmd_stages *stages = w->cmd->stages;
    const char *name = NULL;
    *ranks = !stages && i < w->count_count ? w->counts[i] : 0;
    if (!stages || !stages->next(w->values, i, &name, ranks))
        return 0;
    if (!name || strcmp(name, w->backend->name) == 0)
        return 0;
    w->backend = ddp_backend_find(name);
    if (!w->backend)
        return unknown_backend(name, err);
    return w->backend->probe(w->module_dir, err);
}

void ddp_world_announce(const struct ddp_world *w)
{
    const bool own = !(w->backend->caps & DDP_CAP_LAUNCHED);
    if (own && w->options->ranks.n == 0)
        ddp_logf(&w->app->log, DDP_LOG_NOTE,
                 "%d rank%s on this machine over %s (choose with --ranks, or run under mpiexec)",
                 w->max_ranks, w->max_ranks == 1 ? "" : "s", w->backend->name);
    const int cores = ddp_cpu_usable_cores();
    if (own && w->max_ranks > cores)
        ddp_logf(&w->app->log, DDP_LOG_WARN,
                 "%d ranks take turns on %d usable core%s: times measure the scheduler, too",
                 w->max_ranks, cores, cores == 1 ? "" : "s");
    else if (!own && w->app->launcher.place.oversubscribed && w->app->launcher.place.rank == 0)
        ddp_logf(&w->app->log, DDP_LOG_WARN,
                 "%d ranks take turns on the cores of this host: times measure the scheduler, too",
                 w->app->launcher.place.local_size);
}

void ddp_world_comm_options(const struct ddp_world *w, int ranks, struct ddp_comm_options *out)
{
    const char *cap = ddp_conf_get(DDP_CONF_SIMD);
    enum ddp_simd level = ddp_cpu_best_simd();
    if (cap && ddp_simd_parse(cap) >= 0 && (enum ddp_simd)ddp_simd_parse(cap) < level)
        level = (enum ddp_simd)ddp_simd_parse(cap);
    *out = (struct ddp_comm_options){
        .timeout_ns = (int64_t)(w->options->timeout_s * 1e9),
        .heap_bytes = w->cmd->heap_bytes ? w->cmd->heap_bytes(w->values, ranks) : 0,
        .device = ddp_device_cpu(level),
        .module_dir = w->module_dir,
        .threads = w->cmd->threads && w->cmd->threads(w->values),
    };
}

int ddp_world_run(struct ddp_app *app, const struct ddp_cmd *cmd, void *values, struct ddp_err *err)
{
    struct ddp_world *w = ddp_calloc(1, sizeof *w);
    if (!w)
        return ddp_fail(err, DDP_ENOMEM, "no memory to start '%s'", cmd->name);
    w->app = app;
    w->cmd = cmd;
    w->values = values;
    w->options = values;
    w->show_progress = !w->options->quiet && (w->options->progress == 1 ||
                                              (w->options->progress == 0 && isatty(STDERR_FILENO)));
    ddp_record_init(&w->record);
    ddp_module_dir(app, w->module_dir, sizeof w->module_dir);
    int rc = ddp_backend_check(err);
    if (rc == 0)
        rc = choose_backend(w, err);
    if (rc == 0)
        rc = choose_counts(w, err);
    if (rc == 0)
        rc = w->backend->caps & DDP_CAP_LAUNCHED ? ddp_world_run_launched(w, err)
                                                 : ddp_world_run_own(w, err);
    ddp_report_close(w->reports); /* when nothing was begun */
    ddp_record_release(&w->record);
    free(w);
    return rc;
}
