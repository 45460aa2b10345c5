/* The parts of the trainer, private to trainer*.c: one struct, and who fills it. */
#ifndef DDP_TRAIN_TRAINER_IMPL_H
#define DDP_TRAIN_TRAINER_IMPL_H

#include "train/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a rank counts in an epoch's training steps. pause: time spent in checks and events, which is
 * not training. */
struct ddp_train_sums {
    double loss;
    int64_t correct, images, global_images, steps;
    int64_t start_ns, pause_ns;
    struct ddp_sync_counters before; /* the strategy's, when the epoch began */
};

struct ddp_trainer {
    struct ddp_comm *comm;
    const struct ddp_train_options *o;
    const struct ddp_train_events *events; /* never NULL; empty but on rank 0 */
    struct ddp_partition_plan partition;
    size_t total;          /* parameters */
    float *params, *grads; /* [total], registered */
    float *velocity;       /* [total] */
    struct ddp_model *model;
    struct ddp_sync *sync;
    size_t *offsets, *counts; /* [param_count] */
    float *x;                 /* [batch] images */
    uint8_t *labels;          /* [batch] */
    uint32_t *order;          /* [train images] */
    size_t order_count;
    void *gathered;                 /* [ranks] of the largest thing ranks exchange */
    bool watch_steps, report_steps; /* exchange loss and hash after every step; tell on_step */
    int64_t step;                   /* of the run, finished ones */
    int64_t last_progress_ns;
    struct ddp_train_sums sums; /* of this epoch */
    int ready_rc;               /* of the exchange started inside the backward pass */
    struct ddp_err *err;        /* while a step runs: where that reports */
    struct ddp_train_run run;
};

/* What a rank tells the others at the end of an epoch, and after a step that is watched. */
struct ddp_epoch_word {
    double loss, eval_loss, seconds, exchange_seconds, exposed_seconds, wire_bytes;
    double values_sent, values_total;
    int64_t correct, eval_correct, images, eval_images, peak_memory_bytes;
    uint64_t hash;
};
struct ddp_step_word {
    double loss;
    uint64_t hash;
};

/* Set-up: collective; on failure all ranks return the same code. close: NULL members are fine. */
int ddp_trainer_open(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_trainer_close(struct ddp_trainer *t);
/* One epoch's training steps, fewer when max_steps cuts it. */
int ddp_trainer_epoch(struct ddp_trainer *t, int epoch, struct ddp_err *err) DDP_MUST_CHECK;
/* Evaluation over all images, sums over ranks, replicas compared; fills *out. */
int ddp_trainer_evaluate(struct ddp_trainer *t, int epoch, struct ddp_epoch *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Pixels of set's images index[n] (NULL: first, first + 1, ...) as f32 / 255 into x, with labels.
 */
void ddp_trainer_gather(const struct ddp_images *set, const uint32_t *index, size_t first, size_t n,
                        float *x, uint8_t *labels);
/* Do all ranks hold the same parameters? hash [ranks] with `stride` bytes between. */
int ddp_trainer_compare(const struct ddp_trainer *t, const void *hashes, size_t stride,
                        struct ddp_err *err) DDP_MUST_CHECK;
uint64_t ddp_trainer_hash(const struct ddp_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
