/* Opens and closes worlds, answers queries about them, and runs ranks under our own launcher. */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "comm/backend.h"
#include "comm/handshake.h"
#include "comm/shm/comm_shm.h"
#include "exchange/ddp_impl.h"
#include "launch/launcher.h"

/* Finds the folder of the backend modules. given: the folder that the user named, or NULL. If it is
 * NULL, takes the folder $DDPBENCH_MODULE_DIR or, if this is not set, begins the search in the
 * folder of the library, or of the program that contains the library. */
static void find_modules(const char *given, char *out, size_t out_bytes)
{
    Dl_info self = {0};
    char dir[4200];
    if (dladdr((const void *)(uintptr_t)find_modules, &self) == 0 || self.dli_fname == NULL)
        self.dli_fname = "./libddp.so";
    const char *slash = strrchr(self.dli_fname, '/');
    snprintf(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - self.dli_fname) : 1,
             slash != NULL ? self.dli_fname : ".");
    if (given != NULL)
        snprintf(out, out_bytes, "%s", given);
    else
        ddp_conf_module_dir(dir, out, out_bytes);
}

#define TIMEOUT_S      60.0
#define TIMEOUT_MAX_S  1e9 /* 31 years, which fits in 64 bits of ns. */
#define HEAP_BYTES     (UINT64_C(1) << 30)
#define HEAP_BYTES_MAX (UINT64_C(1) << 46) /* Half of x86-64's user address space. */
#define NS_PER_S       1e9

/* A process has at most one world, or one per thread in ddp_run's thread mode. These variables are
 * global because the resources that they guard belong to the process: MPI and the launcher's
 * environment variables. */
enum { PROCESS_FREE, PROCESS_TAKEN, PROCESS_SPENT };
static _Atomic(int) process_slot;
static _Thread_local bool thread_slot;

static int slot_take(enum ddp_slot slot, struct ddp_err *err)
{
    int found = PROCESS_FREE;
    if (slot == DDP_SLOT_THREAD) {
        thread_slot = true;
        return 0;
    }
    if (!thread_slot && atomic_compare_exchange_strong(&process_slot, &found, PROCESS_TAKEN))
        return 0;
    if (found == PROCESS_SPENT)
        return ddp_fail(
            err, DDP_EUSAGE,
            "this process already had a world over MPI, and MPI starts only once in a process");
    ddp_fail(err, DDP_EUSAGE, "this rank already has a world");
    return ddp_hint(err, "call ddp_finalize before another ddp_init");
}

static void slot_leave(enum ddp_slot slot, int process_value)
{
    if (slot == DDP_SLOT_THREAD)
        thread_slot = false;
    if (slot == DDP_SLOT_PROCESS)
        atomic_store(&process_slot, process_value);
}

static void slot_free(enum ddp_slot slot)
{
    slot_leave(slot, PROCESS_FREE);
}

static bool slot_is_taken(void)
{
    return thread_slot || atomic_load(&process_slot) == PROCESS_TAKEN;
}

int ddp_settings_fill(const struct ddp_init_options *options, struct ddp_settings *out,
                      struct ddp_err *err)
{
    static const struct ddp_init_options defaults = {0};
    memset(out, 0, sizeof *out);
    out->options = options != NULL ? *options : defaults;
    const double timeout_s = out->options.timeout_s;
    if (isnan(timeout_s) || timeout_s < 0 || timeout_s > TIMEOUT_MAX_S)
        return ddp_fail(err, DDP_EUSAGE, "timeout_s '%g' is not within 0..%g", timeout_s,
                        TIMEOUT_MAX_S);
    if (out->options.heap_bytes > HEAP_BYTES_MAX)
        return ddp_fail(err, DDP_EUSAGE, "heap_bytes '%llu' exceeds the address space",
                        (unsigned long long)out->options.heap_bytes);
    DDP_TRY(ddp_conf_check(err));
    find_modules(out->options.module_dir, out->module_dir, sizeof out->module_dir);
    out->comm = (struct ddp_comm_options){
        .timeout_ns = (int64_t)((timeout_s > 0 ? timeout_s : TIMEOUT_S) * NS_PER_S),
        .heap_bytes = out->options.heap_bytes != 0 ? out->options.heap_bytes : HEAP_BYTES,
        .device = ddp_device_cpu(ddp_conf_simd()),
        .module_dir = out->module_dir,
        .threads = true,
        .on_expire = out->options.on_lost,
        .on_expire_arg = out->options.on_lost_arg,
    };
    if (out->comm.timeout_ns == 0)
        out->comm.timeout_ns = 1;
    return 0;
}

static void on_expire(void *arg, const char *report)
{
    const struct ddp *d = arg;
    if (d->on_lost != NULL)
        d->on_lost(d->on_lost_arg, report);
}

int ddp_open(const struct ddp_backend *backend, const struct ddp_rank_info *rank_info,
             const struct ddp_settings *settings, enum ddp_slot slot, struct ddp **out,
             struct ddp_err *err)
{
    DDP_TRY(slot_take(slot, err));
    int rc;
    struct ddp *d;
    DDP_TRY_GOTO(DDP_NEW(&d, 1, err), err_slot);
    d->slot = slot;
    d->on_lost = settings->options.on_lost;
    d->on_lost_arg = settings->options.on_lost_arg;
    DDP_TRY_GOTO(ddp_comm_create(backend, rank_info, &settings->comm, &d->comm, err), err_world);
    if ((backend->caps & DDP_CAP_LAUNCHED) != 0)
        DDP_TRY_GOTO(ddp_watchdog_start(d->comm->flight, NULL, settings->comm.timeout_ns, on_expire,
                                        d, &d->watchdog, err),
                     err_comm);
    /* All ranks must run the same build of the library. Their options may differ. */
    if ((backend->caps & DDP_CAP_LAUNCHED) != 0)
        DDP_TRY_GOTO(ddp_handshake(d->comm, 0, NULL, err), err_comm);
    DDP_TRY_GOTO(ddp_group_add_world(d, err), err_comm);
    ddp_flight_phase(d->comm->flight, "user code");
    *out = d;
    return 0;

err_comm:
    if (!err->agreed) /* If the ranks have agreed on this error, no rank waits. */
        ddp_comm_abort(d->comm, rc);
    ddp_watchdog_stop(d->watchdog);
    ddp_comm_destroy(d->comm);
err_world:
    free(d);
err_slot:
    slot_free(slot);
    return rc;
}

int ddp_init(const struct ddp_init_options *options, struct ddp **out, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    struct ddp_settings settings;
    struct ddp_launcher launcher;
    DDP_TRY(ddp_settings_fill(options, &settings, err));
    DDP_TRY(ddp_launcher_detect(&launcher, err));
    const bool launched = launcher.kind != DDP_LAUNCHER_NONE;
    const char *name = settings.options.backend;
    if (name == NULL)
        name = launched ? "mpi" : "self";
    const struct ddp_backend *backend = ddp_backend_find(name);
    if (backend == NULL || (backend->caps & (DDP_CAP_LAUNCHED | DDP_CAP_SELF)) == 0) {
        ddp_fail(err, DDP_EUSAGE, "backend '%s' cannot open a world in ddp_init; legal: mpi, self",
                 name);
        return ddp_hint(err, "use ddp_run to start ranks on this machine over shared memory");
    }
    if ((backend->caps & DDP_CAP_SELF) != 0 && launcher.rank_info.size > 1)
        return ddp_fail(err, DDP_EMISMATCH,
                        "%s started %d processes, but backend '%s' would make %d worlds of them",
                        launcher.name, launcher.rank_info.size, name, launcher.rank_info.size);
    if ((backend->caps & DDP_CAP_SELF) != 0)
        launcher.rank_info = (struct ddp_rank_info){.size = 1, .local_size = 1, .segment_fd = -1};
    DDP_TRY(backend->probe(settings.module_dir, err));
    return ddp_open(backend, &launcher.rank_info, &settings, DDP_SLOT_PROCESS, out, err);
}

void ddp_finalize(struct ddp *d)
{
    if (d == NULL)
        return;
    const bool mpi = (d->comm->backend->caps & DDP_CAP_LAUNCHED) != 0;
    while (d->strategies != NULL)
        ddp_sync_destroy(d->strategies);
    while (d->bucketers != NULL)
        ddp_bucketer_destroy(d->bucketers);
    ddp_clear_parameters(d);
    ddp_group_release_all(d);
    ddp_watchdog_stop(d->watchdog);
    ddp_comm_destroy(d->comm);
    slot_leave(d->slot, mpi ? PROCESS_SPENT : PROCESS_FREE);
    free(d);
}

int ddp_rank(const struct ddp *d)
{
    return d->comm->rank;
}

int ddp_size(const struct ddp *d)
{
    return d->comm->size;
}

int ddp_local_rank(const struct ddp *d)
{
    return d->comm->rank_info.local_rank;
}

const char *ddp_name(const struct ddp *d)
{
    return d->comm->backend->name;
}

void ddp_abort(struct ddp *d, int code)
{
    d->aborted = true;
    ddp_comm_abort(d->comm, code < 0 ? code : DDP_ELOST);
}

int ddp_barrier(struct ddp *d, struct ddp_group *group, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    const struct ddp_note note = {.kind = DDP_NOTE_BARRIER};
    DDP_TRY(ddp_group_enter(d, group, &group, err));
    return ddp_agree(group, &note, NULL, err);
}

int ddp_alloc(struct ddp *d, size_t bytes, void **out, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    const struct ddp_note note = {.kind = DDP_NOTE_ALLOC, .call = bytes};
    struct ddp_group *world;
    DDP_TRY(ddp_group_enter(d, NULL, &world, err));
    DDP_TRY(ddp_agree(world, &note, NULL, err));
    return ddp_comm_alloc(d->comm, bytes, out, err);
}

void ddp_free(struct ddp *d, void *ptr)
{
    ddp_comm_free(d->comm, ptr);
}

struct run {
    struct ddp_settings settings;
    enum ddp_slot slot;
    int (*rank_main)(struct ddp *d, void *arg, struct ddp_err *err);
    void *arg;
};

static int run_rank(void *arg, struct ddp_launch_rank *launch, struct ddp_err *err)
{
    struct run *run = arg;
    struct ddp *d;
    DDP_TRY(
        ddp_open(ddp_backend_find("shm"), &launch->rank_info, &run->settings, run->slot, &d, err));
    int rc = run->rank_main(d, run->arg, err);
    /* rank_main may fail without a message or with a code of the wrong sign. */
    if (rc > 0)
        rc = DDP_EINTERNAL;
    if (rc != 0) {
        ddp_fail(err, rc, "rank_main failed");
        ddp_abort(d, rc);
    }
    ddp_finalize(d);
    return rc;
}

/* Returns the number of threads of this process, or 0 if /proc cannot be read. */
static int count_threads(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d != NULL)
        closedir(d);
    return n;
}

static int check_run(int ranks, bool threads, const struct ddp_settings *settings,
                     struct ddp_err *err)
{
    const char *backend = settings->options.backend;
    if (ranks < 1 || ranks > DDP_SHM_RANKS_MAX)
        return ddp_fail(err, DDP_EUSAGE, "cannot start %d ranks; legal: 1 to %d", ranks,
                        DDP_SHM_RANKS_MAX);
    if (backend != NULL && strcmp(backend, "shm") != 0)
        return ddp_fail(err, DDP_EUSAGE, "backend '%s' cannot start ranks; legal: shm", backend);
    if (slot_is_taken())
        return ddp_fail(err, DDP_EUSAGE, "this process is already a rank of a world");
    if (!threads && count_threads() > 1) {
        ddp_fail(err, DDP_EUSAGE,
                 "this process has %d threads, but a forked rank would have only one",
                 count_threads());
        return ddp_hint(err, "call ddp_run before starting threads, or pass threads = true");
    }
    return 0;
}

/* Copies the outcome of the launch into err. The text comes from the launcher's report, which names
 * the rank and its operation. The hint comes from the rank's own error. */
static int report_outcome(const struct ddp_launch_outcome *outcome, const struct ddp_err *cause,
                          struct ddp_err *err)
{
    if (outcome->code == 0)
        return 0;
    ddp_fail(err, outcome->code, "%s",
             outcome->report_text[0] != '\0' ? outcome->report_text : cause->text);
    if (err != NULL)
        err->rank = outcome->rank;
    if (cause->hint[0] != '\0')
        ddp_hint(err, "%s", cause->hint);
    return outcome->code;
}

int ddp_run(int ranks, bool threads, const struct ddp_init_options *options,
            int (*rank_main)(struct ddp *d, void *arg, struct ddp_err *err), void *arg,
            struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    struct run run = {
        .slot = threads ? DDP_SLOT_THREAD : DDP_SLOT_PROCESS, .rank_main = rank_main, .arg = arg};
    DDP_TRY(ddp_settings_fill(options, &run.settings, err));
    DDP_TRY(check_run(ranks, threads, &run.settings, err));
    const struct ddp_launch_job job = {
        .ranks = ranks,
        .mode = threads ? DDP_LAUNCH_THREADS : DDP_LAUNCH_PROCESSES,
        .timeout_ns = run.settings.comm.timeout_ns,
        .heap_bytes = run.settings.comm.heap_bytes,
        .rank_main = run_rank,
        .arg = &run,
    };
    struct ddp_launch_outcome outcome;
    struct ddp_err cause = DDP_ERR_INIT;
    int rc = ddp_launch(&job, &outcome, &cause);
    if (rc != 0) {
        ddp_fail(err, rc, "%s", cause.text);
        return ddp_hint(err, "%s", cause.hint);
    }
    return report_outcome(&outcome, &cause, err);
}
