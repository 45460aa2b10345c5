/* Declares the descriptor of a command, the state of one run of the program, the job that the ranks
 * do, and the messages that rank 0 sends to the collector. world.h starts or joins the ranks. */
#ifndef DDP_RUN_COMMAND_H
#define DDP_RUN_COMMAND_H

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/opt.h"
#include "comm/backend.h"
#include "comm/hosts.h"
#include "launch/launch.h"
#include "launch/launcher.h"
#include "record/record.h"

struct ddp_cmd;

/* One run of the program. */
struct ddp_app {
    struct ddp_log log; /* stderr */
    FILE *out;          /* stdout: data only */
    int argc;
    char *const *argv; /* the whole command line */
    const struct ddp_cmd *cmd;
    const struct ddp_cmd *const *commands; /* all commands, NULL-terminated */
    struct ddp_launcher launcher;
    /* If launcher_error.code is not 0, the launcher could not be detected. In this case `launcher`
     * has the kind DDP_LAUNCHER_NONE, and the rank and size as far as they could be read. */
    struct ddp_err launcher_error;
    char binary_dir[4096]; /* the folder of the running binary */
    bool in_sweep;         /* the command is an item of a sweep */
};

/* The options that all commands with ranks have. This struct is the first member of the struct of a
 * command's options. */
struct ddp_world_options {
    struct ddp_int_list ranks;    /* ranks.n is 0 if --ranks was not given */
    const char *hosts, *hostfile; /* values of --hosts and --hostfile, or NULL */
    const char *backend;          /* "auto" or a name */
    int launch;                   /* enum ddp_launch_mode */
    double timeout_s;
    int64_t seed;
    const char *json;
    struct ddp_string_list formats; /* NAME[=FILE] */
    int progress;                   /* 0 auto, 1 always, 2 never */
    bool share_gpu;
    int nccl_blocking; /* 0: NCCL's communicators are blocking; 1: they are not */
    int subset;        /* enum ddp_subset */
    const char *label; /* the user's name for the run, or NULL */
    /* The next three members are not options. A command's check() may set `note`, which is the note
     * of the record. check() may also add to protected_path the files that the outputs must not
     * overwrite, because the command reads or keeps these files. */
    char note[64];
    const char *protected_path[DDP_OPT_LIST_MAX];
    int protected_count;
    bool quiet, verbose, help;
    bool wide; /* show all columns of the table on a terminal */
    int plot;  /* index in ddp_plot_choices; only collectives have the option */
};

/* Returns true in the process that prints notes before the run begins. This process is the parent
 * of the ranks or, under an outside launcher, rank 0. */
static inline bool ddp_app_is_root(const struct ddp_app *app)
{
    return app->launcher.kind == DDP_LAUNCHER_NONE || app->launcher.rank_info.rank == 0;
}

/* Returns how many of `ranks` ranks share this machine's memory, or an upper bound of this
 * number. */
static inline int ddp_app_local_ranks(const struct ddp_app *app, int ranks)
{
    return app->launcher.kind == DDP_LAUNCHER_NONE
               ? ranks
               : DDP_MIN(ranks, app->launcher.rank_info.local_size);
}

/* Messages that rank 0 sends to the collector. */
enum ddp_message {
    DDP_MESSAGE_POINT = 1, /* struct ddp_point, then sample_count doubles */
    DDP_MESSAGE_TRAIN,     /* struct ddp_train_run */
    DDP_MESSAGE_EPOCH,     /* struct ddp_epoch */
    DDP_MESSAGE_TRAIN_END, /* struct ddp_train_run */
    DDP_MESSAGE_CONTROL,   /* struct ddp_control: the memory-copy baseline */
    DDP_MESSAGE_LEFT_OUT,  /* struct ddp_left_out */
    DDP_MESSAGE_SWEEP,     /* struct ddp_sweep_event */
    DDP_MESSAGE_PROGRESS,  /* text */
    DDP_MESSAGE_NOTE,      /* text */
    DDP_MESSAGE_COMM,      /* struct ddp_comm_times */
    DDP_MESSAGE_RANKS,     /* a struct ddp_rank_device for each rank */
    DDP_MESSAGE_MATRIX,    /* a packed struct ddp_matrix (record/matrix_record.h) */
    DDP_MESSAGE_HEALTH     /* a packed struct ddp_health (record/health_record.h) */
};

/* The times to open, split and close the communicator, and the transports of the communicator, as
 * in struct ddp_record. */
struct ddp_comm_times {
    double init_ns, split_ns, destroy_ns;
    char transports[160];
};

struct ddp_sweep_position;

/* The context of one rank that runs a job. The ddp_emit functions send data from rank 0. On other
 * ranks they do nothing, except that ddp_emit_baseline takes part in the measurement. When
 * ddp_emit_point or ddp_emit_epoch returns 0, the documents on disk contain the point or epoch. */
struct ddp_rank {
    struct ddp_comm *comm;
    struct ddp_launch_rank *launch;   /* NULL under an outside launcher */
    struct ddp_world *collector;      /* NULL if the parent is the collector */
    struct ddp_sweep_position *sweep; /* position in a sweep (sweep.h); NULL: no sweep */
};
int ddp_emit_point(struct ddp_rank *rank, const struct ddp_point *point, const double *samples,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Reports that a training run begins or, if `ended` is true, that it has ended. In the latter case,
 * *run replaces all members of the run in the record except its epochs. */
int ddp_emit_train(struct ddp_rank *rank, const struct ddp_train_run *run, bool ended,
                   struct ddp_err *err) DDP_MUST_CHECK;
int ddp_emit_epoch(struct ddp_rank *rank, const struct ddp_epoch *epoch,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Adds to the record the points that cannot be measured. Prints a note about them, unless the table
 * on the terminal shows them. */
int ddp_emit_left_out(struct ddp_rank *rank, const struct ddp_left_out *left_out,
                      struct ddp_err *err) DDP_MUST_CHECK;
int ddp_emit_matrix(struct ddp_rank *rank, const struct ddp_matrix *matrix,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Reports the verdict of `ddpbench health`, which also decides the exit code of the collector. */
int ddp_emit_health(struct ddp_rank *rank, const struct ddp_health *health,
                    struct ddp_err *err) DDP_MUST_CHECK;
struct ddp_sweep_event;
int ddp_emit_sweep(struct ddp_rank *rank, const struct ddp_sweep_event *event,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Measures the memory-copy speed of the ranks (bench/memory_baseline.h) and sends it to the
 * collector. Does nothing if these ranks have measured the speed for an earlier item of a sweep.
 * Collective. */
int ddp_emit_baseline(struct ddp_rank *rank, struct ddp_err *err) DDP_MUST_CHECK;
/* Shows a line of progress on stderr in place of the previous one. Does nothing if progress is off.
 * Ignores errors. */
void ddp_emit_progress(struct ddp_rank *rank, const char *fmt, ...) DDP_PRINTF(2, 3);
/* Prints a note on stderr. */
void ddp_emit_note(struct ddp_rank *rank, const char *fmt, ...) DDP_PRINTF(2, 3);

#define DDP_PREPARE_DONE 1 /* returned by ddp_cmd.show; positive, so not an error */

struct ddp_bench_plan;

/* An estimate of time and memory, made before the ranks start. */
struct ddp_estimate {
    double seconds; /* computed from rough speeds of an older core */
    /* The duration if every point takes all of --max-time. NaN: the points have no time limit. */
    double most;
    uint64_t bytes; /* memory of the ranks on this host */
};

/* The work of the ranks: measure points, train, or run the items of a sweep. `values` is the struct
 * of the command's parsed options. It begins with a struct ddp_world_options, and also holds the
 * plans and data that prepare() makes. Under an outside launcher, every rank calls all functions.
 * Otherwise the process that forks the ranks calls all functions except rank_main(). Each forked
 * rank calls rank_main(), and may call heap_bytes(), threads(), gpu() and plan() once more. */
struct ddp_job {
    /* Makes the plan and loads the data. Fails if the run does not fit into memory. Called when the
     * backend and the largest rank count, `ranks`, are known. Forked ranks inherit the plan and the
     * data. */
    int (*prepare)(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err);
    /* Optional. Returns the bytes of registered memory that a rank needs, or 0 if this is not known
     * before prepare(). NULL: a rank needs none. */
    uint64_t (*heap_bytes)(const void *values, int ranks);
    /* Optional. Returns true if ranks use communicators from a second thread (coll/async.h). NULL:
     * they do not. */
    bool (*threads)(const void *values);
    /* Sets the members `graph` and `window` of *out, which depend on the command. Returns
     * DDP_EUNAVAIL with the reason if a command with these values cannot run on GPUs. Called after
     * ddp_cmd.check. */
    int (*gpu)(const void *values, struct ddp_gpu_options *out, struct ddp_err *err);
    /* Estimates the duration with `ranks` ranks, and the memory of `local` ranks. Called after
     * prepare. Only commands that a sweep can run need it. */
    void (*estimate)(const void *values, int ranks, int local, struct ddp_estimate *out);
    /* Optional. Returns the points that `ranks` ranks measure. Called after prepare. */
    const struct ddp_bench_plan *(*plan)(const void *values, int ranks);
    /* Optional. Returns an upper bound of the number of epochs that all training runs together have
     * for one value of --ranks. */
    int64_t (*epochs)(const void *values);
    /* Runs the job in each rank. Collective. */
    int (*rank_main)(struct ddp_rank *rank, void *values, struct ddp_err *err);
    /* Optional. `others` are values of the same job for which prepare() has loaded the data. If
     * `values` need the same data, `values` borrow the data, and the function returns true.
     * Otherwise it returns false. Called before prepare() for `values`. */
    bool (*borrow)(void *values, const void *others);
    void (*release)(void *values); /* frees what prepare has made */
};
/* These call an optional function of the job. If the job has no such function, they return 0 or
 * false. */
uint64_t ddp_job_heap_bytes(const struct ddp_job *job, const void *values, int ranks);
bool ddp_job_threads(const struct ddp_job *job, const void *values);
/* Checks that `ranks` is at least 2, which a command that measures between ranks needs, and that
 * `bytes` bytes of memory are available on this host. Returns DDP_EUSAGE or DDP_ENOMEM. */
int ddp_job_check_ranks(const char *command, const char *backend, int ranks, uint64_t bytes,
                        struct ddp_err *err) DDP_MUST_CHECK;

/* The headings of `ddpbench help`. */
enum ddp_cmd_group {
    DDP_CMD_INSPECT, /* the default */
    DDP_CMD_MEASURE,
    DDP_CMD_TRAIN,
    DDP_CMD_JUDGE
};

struct ddp_cmd {
    enum ddp_cmd_group group;
    const char *name;
    const char *const *aliases; /* NULL-terminated, or NULL */
    const char *summary;        /* one line for help */
    const char *operands;       /* for help, such as "[KIND...]"; "" if there are none */
    const char *details;        /* help text after the options, in lines; may be NULL */
    /* Command lines, one per line, each after two spaces; NULL: none. A line that ends in a
     * backslash continues on the next line. The short help page shows the first two. */
    const char *examples;
    const struct ddp_opt *rows; /* including --help */
    size_t values_bytes, help_offset;
    unsigned flags;
    /* Optional. Returns true for an argument that belongs to another program. Such arguments are
     * not parsed. run() finds them in app->argv. */
    bool (*is_foreign)(const char *word);
    /* Only commands without ranks have this member. It runs the command, prints to app->out and
     * returns 0 or an error code. */
    int (*run)(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err);
    /* Only commands with ranks have the following members. `job` is the work of the ranks. It is
     * NULL if the command has no ranks. */
    const struct ddp_job *job;
    /* Completes and checks the values. Called in every process after parsing, before the ranks
     * start or connect. */
    int (*check)(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err);
    /* Optional. Called after job->prepare, in the same processes. If the user asked for something
     * instead of a measurement, such as the plan (--dry-run), prints it and returns
     * DDP_PREPARE_DONE. Otherwise returns 0, and the ranks start. Returns an error code if the
     * command must not run. */
    int (*show)(struct ddp_app *app, const void *values, const char *backend, int ranks,
                struct ddp_err *err);
    /* Optional. The collector calls it after the ranks have ended without an error. Adds to the
     * record the figures that follow from what was measured. */
    int (*conclude)(const void *values, struct ddp_record *record, struct ddp_err *err);
};

enum ddp_cmd_flag {
    DDP_CMD_EVERY_RANK = 1 << 0 /* a command without ranks that every process of a launcher runs */
};

/* Returns the command with this name or alias, or NULL. `commands` ends with NULL. */
const struct ddp_cmd *ddp_command_in(const struct ddp_cmd *const *commands, const char *name);

/* Returns DDP_EUSAGE if there are more than `most` operands. `takes` completes the message
 * "COMMAND takes ...". */
int ddp_check_operands(const struct ddp_app *app, const struct ddp_opt_result *parsed, int most,
                       const char *takes, struct ddp_err *err) DDP_MUST_CHECK;

/* Runs a command with ranks: starts or joins the ranks, collects their results in a record, and
 * writes the outputs. If a rank dies, the documents have the status "partial". Returns 0 or an
 * error code, which main() turns into the exit code. */
int ddp_world_run(struct ddp_app *app, const struct ddp_cmd *cmd, void *values,
                  struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the default number of ranks. Under an outside launcher this is the number of ranks that
 * the launcher started. Otherwise it is one rank per usable core, at most DDP_DEFAULT_RANKS_MAX. */
#define DDP_DEFAULT_RANKS_MAX 8
int ddp_world_default_ranks(const struct ddp_app *app);

#endif
