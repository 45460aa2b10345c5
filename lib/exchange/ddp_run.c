/* ddp_run: runs ranks under our own launcher. */
#include <dirent.h>
#include <string.h>

#include "comm/backend.h"
#include "comm/shm/comm_shm.h"
#include "exchange/ddp_impl.h"

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
    if (ddp_slot_is_taken())
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
