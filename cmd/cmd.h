/* Commands: one file each, its descriptor on top, one line in command_list.h.
 *
 * A plain command has run(). A command that needs ranks (prepare, heap_bytes, rank_main) gets them
 * from world.c, which picks the launcher and backend, starts the ranks, owns the record and its
 * sinks, and turns every death into a message, a partial document and an exit code. cmd/ parses,
 * wires and prints; it computes nothing. */
#ifndef DDP_CMD_CMD_H
#define DDP_CMD_CMD_H

#include <stdio.h>

#include "base/log.h"
#include "base/opt.h"
#include "comm/backend.h"
#include "comm/launch.h"
#include "comm/launcher.h"
#include "record/record.h"

struct ddp_cmd;

/* One run of the program. */
struct ddp_app {
    struct ddp_log log; /* stderr */
    FILE *out;          /* stdout: data only */
    int argc;
    char *const *argv; /* whole command line */
    const struct ddp_cmd *cmd;
    struct ddp_launcher launcher;
    struct ddp_err launcher_error; /* not 0: who started us is not known, and why; "own" then */
    char binary_dir[4096];         /* where the running binary really lies: modules are beside it */
};

/* Options every command with ranks has; the first member of its values. */
struct ddp_world_options {
    struct ddp_int_list ranks; /* n 0: all usable */
    const char *backend;       /* "auto" or a name */
    int launch;                /* enum ddp_launch_mode */
    double timeout_s;
    int64_t seed;
    const char *json;
    struct ddp_string_list formats; /* NAME[=FILE] */
    int progress;                   /* 0 auto, 1 always, 2 never */
    bool share_gpu;
    char label[64]; /* no option: marks the whole record; for a command's check to set */
    bool quiet, verbose, help;
};

/* Rows of struct ddp_world_options, for a values struct `type` whose member `world` it is. */
#define DDP_WORLD_ROWS(type)                                                                       \
    {"ranks",                                                                                      \
     0,                                                                                            \
     DDP_OPT_INT_LIST,                                                                             \
     offsetof(type, world.ranks),                                                                  \
     "N[,N...]",                                                                                   \
     NULL,                                                                                         \
     "World",                                                                                      \
     "rank counts; own launcher: started afresh for each; under mpiexec: the first N (default: "   \
     "all usable cores, at most 8)",                                                               \
     1,                                                                                            \
     256,                                                                                          \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL},                                                                                        \
        {"backend",                                                                                \
         0,                                                                                        \
         DDP_OPT_STRING,                                                                           \
         offsetof(type, world.backend),                                                            \
         "NAME",                                                                                   \
         "auto",                                                                                   \
         "World",                                                                                  \
         "auto, self, shm, mpi, nccl: how ranks reach each other; see `ddpbench list`",            \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"share-gpu",                                                                              \
         0,                                                                                        \
         DDP_OPT_FLAG,                                                                             \
         offsetof(type, world.share_gpu),                                                          \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "World",                                                                                  \
         "backend nccl: several ranks on a GPU, for correct results; no bandwidth is shown",       \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"launch",                                                                                 \
         0,                                                                                        \
         DDP_OPT_ENUM,                                                                             \
         offsetof(type, world.launch),                                                             \
         "MODE",                                                                                   \
         "processes",                                                                              \
         "World",                                                                                  \
         "own launcher: ranks as processes or as threads of one process",                          \
         0,                                                                                        \
         0,                                                                                        \
         &ddp_launch_words,                                                                        \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"timeout",                                                                                \
         'T',                                                                                      \
         DDP_OPT_DOUBLE,                                                                           \
         offsetof(type, world.timeout_s),                                                          \
         "S",                                                                                      \
         "60",                                                                                     \
         "World",                                                                                  \
         "deadline in seconds of every wait, init and barriers included",                          \
         0.1,                                                                                      \
         86400,                                                                                    \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"seed",      0,                                                                           \
         DDP_OPT_INT, offsetof(type, world.seed),                                                  \
         "N",         "1",                                                                         \
         "World",     "of everything random",                                                      \
         0,           9007199254740991.0,                                                          \
         NULL,        NULL,                                                                        \
         NULL},                                                                                    \
        {"json",                                                                                   \
         0,                                                                                        \
         DDP_OPT_STRING,                                                                           \
         offsetof(type, world.json),                                                               \
         "FILE",                                                                                   \
         NULL,                                                                                     \
         "Output",                                                                                 \
         "write the result as JSON (- for stdout, instead of the table)",                          \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"format",                                                                                 \
         0,                                                                                        \
         DDP_OPT_STRING_LIST,                                                                      \
         offsetof(type, world.formats),                                                            \
         "NAME[=FILE]",                                                                            \
         NULL,                                                                                     \
         "Output",                                                                                 \
         "reporters, several at once: see `ddpbench list` (default table)",                        \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"progress",                                                                               \
         0,                                                                                        \
         DDP_OPT_ENUM,                                                                             \
         offsetof(type, world.progress),                                                           \
         "WHEN",                                                                                   \
         "auto",                                                                                   \
         "Output",                                                                                 \
         "progress on stderr: auto means on a terminal",                                           \
         0,                                                                                        \
         0,                                                                                        \
         &ddp_progress_words,                                                                      \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"quiet", 'q',  DDP_OPT_FLAG, offsetof(type, world.quiet),                                 \
         NULL,    NULL, "Output",     "errors only on stderr",                                     \
         0,       0,    NULL,         NULL,                                                        \
         NULL},                                                                                    \
        {"verbose", 'v',  DDP_OPT_FLAG, offsetof(type, world.verbose),                             \
         NULL,      NULL, "Output",     "more on stderr",                                          \
         0,         0,    NULL,         NULL,                                                      \
         NULL},                                                                                    \
    {                                                                                              \
        "help", 'h', DDP_OPT_FLAG, offsetof(type, world.help), NULL, NULL, "Output",               \
            "this text; runs nothing", 0, 0, NULL, NULL, NULL                                      \
    }

extern const struct ddp_opt_words ddp_launch_words, ddp_progress_words;

/* What rank 0 sends home. */
enum ddp_message {
    DDP_MESSAGE_POINT = 1, /* struct ddp_point, then sample_count doubles */
    DDP_MESSAGE_TRAIN,     /* struct ddp_train_run */
    DDP_MESSAGE_EPOCH,     /* struct ddp_epoch */
    DDP_MESSAGE_TRAIN_END, /* struct ddp_train_run */
    DDP_MESSAGE_CONTROL,   /* struct ddp_control */
    DDP_MESSAGE_STAGE,     /* for ddp_cmd_stages.keep alone */
    DDP_MESSAGE_PROGRESS,  /* text */
    DDP_MESSAGE_NOTE,      /* text */
    DDP_MESSAGE_COMM       /* struct ddp_comm_times */
};

/* The communicator's opening, splitting and closing, as in struct ddp_record. */
struct ddp_comm_times {
    double init_ns, split_ns, destroy_ns;
};

/* What a rank of a world command works with. emit functions are for rank 0, synchronous: when they
 * return, the record has it, on disk. */
struct ddp_rank {
    struct ddp_app *app;
    struct ddp_comm *comm;
    const struct ddp_world_options *world;
    struct ddp_launch_rank *launch; /* NULL under an outside launcher */
    struct ddp_world *home;         /* non-NULL where the record lives in this process */
    /* Of a cell of a sweep, else zero. launch_number, first_place, of: its points' place among all
     * (record.h). prefix: of progress lines. has: is this point there from an earlier run? */
    int launch_number, first_place, of;
    int *measured; /* points of the launch so far; counted on by each */
    const char *prefix;
    bool has_control; /* and needs none of its own */
    bool (*has)(void *arg, const char *id);
    void *has_arg;
};
int ddp_emit_point(struct ddp_rank *rank, const struct ddp_point *point, const double *samples,
                   struct ddp_err *err) DDP_MUST_CHECK;
int ddp_emit_control(struct ddp_rank *rank, const struct ddp_control *control,
                     struct ddp_err *err) DDP_MUST_CHECK;
int ddp_emit_train(struct ddp_rank *rank, const struct ddp_train_run *run,
                   struct ddp_err *err) DDP_MUST_CHECK; /* start */
int ddp_emit_epoch(struct ddp_rank *rank, const struct ddp_epoch *epoch,
                   struct ddp_err *err) DDP_MUST_CHECK;
int ddp_emit_train_end(struct ddp_rank *rank, const struct ddp_train_run *run,
                       struct ddp_err *err) DDP_MUST_CHECK; /* replaces the last run's scalars */
/* For the command's stages.keep. */
int ddp_emit_stage(struct ddp_rank *rank, const void *payload, size_t bytes,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Progress line for a terminal: replaces the one before; dropped when progress is off. Never fails
 * a run. */
void ddp_emit_progress(struct ddp_rank *rank, const char *fmt, ...) DDP_PRINTF(2, 3);
/* A line on stderr, said once. */
void ddp_emit_note(struct ddp_rank *rank, const char *fmt, ...) DDP_PRINTF(2, 3);

#define DDP_PREPARE_DONE 1 /* positive: no error */
#define DDP_CLOSE_MORE   1 /* of ddp_cmd_stages.close: as much as one run does; err says of what */

enum ddp_cmd_flag {
    DDP_CMD_NEEDS_WORLD = 1 << 0, /* values begin with struct ddp_world_options */
    DDP_CMD_COLLECTIVE = 1 << 1,  /* one of the collectives, for help */
    DDP_CMD_EVERY_RANK = 1 << 2   /* a plain command that all processes of a launcher run */
};

/* For a command that starts ranks several times, in an order of its own, and keeps what they
 * measure beside the record (sweep). home: the process that owns the record. */
struct ddp_cmd_stages {
    /* The i-th start: its backend (NULL: the one chosen) and ranks; false: there are no more. In
     * the process that forks the ranks; under mpiexec in each, with the same answers. */
    bool (*next)(void *values, int i, const char **backend, int *ranks);
    /* Home; all but the points is in the record, and nothing is written yet: adds what an earlier
     * run has left. */
    int (*open)(void *values, struct ddp_record *record, struct ddp_err *err);
    /* Under an outside launcher, after open: what the home knows becomes known to all.
     * Collective. */
    int (*share)(void *values, struct ddp_comm *comm, struct ddp_err *err);
    /* Home: an enum ddp_message of rank 0, before the record has it and anybody sees it. */
    int (*keep)(void *values, uint32_t type, const void *payload, size_t bytes,
                struct ddp_err *err);
    /* Home, before the last documents: puts the record in order. code: how the run ended; returns
     * it, or another with err filled, or DDP_CLOSE_MORE: the record is partial, but no error. */
    int (*close)(void *values, struct ddp_record *record, int code, struct ddp_err *err);
    /* Home, after them, also when there was no open. code: of the whole, outputs included. */
    void (*closed)(void *values, int code);
};

struct ddp_cmd {
    const char *name;
    const char *const *aliases; /* NULL-terminated, or NULL */
    const char *summary;        /* one line */
    const char *operands;       /* "[WHAT]", "" none */
    const char *details;        /* paragraphs after the options in help, may be NULL */
    const struct ddp_opt *rows; /* includes help */
    size_t values_bytes, help_offset;
    unsigned flags;
    /* Options for another program, which the rows do not have: not parsed, left in app->argv for
     * run. May be NULL. */
    bool (*is_foreign)(const char *word);
    /* Plain commands. Returns a code; prints to app->out. */
    int (*run)(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err);
    /* World commands. check: after parsing, in every process, before anything is started: completes
     * the values (what one option means for another) and says whether they are legal. Cheap. */
    int (*check)(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err);
    /* Home, after check: the i-th file that it reads, or keeps besides its outputs: none of these
     * may be it. Its answer NULL: there are no more; NULL itself: there are none. */
    const char *(*spared)(const void *values, int i);
    /* After the backend and largest rank count are known, in the process that forks the ranks (or
     * each, under mpiexec): loads data, refuses what does not fit. DDP_PREPARE_DONE: everything
     * asked for has been done (--dry-run), no ranks are needed. */
    int (*prepare)(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err);
    /* Registered memory a rank needs, bytes; after prepare. */
    uint64_t (*heap_bytes)(const void *values, int ranks);
    /* Will ranks use communicators from a second thread (coll/async.h)? NULL: no. */
    bool (*threads)(const void *values);
    /* Can it run on GPUs with these values? 0, or DDP_EUNAVAIL with the reason. out: what of them
     * the backend must know, share apart. NULL: it cannot. After check. */
    int (*gpu)(const void *values, struct ddp_gpu_options *out, struct ddp_err *err);
    /* In each rank. Collective. */
    int (*rank_main)(struct ddp_rank *rank, void *values, struct ddp_err *err);
    void (*release)(void *values);       /* frees what prepare loaded; may be NULL */
    const struct ddp_cmd_stages *stages; /* NULL: one start for each of --ranks */
};

const struct ddp_cmd *const *ddp_commands(void); /* NULL-terminated */
const struct ddp_cmd *ddp_command_find(const char *name);

/* Runs a world command to its end; returns the code the process exits with. */
int ddp_world_run(struct ddp_app *app, const struct ddp_cmd *cmd, void *values,
                  struct ddp_err *err) DDP_MUST_CHECK;

/* Ranks where the user does not say how many: all of an outside launcher's, else one a usable core,
 * at most so many. */
#define DDP_DEFAULT_RANKS_MAX 8
int ddp_world_default_ranks(const struct ddp_app *app);

/* Help of a command (usage, options, details) and of the program. */
void ddp_help_command(const struct ddp_cmd *cmd, FILE *out);
void ddp_help_program(FILE *out);

#endif
