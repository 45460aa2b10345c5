/* The options of `ddpbench train`: their table, and what they mean to the trainer. */
#ifndef DDP_CMD_TRAIN_OPTIONS_H
#define DDP_CMD_TRAIN_OPTIONS_H

#include <assert.h>

#include "cmd.h"
#include "train/trainer.h"

/* AUTO: where the backend exchanges. */
enum ddp_train_where { DDP_TRAIN_AUTO, DDP_TRAIN_CPU, DDP_TRAIN_CUDA };

/* One strategy of a run; text and argument are borrowed. */
struct ddp_train_job {
    const struct ddp_sync_class *cls;
    const char *text, *argument;
};

/* Enumerations are indices of the registries they name. */
struct ddp_train_values {
    struct ddp_world_options world;
    int model, dataset, optimizer, partition, init, init_sync, check_replicas;
    int overlap, feedback, aggregate;
    int device, graph, tf32, conv; /* device: enum ddp_train_where */
    bool named;                    /* not an option: --dataset was given */
    const char *dir, *sync, *blas, *algorithm, *dump_dir;
    struct ddp_string_list compare;
    struct ddp_int_list seeds;
    int64_t dump_every;
    int64_t batch, global_batch, images, epochs, max_steps; /* one of the batches is 0 */
    double lr, momentum, weight_decay, target_accuracy;     /* NaN: none */
    uint64_t bucket_bytes;
    /* Not options: filled by check and prepare. */
    struct ddp_train_job jobs[DDP_OPT_LIST_MAX]; /* strategies to run, [job_count] */
    int job_count;
    struct ddp_dataset data;
    const struct ddp_device *where; /* NULL: the processor */
    const char *gpu_option;         /* given, and only for GPUs; NULL: none */
};

static_assert(offsetof(struct ddp_train_values, world) == 0, "main.c takes values for it");

extern const struct ddp_opt ddp_train_rows[];
/* What the user left open, as the model has it; what does not go together: DDP_EUSAGE. */
int ddp_train_values_complete(struct ddp_train_values *v, const struct ddp_opt_result *parsed,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* The data set's reader, and what is asked of it. */
const struct ddp_dataset_reader *ddp_train_values_data(const struct ddp_train_values *v,
                                                       struct ddp_dataset_request *request);
/* Strategies and seeds: fills jobs and seeds, and refuses what does not go together. */
int ddp_train_values_jobs(const struct ddp_cmd *cmd, struct ddp_train_values *v,
                          const struct ddp_opt_result *parsed, struct ddp_err *err) DDP_MUST_CHECK;
/* Where models compute, with ranks that exchange by `backend`: fills v->where. DDP_EUSAGE: an
 * option of a GPU, and none is used; DDP_EUNAVAIL: a strategy does not run there. Starts no driver.
 */
int ddp_train_values_device(struct ddp_train_values *v, const struct ddp_backend *backend,
                            int ranks, struct ddp_err *err) DDP_MUST_CHECK;
/* Can all strategies of v be where ranks exchange what lies on GPUs? DDP_EUNAVAIL says why not. */
int ddp_train_values_gpu(const struct ddp_train_values *v, struct ddp_err *err) DDP_MUST_CHECK;
/* One run of v as the trainer takes it; borrows v. */
void ddp_train_values_options(const struct ddp_train_values *v, int job, int seed,
                              struct ddp_train_options *out);
/* All runs of v, on every rank: for each seed each strategy, before them a few steps on one rank
 * when there are several runs. Collective. */
int ddp_train_run_all(struct ddp_rank *rank, const struct ddp_train_values *v,
                      struct ddp_err *err) DDP_MUST_CHECK;

#endif
