/* The options of `ddpbench train`, and their translation into the options of the trainer. */
#ifndef DDP_CMD_TRAIN_OPTIONS_H
#define DDP_CMD_TRAIN_OPTIONS_H

#include <assert.h>

#include "cmd.h"
#include "train/trainer.h"

/* AUTO: the device whose memory the backend exchanges. */
enum ddp_train_device { DDP_TRAIN_AUTO, DDP_TRAIN_CPU, DDP_TRAIN_CUDA };

/* The parsed options. A member that selects an entry of a list (such as model or dataset) holds the
 * entry's index. */
struct ddp_train_values {
    struct ddp_world_options world;
    int model, dataset, optimizer, partition, init, init_sync, check_replicas;
    int overlap, feedback, aggregate;
    int device, graph, tf32, conv; /* device: enum ddp_train_device */
    bool named;                    /* --dataset was given; not an option itself */
    const char *dir, *sync, *blas, *algorithm, *dump_dir;
    struct ddp_string_list compare;
    struct ddp_int_list seeds;
    int64_t dump_every;
    int64_t batch, global_batch, images, epochs, max_steps; /* one of batch and global_batch is 0 */
    double lr, momentum, weight_decay,
        target_accuracy; /* target_accuracy is NaN if there is none */
    uint64_t bucket_bytes;
    /* Not options: filled by check and prepare. */
    struct ddp_sync_spec jobs[DDP_OPT_LIST_MAX]; /* the strategies to train with [job_count] */
    int job_count;
    struct ddp_dataset data;
    const struct ddp_device *model_device; /* NULL: the processor */
    const char *gpu_option;                /* a given option that only GPUs use; NULL: none */
};

static_assert(offsetof(struct ddp_train_values, world) == 0,
              "main.c casts values to struct ddp_world_options");

extern const struct ddp_opt ddp_train_rows[];
/* Fills the options that the user left out with the model's defaults. Returns DDP_EUSAGE if options
 * contradict each other. */
int ddp_train_values_complete(struct ddp_train_values *v, const struct ddp_opt_result *parsed,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the reader of the data set. Fills *request with the shape of images that the model needs,
 * and with the folder, number of images and seed from the options. */
const struct ddp_dataset_reader *ddp_train_values_data(const struct ddp_train_values *v,
                                                       struct ddp_dataset_request *request);
/* Fills v->jobs and v->seeds. Returns DDP_EUSAGE if options contradict each other. */
int ddp_train_values_jobs(const struct ddp_cmd *cmd, struct ddp_train_values *v,
                          const struct ddp_opt_result *parsed, struct ddp_err *err) DDP_MUST_CHECK;
/* Sets v->model_device, the device of the models, for ranks that exchange with `backend`. Returns
 * DDP_EUSAGE if a GPU option is given but no GPU is used, and DDP_EUNAVAIL if a strategy does not
 * run on that device. Starts no CUDA driver in this process. */
int ddp_train_values_device(struct ddp_train_values *v, const struct ddp_backend *backend,
                            int ranks, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns 0 if all strategies of v work when ranks exchange GPU memory, else DDP_EUNAVAIL with the
 * reason. */
int ddp_train_values_gpu(const struct ddp_train_values *v, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills *out with the trainer's options for v->jobs[job] and v->seeds.v[seed]. *out borrows from v.
 */
void ddp_train_values_options(const struct ddp_train_values *v, int job, int seed,
                              struct ddp_train_options *out);
/* Trains once per strategy and seed, on all ranks. If there are several runs and ranks, rank 0
 * first trains a few steps alone for each seed, to compute speed-ups. Collective. */
int ddp_train_run_all(struct ddp_rank *rank, const struct ddp_train_values *v,
                      struct ddp_err *err) DDP_MUST_CHECK;

#endif
