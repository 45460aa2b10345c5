/* The home of a run: the process that owns the record and its sinks. With our own launcher that is
 * the parent of the ranks, so no death of a rank can take the results along; under mpiexec it is
 * rank 0. Private to world*.c. */
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
    void *values; /* of the command; begins with its world options */
    const struct ddp_world_options *options;
    const struct ddp_backend *backend;
    char module_dir[4200];
    int counts[DDP_OPT_LIST_MAX]; /* rank counts to run, in order */
    int count_count, max_ranks;
    struct ddp_record record;
    struct ddp_report_set *reports; /* NULL away from home */
    const struct ddp_comm *comm;    /* under an outside launcher, for its watchdog */
    bool show_progress, progress_shown;
    /* With our own launcher: open from before the first document until after the last. */
    bool watching;
    struct ddp_signal_watch watch;
    struct ddp_launch_run *running; /* while ranks run */
    /* Under an outside launcher: who holds it may use record and reports; a watchdog or a signal
     * may have something to say while the main thread writes. */
    pthread_mutex_t lock;
    _Atomic(bool) expired; /* a deadline has ended the run, and the reason was said */
    bool hurry;            /* the job ends at once: no time for a disk */
};

/* Are the ranks ours to start? Else an outside launcher has. */
bool ddp_world_is_own(const struct ddp_world *w);

/* Checks the outputs the options name: all that can be wrong with them, changing nothing. */
int ddp_home_check(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills in what is known of the record before anything is measured. */
int ddp_home_fill(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Opens them and writes the first document. After check and fill. */
int ddp_home_open(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Handles one message; when it returns 0 the record has it and every document on disk shows it. */
int ddp_home_message(struct ddp_world *w, uint32_t type, const void *payload, size_t bytes,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Final documents: status and reason follow from `code` and `reason`. Keeps the first failure:
 * returns code, or the writing error. */
int ddp_home_close(struct ddp_world *w, int code, const char *reason, struct ddp_err *err);
void ddp_home_clear_progress(struct ddp_world *w);
void ddp_home_comm_times(struct ddp_world *w, const struct ddp_comm_times *times);
/* How long the slowest rank took to open the world, and takes to split it; destroy_ns: NaN.
 * Collective. */
int ddp_world_comm_times(struct ddp_comm *comm, struct ddp_comm_times *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* Says what was chosen where the user was silent; once all is checked. */
void ddp_world_announce(const struct ddp_world *w);

/* The i-th start of ranks: of the command's own, else one for each of counts. Sets w->backend.
 * *ranks 0: there are no more. */
int ddp_world_stage(struct ddp_world *w, int i, int *ranks, struct ddp_err *err) DDP_MUST_CHECK;

/* The two ways to have ranks. */
int ddp_world_run_own(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_world_run_launched(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Communicator options of this run. */
void ddp_world_comm_options(const struct ddp_world *w, int ranks, struct ddp_comm_options *out);

#endif
