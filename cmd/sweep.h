/* `ddpbench sweep`: many runs, one result, continued where it was cut off. Private to sweep*.c.
 *
 * Words: a *cell* is one run of one command, as a line of the plan says it; an *item* is a cell on
 * one number of ranks; a *stage* is one start of ranks, which runs all items of its backend and
 * ranks (and GPU options); a *launch* is all stages once. Order of stages and of items in them is
 * drawn by --seed. */
#ifndef DDP_CMD_SWEEP_H
#define DDP_CMD_SWEEP_H

#include "bench/sweep_plan.h"
#include "cmd.h"
#include "model/dataset.h"
#include "record/journal.h"

/* argv: borrowed from the plan. ranks, backend ("auto": the one chosen): to run it on. gpu: what a
 * backend of GPUs must know of it; no_gpu: why it does not run there, "" when it does. Known from
 * prepare on: where: whose memory a model is trained in (NULL: the host's); first_place, points:
 * its points among all (0 of a training run); heap_bytes of a rank; bytes: of all local ranks;
 * seconds: a guess. */
struct ddp_sweep_item {
    const struct ddp_cmd *cmd;
    int run, argc;
    char *const *argv;
    int ranks;
    char backend[16];
    int first_place, points;
    uint64_t heap_bytes, bytes;
    double seconds;
    bool threads;
    struct ddp_gpu_options gpu;
    char no_gpu[256];
    const struct ddp_device *where;
};

struct ddp_sweep_stage {
    int launch; /* from 1 */
    const char *backend;
    int ranks;
    struct ddp_gpu_options gpu;
    const int *items; /* [count], borrowed from order */
    int count;
};

/* What an earlier run has left, as sorted keys of points and of ended items. */
struct ddp_sweep_done {
    uint64_t *keys;
    size_t count, capacity;
};

/* A data set, read once for all items that ask for it. */
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
    /* check */
    const char *config_path;
    struct ddp_sweep_plan plan;
    struct ddp_sweep_item *items;
    int count;
    char default_journal[4096]; /* beside the result; "": there is none */
    /* prepare */
    const struct ddp_app *app;
    struct ddp_sweep_data *data;
    int data_count;
    ddp_sweep_id *ids; /* [points], of every point of a launch */
    int points;
    char backend[16]; /* what "auto" is */
    int *order;       /* [launches * count] */
    struct ddp_sweep_stage *stages;
    int stage_count, current; /* the stage whose ranks run */
    /* what is done: at home, and, once shared, everywhere */
    struct ddp_sweep_done done;
    int ended;       /* items of all launches */
    int *measured;   /* [launches] points */
    int only_launch; /* under an outside launcher */
    int64_t started_ns;
    double seconds_todo, seconds_done; /* guesses, of this run */
    struct ddp_sweep_home *home;       /* sweep_home.c */
};

/* sweep_config.c: reads the configuration and makes items of it. DDP_ECONFIG names file and run. */
int ddp_sweep_read(struct ddp_app *app, struct ddp_sweep_values *v,
                   struct ddp_err *err) DDP_MUST_CHECK;

/* sweep_item.c: an item with its command's values, for as long as it runs. Not to be moved. */
struct ddp_sweep_open {
    struct ddp_app app;
    void *values;
    char extra[4][96];
};
/* Parses and checks. data: those of v are lent to the values of a training run. */
int ddp_sweep_item_open(const struct ddp_app *app, const struct ddp_sweep_values *v,
                        const struct ddp_sweep_item *item, struct ddp_sweep_open *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sweep_item_close(const struct ddp_sweep_item *item, struct ddp_sweep_open *open);
/* Its command line without the program's name, cut to out_bytes. */
void ddp_sweep_item_text(const struct ddp_sweep_item *item, char *out, size_t out_bytes);
/* sweep_train.c: for training runs; nothing for others. Reads the item's data set, unless v has it;
 * lends it to the values of its command; takes it back before these are released. */
int ddp_sweep_load_data(struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                        const struct ddp_sweep_open *open, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_sweep_lend_data(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                         void *values);
void ddp_sweep_take_data(const struct ddp_sweep_item *item, void *values);
void ddp_sweep_estimate_training(const struct ddp_sweep_item *item, const void *values, int local,
                                 double *seconds, uint64_t *bytes);

/* After the item's command has prepared its values: keeps where its model is to be. */
void ddp_sweep_keep_place(struct ddp_sweep_item *item, const void *values);

/* sweep_home.c: --journal, or that beside the result; NULL: there is none. */
const char *ddp_sweep_journal_path(const struct ddp_sweep_values *v);
/* sweep_gpu.c: can an item run on GPUs, as it was called? Into the item. */
void ddp_sweep_gpu_look(struct ddp_sweep_item *item, const void *values);
/* Do GPUs suit the item, on its backend, which is known now? */
int ddp_sweep_gpu_check(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                        const struct ddp_app *app, struct ddp_err *err) DDP_MUST_CHECK;
/* A ddp_cmd.gpu: of the stage that runs; before there are stages, of all items that may be on GPUs.
 */
int ddp_sweep_gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err);

/* sweep_prepare.c: memory, points, stages. */
int ddp_sweep_prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                      struct ddp_err *err);
/* sweep_print.c: the dry run. */
void ddp_sweep_print(const struct ddp_sweep_values *v, FILE *out);
/* A guess at how long an item takes, and at memory of `local` of its ranks. */
void ddp_sweep_estimate(const struct ddp_sweep_item *item, const void *values, int local,
                        double *seconds, uint64_t *bytes);

/* sweep_done.c: keys. */
uint64_t ddp_sweep_key(int launch, int item, const char *id);
#define DDP_SWEEP_END "" /* id of an item that has ended */
int ddp_sweep_done_add(struct ddp_sweep_done *done, uint64_t key,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Until it is sorted, nothing is found. */
void ddp_sweep_done_sort(struct ddp_sweep_done *done);
bool ddp_sweep_done_has(const struct ddp_sweep_done *done, uint64_t key);
bool ddp_sweep_stage_is_done(const struct ddp_sweep_values *v, const struct ddp_sweep_stage *s);
/* Tells all ranks what rank 0 knows, and makes sure that all have the same plan. Collective. */
int ddp_sweep_share(void *values, struct ddp_comm *comm, struct ddp_err *err);

/* sweep_run.c: the ranks' side. What rank 0 tells the home of an item: enum ddp_sweep_news. */
enum ddp_sweep_word { DDP_SWEEP_BEGINS, DDP_SWEEP_ENDS, DDP_SWEEP_LEFT_OUT };
struct ddp_sweep_news {
    int word, launch, item;
    char text[192]; /* why it was left out */
};
int ddp_sweep_rank_main(struct ddp_rank *rank, void *values, struct ddp_err *err);

/* sweep_home.c: the journal. Members of ddp_cmd_stages. */
bool ddp_sweep_next(void *values, int i, const char **backend, int *ranks);
int ddp_sweep_home_open(void *values, struct ddp_record *record, struct ddp_err *err);
int ddp_sweep_home_keep(void *values, uint32_t type, const void *payload, size_t bytes,
                        struct ddp_err *err);
int ddp_sweep_home_close(void *values, struct ddp_record *record, int code, struct ddp_err *err);
void ddp_sweep_home_closed(void *values, int code);

#endif
