/* The options of `ddpbench train`: their table, and what they mean to the trainer. */
#ifndef DDP_CMD_TRAIN_OPTIONS_H
#define DDP_CMD_TRAIN_OPTIONS_H

#include "cmd.h"
#include "train/trainer.h"

/* Enumerations are indices of the registries they name. */
struct ddp_train_values {
    struct ddp_world_options world;
    int model, dataset, optimizer, partition, init, init_sync, check_replicas;
    const char *dir, *sync, *blas;
    int64_t batch, epochs, max_steps;
    double lr, momentum, weight_decay, target_accuracy; /* NaN: none */
    uint64_t bucket_bytes;
    /* Not options: filled by check and prepare. */
    const struct ddp_sync_class *sync_class;
    const char *sync_argument;
    struct ddp_dataset data;
};

extern const struct ddp_opt ddp_train_rows[];
/* v as the trainer takes it; borrows v. */
void ddp_train_values_options(const struct ddp_train_values *v, struct ddp_train_options *out);

#endif
