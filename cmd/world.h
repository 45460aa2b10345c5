/* The collector of a run: the process that owns the record and the outputs. With our own launcher
 * it is the parent of the ranks, so the results survive the death of any rank. Under an outside
 * launcher it is rank 0. Private to world*.c. */
#ifndef DDP_CMD_WORLD_H
#define DDP_CMD_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "cmd.h"
#include "comm/signal_watch.h"
#include "report/report.h"

struct ddp_world {
    struct ddp_app *app;
    const struct ddp_cmd *cmd;
    void *values; /* the command's values; they begin with its world options */
    const struct ddp_world_options *options;
    const struct ddp_backend *backend;
    char module_dir[4200];
    int counts[DDP_OPT_LIST_MAX]; /* rank counts to run, in order */
    int count_count, max_ranks;
    struct ddp_record record;
    struct ddp_report_set *reports; /* NULL outside the collector */
    const struct ddp_comm *comm;    /* under an outside launcher; its watchdog needs it */
    bool show_progress, progress_shown;
    /* With our own launcher: true while `watch` is open, from before the first document to after
     * the last. */
    bool watching;
    struct ddp_signal_watch watch;
    struct ddp_launch_run *running; /* while ranks run */
    /* Under an outside launcher: protects record and reports, because the watchdog or the signal
     * thread may write the last documents while the main thread is writing. */
    pthread_mutex_t lock;
    _Atomic(bool) expired; /* a deadline has ended the run, and the reason was reported */
    /* mpiexec is ending the job: do not wait for the disk. Any thread may set it. */
    _Atomic(bool) no_fsync;
};

/* Returns true if this process starts the ranks, false if an outside launcher has. */
bool ddp_world_is_own(const struct ddp_world *w);

/* Checks the outputs that the options name as far as possible without changing anything. */
int ddp_collector_check(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills in the parts of the record that are known before anything is measured. */
int ddp_collector_fill(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Opens the outputs and writes the first document. Called after check and fill. */
int ddp_collector_open(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Handles one message from rank 0. When it returns 0, the record holds the message and every
 * document on disk shows it. */
int ddp_collector_message(struct ddp_world *w, uint32_t type, const void *payload, size_t bytes,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Writes the last documents, with status and reason from `code` and `reason`, and closes the
 * outputs. Returns `code` if it is an error, else the error of writing. */
int ddp_collector_close(struct ddp_world *w, int code, const char *reason, struct ddp_err *err);
void ddp_collector_clear_progress(struct ddp_world *w);
void ddp_collector_comm_times(struct ddp_world *w, const struct ddp_comm_times *times);
/* Measures how long the slowest rank took to create the communicator, and takes to split it;
 * destroy_ns becomes NaN. Collective. */
int ddp_world_comm_times(struct ddp_comm *comm, struct ddp_comm_times *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* Prints a note on the choices the user left open, once everything is checked. */
void ddp_world_announce(const struct ddp_world *w);

/* Finds the i-th start of ranks: the command's own launch group, else the i-th rank count. Sets
 * w->backend. *ranks becomes 0 if there are no more. */
int ddp_world_launch_group(struct ddp_world *w, int i, int *ranks,
                           struct ddp_err *err) DDP_MUST_CHECK;

/* Run the command with our own launcher, or with the ranks of an outside launcher. */
int ddp_world_run_own(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_world_run_launched(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills *out with the communicator options of this run. */
void ddp_world_comm_options(const struct ddp_world *w, int ranks, struct ddp_comm_options *out);

#endif
