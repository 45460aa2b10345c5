/* Runs a command with ddpbench's own launcher. This process forks the ranks, collects their
 * results, and outlives them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/sysinfo.h"
#include "world.h"

static int rank_main(void *arg, struct ddp_launch_rank *launch, struct ddp_err *err)
{
    struct ddp_world *w = arg;
    struct ddp_comm_options options;
    struct ddp_comm *comm;
    ddp_world_comm_options(w, launch->rank_info.size, &options);
    ddp_flight_phase(launch->flight, "init");
    DDP_TRY(ddp_comm_create(w->backend, &launch->rank_info, &options, &comm, err));
    struct ddp_rank rank = {.app = w->app, .comm = comm, .world = w->options, .launch = launch};
    struct ddp_comm_times times;
    int rc = ddp_world_comm_times(comm, &times, err);
    if (rc == 0)
        rc = w->cmd->rank_main(&rank, w->values, err);
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
    ddp_collector_clear_progress(w);
    ddp_logf(&w->app->log, DDP_LOG_WARN, "%s", line);
}

/* Starts the ranks once and waits for their end. Returns the outcome's code and stores the
 * outcome's report in err. */
static int launch_once(struct ddp_world *w, int ranks, struct ddp_err *err)
{
    struct ddp_launch_outcome outcome;
    struct ddp_launch_job job = {
        .ranks = ranks,
        .mode = (enum ddp_launch_mode)w->options->launch,
        .timeout_ns = (int64_t)(w->options->timeout_s * 1e9),
        .heap_bytes = w->cmd->heap_bytes ? w->cmd->heap_bytes(w->values, ranks) : 0,
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
    if (outcome.code != 0 && err->code == 0)
        ddp_fail(err, outcome.code, "%s",
                 outcome.report_text[0] ? outcome.report_text : "a rank failed");
    return outcome.code;
}

/* Opens the outputs, starts the ranks for every rank count or launch group, and closes the outputs.
 * A signal ends the run, but each document on disk stays complete. */
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
    /* If a signal ended the wait for a slow reader of an output, report the signal and not the
     * write error. */
    if (rc == DDP_EIO && ddp_signal_watch_ended(&w->watch, &ended) != 0) {
        *err = ended;
        rc = ended.code;
    }
    w->watching = false;
    ddp_signal_watch_close(&w->watch);
    return rc;
}

int ddp_world_run_own(struct ddp_world *w, struct ddp_err *err)
{
    DDP_TRY(ddp_collector_check(w, err));
    if (w->cmd->prepare) {
        int prepared = w->cmd->prepare(w->app, w->values, w->backend->name, w->max_ranks, err);
        if (prepared != 0)
            return prepared == DDP_PREPARE_DONE ? 0 : prepared;
    }
    ddp_world_announce(w);
    int rc = run_watched(w, err);
    if (DDP_FAULTS && ddp_fault_missed() != NULL)
        ddp_logf(&w->app->log, DDP_LOG_WARN, "DDPBENCH_FAULT: '%s' was never reached",
                 ddp_fault_missed());
    return rc;
}
