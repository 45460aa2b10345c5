/* The state of a command that runs with ranks. The collector is the process that owns the record
 * and the outputs. If ddpbench starts the ranks itself, the collector is the parent of the ranks,
 * so the results survive the death of any rank. Under an outside launcher (mpiexec, srun,
 * torchrun), the collector is rank 0. */
#ifndef DDP_RUN_WORLD_H
#define DDP_RUN_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "launch/signal_watch.h"
#include "report/report.h"
#include "run/command.h"

struct ddp_world {
    struct ddp_app *app;
    const struct ddp_cmd *cmd;
    const struct ddp_job *job;      /* cmd->job */
    struct ddp_sweep_values *sweep; /* values, if the job is a sweep; else NULL */
    void *values; /* the command's values, which begin with struct ddp_world_options */
    const struct ddp_world_options *options;
    const struct ddp_backend *backend;
    char module_dir[4200];
    int counts[DDP_OPT_LIST_MAX]; /* rank counts to run, in order */
    int count_count, max_ranks;
    struct ddp_record record;
    struct ddp_report_set *reports; /* NULL outside the collector */
    const struct ddp_comm *comm;    /* set under an outside launcher, for the watchdog */
    /* Under an outside launcher: a number for each rank. Ranks of one host have the same number. */
    uint64_t *host_of;
    /* The hosts that this rank asks when a deadline expires; NULL: none (silent_hosts.h). */
    _Atomic(struct ddp_host_watch *) host_watch;
    bool show_progress;
    /* The code with which the process exits if the run succeeds: 0, DDP_EREGRESSION or
     * DDP_EINCONCLUSIVE. */
    int verdict_code;
    /* True while `watch` is open: from before the first document is written until after the last
     * one. Always false under an outside launcher. */
    bool watching;
    struct ddp_signal_watch watch;
    struct ddp_launch_run *running; /* set while ranks run */
    /* Protects `record` and `reports` under an outside launcher, because there the watchdog or the
     * signal thread may write the last documents while the main thread is writing. */
    pthread_mutex_t lock;
    _Atomic(bool) expired; /* a deadline has ended the run, and the reason was reported */
    /* True when a deadline or a signal ends the job. The last writes then do not wait for the disk.
     * Any thread may set this flag. */
    _Atomic(bool) no_fsync;
};

/* Returns true if this process starts the ranks, and false if an outside launcher has started
 * them. */
bool ddp_world_is_own(const struct ddp_world *w);

/* Checks the outputs that the options name, but does not create or change them. */
int ddp_collector_check(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills in the parts of the record that are known before anything is measured. */
int ddp_collector_fill(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Opens the outputs and writes the first document. Called after check and fill. */
int ddp_collector_open(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Handles one message from rank 0. If 0 is returned, the measurements in the message are in the
 * record. A point or epoch is also in every document file and, in a sweep with a journal, in the
 * journal. */
int ddp_collector_message(struct ddp_world *w, uint32_t type, const void *payload, size_t bytes,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Removes the line of progress and the rows of the table that may still change, because a message
 * is about to be written to the terminal. */
void ddp_collector_make_room(struct ddp_world *w);
/* Writes the last documents, whose status and reason follow from `code` and `reason`, and closes
 * the outputs. If `code` stands for a signal, *err becomes a message about what is done and saved.
 * Returns `code` if it is an error. Otherwise returns 0, an error of the sweep or of cmd->conclude,
 * or a write error. */
int ddp_collector_close(struct ddp_world *w, int code, const char *reason, struct ddp_err *err);
void ddp_collector_comm_times(struct ddp_world *w, const struct ddp_comm_times *times);
/* Fills *out. init_ns is the longest time that a rank needed to create comm. If the backend uses
 * GPUs and init_ns is at most 2 s, creates a group of all ranks to measure split_ns, the longest
 * time that a rank needs to create the group. Otherwise split_ns is NaN. destroy_ns is always NaN.
 * Collective. */
int ddp_world_comm_times(struct ddp_comm *comm, struct ddp_comm_times *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

/* Gathers the host and the GPU of each rank. The caller frees *out [comm->size]. Collective. */
int ddp_world_gather_ranks(struct ddp_comm *comm, struct ddp_rank_device **out,
                           struct ddp_err *err) DDP_MUST_CHECK;

/* If this process starts the ranks, and the user gave no number of ranks, prints the chosen number.
 * Prints a note if the Slurm job has nodes that this run does not use. Warns if ranks share cores;
 * under an outside launcher only rank 0 warns. Called after the checks, so that these messages do
 * not appear before a refusal. */
void ddp_world_announce(const struct ddp_world *w);

/* Prepares the job, then calls cmd->show, which may print something instead of a measurement.
 * Returns DDP_PREPARE_DONE if no ranks are needed. */
int ddp_world_prepare(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Sets *ranks for the i-th start of the ranks: to the i-th rank count or, in a sweep, to the number
 * of ranks of the i-th launch group. *ranks becomes 0 if no start is left. In a sweep, also sets
 * w->backend and checks that this backend can run here. */
int ddp_world_launch_group(struct ddp_world *w, int i, int *ranks,
                           struct ddp_err *err) DDP_MUST_CHECK;

/* Runs the command with the ranks of an outside launcher. */
int ddp_world_run_launched(struct ddp_world *w, struct ddp_err *err) DDP_MUST_CHECK;
/* Checks that there are at least `ranks` GPUs, for a backend that needs one GPU per rank. `subject`
 * begins the message, such as "--ranks 4". Returns 0 or DDP_EUNAVAIL. */
int ddp_world_check_gpus(const struct ddp_backend *backend, const char *subject, int ranks,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Refuses --share-gpu and --graph, because `backend` uses no GPU. Returns 0 or DDP_EUSAGE. */
int ddp_world_check_no_gpu(const struct ddp_backend *backend, const struct ddp_gpu_options *asked,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Fills *out with the communicator options of this run. */
void ddp_world_comm_options(const struct ddp_world *w, int ranks, struct ddp_comm_options *out);
/* Creates a communicator of backend mpi for all ranks that mpiexec or srun started. Commands that
 * have no `job` (struct ddp_cmd), such as doctor, use this function. timeout_ns is the time limit
 * of each wait. Collective. */
int ddp_world_join(const struct ddp_app *app, int64_t timeout_ns, struct ddp_comm **out,
                   struct ddp_err *err) DDP_MUST_CHECK;

#endif
