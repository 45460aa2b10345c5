/* `ddpbench sweep` measures many runs into one result, and continues after an interruption.
 *
 * A *cell* is one command line of the configuration. An *item* is a cell with one number of ranks.
 * A cell that sets no number of ranks makes an item for each number in the sweep's --ranks. A
 * *repetition* runs all items once. --launches sets the number of repetitions, and a member named
 * `launch` holds the number of a repetition. A *launch group* (struct ddp_sweep_launch_group) is
 * one start of the ranks. It runs the items of one repetition that have the same backend, rank
 * count and GPU options. --seed determines the random order of the launch groups and of the items
 * in each group. */
#ifndef DDP_RUN_SWEEP_H
#define DDP_RUN_SWEEP_H

#include "record/journal.h"
#include "run/command.h"
#include "run/sweep_plan.h"

/* A cell with one number of ranks. */
struct ddp_sweep_item {
    const struct ddp_cmd *cmd;
    int run, argc;     /* run: index in "runs" of the configuration */
    char *const *argv; /* borrowed from the plan */
    int ranks;
    bool whole;       /* the configuration says "all" ranks */
    char backend[16]; /* "auto" until prepare chooses a backend */
    /* The option values of cmd. cmd->check has run on them. After prepare(), cmd->job->prepare has
     * run too. */
    void *values;
    char extra[4][96]; /* options that the sweep adds to argv; `values` may point into them */
    int first_place;   /* index of the item's first point in a repetition; filled by prepare */
    struct ddp_estimate estimate; /* filled by prepare */
    struct ddp_gpu_options gpu;   /* GPU options that the backend needs */
};

/* A launch group. */
struct ddp_sweep_launch_group {
    int launch; /* repetition, from 1 */
    const char *backend;
    int ranks;
    struct ddp_gpu_options gpu;
    const int *items; /* indices of items [count], borrowed from ddp_sweep_values.order */
    int count;
};

/* The keys of the finished points and items. They are the same on every rank. */
struct ddp_sweep_done {
    uint64_t *keys;
    size_t count, capacity;
};

struct ddp_sweep_values {
    struct ddp_world_options world;
    const char *journal_path;
    bool restart, dry_run;
    int64_t launches;
    /* Filled by check. */
    const char *config_path;
    struct ddp_sweep_plan plan;
    struct ddp_sweep_item *items;
    int count;
    struct ddp_left_out *skipped; /* [skipped_count]: items that need too many ranks */
    int skipped_count;
    char default_journal[4096]; /* "" if there is none */
    /* Filled by prepare. */
    const struct ddp_app *app;
    int points;       /* number of points of a repetition */
    char backend[16]; /* the backend that "auto" stands for */
    int *order;       /* indices of items [launches * count] */
    struct ddp_sweep_launch_group *stages;
    int stage_count, current; /* current: index of the launch group that runs */
    /* The finished work, read from the journal. ddp_sweep_collector_keep updates `ended` and
     * `measured`. ddp_sweep_share copies the keys to the other ranks of an outside launcher. */
    struct ddp_sweep_done done;
    int ended;     /* number of finished items in all repetitions */
    int *measured; /* number of measured points per repetition [launches] */
    /* Under an outside launcher a run measures only this repetition. 0: none is left. */
    int only_launch;
    int64_t started_ns;
    /* Estimated seconds of all items of this run, and of its finished items. */
    double seconds_todo, seconds_done;
    struct ddp_sweep_collector *collector; /* sweep_collector.c; NULL outside the collector */
};

extern const struct ddp_job ddp_sweep_job;

/* sweep_config.c: reads the configuration, makes its items, and checks the options of each item. If
 * the function returns DDP_ECONFIG, the message names the file. */
int ddp_sweep_read(struct ddp_app *app, struct ddp_sweep_values *v,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sweep_release_items(struct ddp_sweep_values *v);
/* Fills *err with the error `cause` of an item, preceded by the item's place in the configuration.
 * DDP_EUSAGE becomes DDP_ECONFIG. */
int ddp_sweep_locate(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                     const struct ddp_err *cause, struct ddp_err *err);
/* Returns a copy of *app for an item's command. With this copy the command prints no notes. */
struct ddp_app ddp_sweep_item_app(const struct ddp_app *app, const struct ddp_sweep_item *item);
/* Writes the item's command line without the program's name, truncated to out_bytes. */
void ddp_sweep_item_text(const struct ddp_sweep_item *item, char *out, size_t out_bytes);

/* sweep_prepare.c: returns the item's points, or NULL for a training run. Called after prepare. */
const struct ddp_bench_plan *ddp_sweep_item_plan(const struct ddp_sweep_item *item);
/* Returns the path of the journal: the value of --journal, else the default path beside the result
 * document, or NULL if there is no journal. */
const char *ddp_sweep_journal_path(const struct ddp_sweep_values *v);
/* Returns the key of a point or, if id is DDP_SWEEP_END, the key of a finished item. */
uint64_t ddp_sweep_key(int launch, int item, const char *id);
#define DDP_SWEEP_END "" /* id of an item that has ended */
int ddp_sweep_done_add(struct ddp_sweep_done *done, uint64_t key,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Sorts the keys. ddp_sweep_done_has finds a key only after this function was called. */
void ddp_sweep_done_sort(struct ddp_sweep_done *done);
bool ddp_sweep_done_has(const struct ddp_sweep_done *done, uint64_t key);

/* A rank's progress through a launch group. The functions that follow are in sweep_run.c and run in
 * the ranks. */
struct ddp_sweep_position {
    const struct ddp_sweep_values *v;
    const struct ddp_sweep_launch_group *stage;
    int item;               /* index in v->items */
    int finished, measured; /* items finished in the group, points measured in the repetition */
    double seconds;         /* estimated duration of the finished items */
    /* v->ended and v->seconds_done when the group began. These two members of *v grow while the
     * group runs if rank 0 is the collector. */
    int ended_before;
    double done_before;
    int64_t item_ns;  /* when the item began */
    bool has_control; /* these ranks have already measured the memory-copy speed */
};
#define DDP_SWEEP_PROGRESS_BYTES 96
/* Writes the beginning of a line of progress: the number of the item, the elapsed time and the time
 * left, for example "[2/5, 40 s, about 3 min left] ". */
void ddp_sweep_progress(const struct ddp_sweep_position *at, char out[DDP_SWEEP_PROGRESS_BYTES]);
/* Returns true if an earlier run has measured the point with this id. */
bool ddp_sweep_has(const struct ddp_sweep_position *at, const char *id);
/* Replaces a point's position within its item by its position within the sweep. */
void ddp_sweep_set_place(struct ddp_sweep_position *at, struct ddp_point *point);
/* Returns the number of the repetition, or 0 if there is only one. */
int ddp_sweep_launch_number(const struct ddp_sweep_position *at);
int ddp_sweep_rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err);
/* Sends the keys of the finished points and items from rank 0 to all ranks, and checks that all
 * ranks have the same plan. Collective. */
int ddp_sweep_share(struct ddp_sweep_values *v, struct ddp_comm *comm,
                    struct ddp_err *err) DDP_MUST_CHECK;

/* Rank 0 sends these events about an item to the collector. */
enum ddp_sweep_event_type { DDP_SWEEP_BEGINS, DDP_SWEEP_ENDS, DDP_SWEEP_LEFT_OUT };
struct ddp_sweep_event {
    int type, launch, item; /* type: enum ddp_sweep_event_type */
    char text[192];         /* the reason why the item was left out */
};

/* sweep_collector.c: sets *backend and *ranks for the i-th start of the ranks. Returns false if no
 * start is left. Called in the process that forks the ranks. Under an outside launcher it is called
 * in every rank and gives the same answer in each. */
bool ddp_sweep_next(struct ddp_sweep_values *v, int i, const char **backend, int *ranks);
/* Opens the journal and adds its points and training runs to the record. Called in the collector
 * before the first document is written. The record must already have the facts about the build, the
 * hosts and the options, because these facts are compared with the facts in the journal. */
int ddp_sweep_collector_open(struct ddp_sweep_values *v, struct ddp_record *record,
                             struct ddp_err *err) DDP_MUST_CHECK;
/* Writes a message of rank 0 to the journal, before it is added to the record or shown. */
int ddp_sweep_collector_keep(struct ddp_sweep_values *v, uint32_t type, const void *payload,
                             size_t bytes, struct ddp_err *err) DDP_MUST_CHECK;
/* If the event says that an item is left out, adds this item to the record's list of items left
 * out. */
int ddp_sweep_record_event(const struct ddp_sweep_values *v, const struct ddp_sweep_event *event,
                           struct ddp_record *record, struct ddp_err *err) DDP_MUST_CHECK;
#define DDP_CLOSE_MORE 1 /* success, but the same command must run again; err says so */
/* Sorts the training runs of the record into the order of the plan before the last documents are
 * written. `code` is the outcome of the run. Returns `code`, another error code with *err filled,
 * or DDP_CLOSE_MORE. */
int ddp_sweep_collector_close(struct ddp_sweep_values *v, struct ddp_record *record, int code,
                              struct ddp_err *err);
/* Closes the journal after the last documents were written. May be called even if the journal was
 * not opened. `code` is the outcome of the whole run, including write errors. */
void ddp_sweep_collector_closed(struct ddp_sweep_values *v, int code);

#endif
