/* The interface of a command. Each command is one file with a descriptor (struct ddp_cmd), and one
 * line in command_list.h.
 *
 * A command without ranks implements run(). A command with ranks implements rank_main() and, as
 * needed, check(), prepare() and heap_bytes(). main.c calls check(). world*.c calls the
 * others, chooses the backend, starts or joins the ranks, and owns the record and the outputs. If a
 * rank dies, world*.c writes a partial document and returns an error. */
#ifndef DDP_CMD_CMD_H
#define DDP_CMD_CMD_H

#include <stdio.h>

#include "base/log.h"
#include "base/opt.h"
#include "comm/backend.h"
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
    struct ddp_launcher launcher;
    /* If code is not 0, the launcher could not be detected. `launcher` then has the kind
     * DDP_LAUNCHER_NONE, with the rank and size that could be read. */
    struct ddp_err launcher_error;
    char binary_dir[4096]; /* the folder of the running binary */
};

/* Options that every command with ranks has. They are the first member of the command's values. */
struct ddp_world_options {
    struct ddp_int_list ranks; /* n is 0 if the option was not given */
    const char *backend;       /* "auto" or a name */
    int launch;                /* enum ddp_launch_mode */
    double timeout_s;
    int64_t seed;
    const char *json;
    struct ddp_string_list formats; /* NAME[=FILE] */
    int progress;                   /* 0 auto, 1 always, 2 never */
    bool share_gpu;
    char label[64]; /* not an option; a command's check() may label the whole record */
    bool quiet, verbose, help;
};

extern const struct ddp_opt ddp_world_rows[];
/* The choices of --feedback: auto, on, off. */
extern const char *const ddp_feedback_names[];

/* Messages that rank 0 sends to the collector. */
enum ddp_message {
    DDP_MESSAGE_POINT = 1, /* struct ddp_point, then sample_count doubles */
    DDP_MESSAGE_TRAIN,     /* struct ddp_train_run */
    DDP_MESSAGE_EPOCH,     /* struct ddp_epoch */
    DDP_MESSAGE_TRAIN_END, /* struct ddp_train_run */
    DDP_MESSAGE_CONTROL,   /* struct ddp_control: the memory-copy baseline */
    DDP_MESSAGE_SWEEP,     /* passed to ddp_cmd_launch_groups.keep only */
    DDP_MESSAGE_PROGRESS,  /* text */
    DDP_MESSAGE_NOTE,      /* text */
    DDP_MESSAGE_COMM       /* struct ddp_comm_times */
};

/* Times of opening, splitting and closing the communicator, as in struct ddp_record. */
struct ddp_comm_times {
    double init_ns, split_ns, destroy_ns;
};

/* The context of one rank that runs a command. The ddp_emit functions send from rank 0 and do
 * nothing on other ranks. When ddp_emit_point or ddp_emit_epoch returns 0, the documents on disk
 * contain the data. */
struct ddp_rank {
    struct ddp_app *app;
    struct ddp_comm *comm;
    const struct ddp_world_options *world;
    struct ddp_launch_rank *launch; /* NULL under an outside launcher */
    struct ddp_world *collector;    /* NULL if the parent is the collector */
    /* The members below describe an item of a sweep. They are zero outside a sweep. */
    /* The number of the repetition, the index of the item's first point, and the number of points
     * per repetition. They become the members `launch`, `place` and `of` of a point. */
    int launch_number, first_place, of;
    int *measured;      /* number of points measured in this repetition */
    const char *prefix; /* put before each progress line */
    bool has_control;   /* these ranks have measured the memory-copy baseline */
    /* Returns true if an earlier run has measured the point with this id. */
    bool (*has)(void *arg, const char *id);
    void *has_arg;
};
int ddp_emit_point(struct ddp_rank *rank, const struct ddp_point *point, const double *samples,
                   struct ddp_err *err) DDP_MUST_CHECK;
int ddp_emit_control(struct ddp_rank *rank, const struct ddp_control *control,
                     struct ddp_err *err) DDP_MUST_CHECK;
int ddp_emit_train(struct ddp_rank *rank, const struct ddp_train_run *run,
                   struct ddp_err *err) DDP_MUST_CHECK; /* a training run begins */
int ddp_emit_epoch(struct ddp_rank *rank, const struct ddp_epoch *epoch,
                   struct ddp_err *err) DDP_MUST_CHECK;
int ddp_emit_train_end(struct ddp_rank *rank, const struct ddp_train_run *run, struct ddp_err *err)
    DDP_MUST_CHECK; /* a training run ends; updates its scalar members */
/* Sends a payload to the command's stages->keep. */
int ddp_emit_sweep(struct ddp_rank *rank, const void *payload, size_t bytes,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Shows a progress line on stderr in place of the previous line. Does nothing if progress is
 * off. Ignores errors. */
void ddp_emit_progress(struct ddp_rank *rank, const char *fmt, ...) DDP_PRINTF(2, 3);
/* Prints a note on stderr. */
void ddp_emit_note(struct ddp_rank *rank, const char *fmt, ...) DDP_PRINTF(2, 3);

#define DDP_PREPARE_DONE 1 /* returned by prepare; positive, so not an error */
#define DDP_CLOSE_MORE                                                                             \
    1 /* returned by ddp_cmd_launch_groups.close if this run succeeded but others must follow; err \
       * says which */

enum ddp_cmd_flag {
    DDP_CMD_NEEDS_WORLD = 1 << 0, /* values begin with struct ddp_world_options */
    DDP_CMD_COLLECTIVE = 1 << 1,  /* a collective; for help */
    DDP_CMD_EVERY_RANK = 1 << 2 /* a command without ranks that every process of a launcher runs */
};

/* Functions of a command that decides itself when and how often ranks are started, and that also
 * stores measurements in a file of its own. sweep is the only such command. */
struct ddp_cmd_launch_groups {
    /* Sets *backend and *ranks for the i-th start of the ranks. *backend NULL means the chosen
     * backend. Returns false if no start is left. Called in the process that forks the ranks. Under
     * an outside launcher it is called in every rank and must give the same answer in each. */
    bool (*next)(void *values, int i, const char **backend, int *ranks);
    /* Called in the collector before the first document is written. The record then lacks only
     * measurements. Adds those of an earlier run to the record. */
    int (*open)(void *values, struct ddp_record *record, struct ddp_err *err);
    /* Called after open under an outside launcher. Tells all ranks which points the collector
     * already has. Collective. */
    int (*share)(void *values, struct ddp_comm *comm, struct ddp_err *err);
    /* Called in the collector with each message of rank 0 whose type is below
     * DDP_MESSAGE_PROGRESS, before the message is added to the record or shown. */
    int (*keep)(void *values, uint32_t type, const void *payload, size_t bytes,
                struct ddp_err *err);
    /* Called in the collector before the last documents are written. Sorts the entries of the
     * record into the order of the plan. code is the outcome of the run. Returns code, another code
     * with err filled, or DDP_CLOSE_MORE if the record is partial without an error. */
    int (*close)(void *values, struct ddp_record *record, int code, struct ddp_err *err);
    /* Called in the collector after the last documents, even if open was not called. code is the
     * outcome of the whole run, including errors of writing. */
    void (*closed)(void *values, int code);
};

struct ddp_cmd {
    const char *name;
    const char *const *aliases; /* NULL-terminated, or NULL */
    const char *summary;        /* one line for help */
    const char *operands;       /* for help, such as "[KIND...]"; "" if there are none */
    const char *details;        /* help text after the options; may be NULL */
    const struct ddp_opt *rows; /* including --help */
    size_t values_bytes, help_offset;
    unsigned flags;
    /* Optional. Returns true for an argument that belongs to another program. Such arguments are
     * not parsed. run() finds them in app->argv. */
    bool (*is_foreign)(const char *word);
    /* For commands without ranks. Runs the command, prints to app->out and returns a code. */
    int (*run)(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err);
    /* For commands with ranks. Completes and checks the values. Called in every process after
     * parsing, before the ranks start or connect. */
    int (*check)(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err);
    /* Optional. Returns the i-th file that the command reads or keeps besides its outputs, or NULL
     * past the last. Outputs that would overwrite one of these files are refused. Called in the
     * collector, after check. */
    const char *(*protected_path)(const void *values, int i);
    /* Loads data, and fails if the run does not fit into memory. Called when the backend and the
     * largest rank count are known, in the process that forks the ranks. Under an outside launcher
     * it is called in every rank. Returns DDP_PREPARE_DONE if no ranks are needed (--dry-run). */
    int (*prepare)(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err);
    /* Returns the bytes of registered memory that a rank needs. Called after prepare. */
    uint64_t (*heap_bytes)(const void *values, int ranks);
    /* Optional. Returns true if ranks use communicators from a second thread (coll/async.h). */
    bool (*threads)(const void *values);
    /* Optional. A command without this function cannot use GPUs. Fills *out, except for `share`,
     * with the GPU options that the backend needs. Returns DDP_EUNAVAIL with the reason if these
     * values cannot run on GPUs. Called after check. */
    int (*gpu)(const void *values, struct ddp_gpu_options *out, struct ddp_err *err);
    /* Runs the command in each rank. Collective. */
    int (*rank_main)(struct ddp_rank *rank, void *values, struct ddp_err *err);
    void (*release)(void *values); /* frees the data that prepare loaded; may be NULL */
    const struct ddp_cmd_launch_groups
        *stages; /* NULL if the ranks are started once per rank count */
};

const struct ddp_cmd *const *ddp_commands(void); /* NULL-terminated */
const struct ddp_cmd *ddp_command_find(const char *name);

/* Runs a command with ranks. Returns the code that the process exits with. */
int ddp_world_run(struct ddp_app *app, const struct ddp_cmd *cmd, void *values,
                  struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the default number of ranks. Under an outside launcher it is the number of its ranks.
 * Otherwise it is one per usable core, at most DDP_DEFAULT_RANKS_MAX. */
#define DDP_DEFAULT_RANKS_MAX 8
int ddp_world_default_ranks(const struct ddp_app *app);

/* Print the help of a command (usage, options, details) and of the program. */
void ddp_help_command(const struct ddp_cmd *cmd, FILE *out);
void ddp_help_program(FILE *out);

#endif
