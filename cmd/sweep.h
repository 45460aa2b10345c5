/* `ddpbench sweep` measures many runs into one result, and continues after an interruption. Private
 * to sweep*.c.
 *
 * A *cell* is the command line of one run. An *item* is a cell with one number of ranks. A *launch
 * group* (struct ddp_sweep_launch_group) is one start of the ranks. It runs all items that have the
 * same backend, rank count and GPU options. A *repetition* runs all items once. --launches sets the
 * number of repetitions, and members named `launch` hold the number of a repetition. --seed
 * determines the random order of the launch groups and of the items in them. */
#ifndef DDP_CMD_SWEEP_H
#define DDP_CMD_SWEEP_H

#include "bench/sweep_plan.h"
#include "cmd.h"
#include "model/dataset.h"
#include "record/journal.h"

/* A cell with one number of ranks. */
struct ddp_sweep_item {
    const struct ddp_cmd *cmd;
    int run, argc;     /* run: index in "runs" of the configuration */
    char *const *argv; /* borrowed from the plan */
    int ranks;
    char backend[16]; /* "auto" until prepare chooses a backend */
    /* The index of the item's first point among all points of a repetition, and the number of the
     * item's points (0 for a training run). Filled by prepare. */
    int first_place, points;
    /* Registered memory per rank, and total memory of the ranks on this host. Filled by prepare. */
    uint64_t heap_bytes, bytes;
    double seconds; /* estimated duration; filled by prepare */
    bool threads;
    struct ddp_gpu_options gpu;            /* GPU options that the backend needs */
    char no_gpu[256];                      /* why the item cannot run on GPUs; "" if it can */
    const struct ddp_device *model_device; /* device of the model; NULL: the processor */
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

/* The keys (ddp_sweep_key) of the finished points and items. */
struct ddp_sweep_done {
    uint64_t *keys;
    size_t count, capacity;
};

/* A data set, read once for all items that use it. */
struct ddp_sweep_data {
    const struct ddp_dataset_reader *reader;
    struct ddp_dataset_request request;
    struct ddp_dataset set;
};

typedef char ddp_sweep_id[192];

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
    char default_journal[4096]; /* "" if there is none */
    /* Filled by prepare. */
    const struct ddp_app *app;
    struct ddp_sweep_data *data;
    int data_count;
    ddp_sweep_id *ids; /* ids of all points of a repetition [points] */
    int points;
    char backend[16]; /* the backend that "auto" stands for */
    int *order;       /* indices of items [launches * count] */
    struct ddp_sweep_launch_group *stages;
    int stage_count, current; /* current: index of the launch group that runs */
    /* The finished work, read from the journal. ddp_sweep_collector_keep updates `ended` and
     * `measured`. ddp_sweep_share copies the keys to the other ranks of an outside launcher. */
    struct ddp_sweep_done done;
    int ended;       /* number of finished items in all repetitions */
    int *measured;   /* number of measured points per repetition [launches] */
    int only_launch; /* the repetition that a run under an outside launcher measures, or 0 */
    int64_t started_ns;
    double seconds_todo, seconds_done;     /* estimates: all items of this run, finished items */
    struct ddp_sweep_collector *collector; /* sweep_collector.c; NULL outside the collector */
};

/* sweep_config.c: reads the configuration and makes its items. An error of DDP_ECONFIG names the
 * file. */
int ddp_sweep_read(struct ddp_app *app, struct ddp_sweep_values *v,
                   struct ddp_err *err) DDP_MUST_CHECK;

/* sweep_item.c: an item with the parsed values of its command. The values point into the struct, so
 * the struct must not be copied. */
struct ddp_sweep_open {
    struct ddp_app app;
    void *values;
    char extra[4][96];
};
/* Parses and checks the item's options. If v has loaded the data set of a training run, the values
 * borrow the data set from v. */
int ddp_sweep_item_open(const struct ddp_app *app, const struct ddp_sweep_values *v,
                        const struct ddp_sweep_item *item, struct ddp_sweep_open *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sweep_item_close(const struct ddp_sweep_item *item, struct ddp_sweep_open *open);
/* Writes the item's command line without the program's name, truncated to out_bytes. */
void ddp_sweep_item_text(const struct ddp_sweep_item *item, char *out, size_t out_bytes);
/* sweep_train.c: data sets of training runs. The next three functions ignore other items.
 * ddp_sweep_load_data reads the item's data set unless v has loaded the data set already, and then
 * calls ddp_sweep_lend_data. ddp_sweep_lend_data lets the values borrow the data set from v.
 * ddp_sweep_return_data takes the data set back before the values are released. */
int ddp_sweep_load_data(struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                        const struct ddp_sweep_open *open, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sweep_lend_data(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                         void *values);
void ddp_sweep_return_data(const struct ddp_sweep_item *item, void *values);
void ddp_sweep_estimate_training(const struct ddp_sweep_item *item, const void *values, int local,
                                 double *seconds, uint64_t *bytes);

/* Copies the model's device from the prepared values of the item to the item. */
void ddp_sweep_keep_device(struct ddp_sweep_item *item, const void *values);

/* sweep_collector.c: returns the path of the journal (--journal, else the one beside the result) or
 * NULL. */
const char *ddp_sweep_journal_path(const struct ddp_sweep_values *v);
/* sweep_gpu.c: fills the item's GPU options, or why the item cannot run on GPUs. */
void ddp_sweep_gpu_fill(struct ddp_sweep_item *item, const void *values);
/* Checks that the item's options and its chosen backend agree about GPUs. */
int ddp_sweep_gpu_check(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                        const struct ddp_app *app, struct ddp_err *err) DDP_MUST_CHECK;
/* Implements ddp_cmd.gpu for the current launch group or, before the launch groups are made, for
 * all items that may use GPUs. */
int ddp_sweep_gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err);

/* sweep_prepare.c: implements ddp_cmd.prepare. Computes memory, points and launch groups. */
int ddp_sweep_prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                      struct ddp_err *err);
/* sweep_print.c: prints the dry run. */
void ddp_sweep_print(const struct ddp_sweep_values *v, FILE *out);
/* Estimates the item's duration, and the memory of `local` ranks. */
void ddp_sweep_estimate(const struct ddp_sweep_item *item, const void *values, int local,
                        double *seconds, uint64_t *bytes);

/* sweep_done.c: returns the key of a point or, with DDP_SWEEP_END as the id, of a finished item. */
uint64_t ddp_sweep_key(int launch, int item, const char *id);
#define DDP_SWEEP_END "" /* id of an item that has ended */
int ddp_sweep_done_add(struct ddp_sweep_done *done, uint64_t key,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Sorts the keys. ddp_sweep_done_has finds a key only after this. */
void ddp_sweep_done_sort(struct ddp_sweep_done *done);
bool ddp_sweep_done_has(const struct ddp_sweep_done *done, uint64_t key);
bool ddp_sweep_launch_group_is_done(const struct ddp_sweep_values *v,
                                    const struct ddp_sweep_launch_group *s);
/* Sends the keys of rank 0 to all ranks, and checks that all ranks have the same plan. Collective.
 */
int ddp_sweep_share(void *values, struct ddp_comm *comm, struct ddp_err *err);

/* sweep_run.c: the ranks' side. Rank 0 sends these events about an item to the collector. */
enum ddp_sweep_event_type { DDP_SWEEP_BEGINS, DDP_SWEEP_ENDS, DDP_SWEEP_LEFT_OUT };
struct ddp_sweep_event {
    int type, launch, item; /* type: enum ddp_sweep_event_type */
    char text[192];         /* the reason why the item was left out */
};
int ddp_sweep_rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err);

/* sweep_collector.c: the journal. These functions implement struct ddp_cmd_launch_groups. */
bool ddp_sweep_next(void *values, int i, const char **backend, int *ranks);
int ddp_sweep_collector_open(void *values, struct ddp_record *record, struct ddp_err *err);
int ddp_sweep_collector_keep(void *values, uint32_t type, const void *payload, size_t bytes,
                             struct ddp_err *err);
int ddp_sweep_collector_close(void *values, struct ddp_record *record, int code,
                              struct ddp_err *err);
void ddp_sweep_collector_closed(void *values, int code);

#endif
