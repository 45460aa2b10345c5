/* The job of `ddpbench train`: trains once per strategy and seed. */
#ifndef DDP_RUN_TRAINING_H
#define DDP_RUN_TRAINING_H

#include <assert.h>

#include "run/command.h"
#include "train/trainer.h"

/* DDP_TRAIN_AUTO: the device whose memory the backend exchanges. */
enum ddp_train_device { DDP_TRAIN_AUTO, DDP_TRAIN_CPU, DDP_TRAIN_CUDA };

/* The parsed options. A member that selects an entry of a list, such as model or dataset, holds the
 * index of the entry. */
struct ddp_train_values {
    struct ddp_world_options world;
    int model, dataset, optimizer, init, init_sync, check_replicas;
    int overlap, feedback, aggregate;
    int device, graph, tf32, conv; /* device: enum ddp_train_device */
    bool named;                    /* --dataset was given (not an option itself) */
    const char *dir, *sync, *blas, *algorithm, *dump_dir, *partition, *arrival;
    struct ddp_string_list compare;
    struct ddp_int_list seeds;
    int64_t dump_every;
    int64_t batch, global_batch, images, epochs, max_steps; /* one of batch and global_batch is 0 */
    double lr, momentum, weight_decay,
        target_accuracy; /* target_accuracy is NaN if there is none */
    uint64_t bucket_bytes;
    /* The members below, except dry_run, are not options. The functions check, prepare and borrow
     * fill them. */
    struct ddp_partition_spec partition_spec;    /* from `partition` */
    struct ddp_arrival arrival_spec;             /* from `arrival` */
    struct ddp_sync_spec jobs[DDP_OPT_LIST_MAX]; /* the strategies to train with [job_count] */
    int job_count;
    struct ddp_dataset data;
    bool dry_run;
    bool borrowed;                         /* the values of another item of a sweep own the data */
    const struct ddp_device *model_device; /* NULL: the processor */
    const char *gpu_option;                /* a given option that only GPUs use; NULL: none */
};

static_assert(offsetof(struct ddp_train_values, world) == 0,
              "main.c casts values to struct ddp_world_options");

extern const struct ddp_job ddp_training_job;

/* The function `check` of the command (run/command.h): fills the options that the user left out
 * with the model's defaults, and checks the values. */
int ddp_training_check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                       struct ddp_err *err) DDP_MUST_CHECK;

#define DDP_BLAS_NAME_BYTES 96
/* Loads the BLAS library that a training would use. The library is loaded in a child process,
 * because a broken library may end the process that loads it. Writes the library's name to the
 * array `name` [DDP_BLAS_NAME_BYTES]. Returns DDP_EUNAVAIL or DDP_ENOMEM with the reason if a
 * training could not use it. Must not be called while this process has other threads. */
int ddp_training_probe_blas(char *name, struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the reader of the data set. Fills *request with the shape of images that the model needs,
 * and with the folder, number of images and seed from the options. */
const struct ddp_dataset_reader *ddp_train_values_data(const struct ddp_train_values *v,
                                                       struct ddp_dataset_request *request);

/* Returns the number of steps of a run with `ranks` ranks. *batch: the largest number of images
 * that a rank takes per step. Called after prepare. */
double ddp_train_values_steps(const struct ddp_train_values *v, int ranks, int *batch);

#endif
