/* The parts of the trainer, private to trainer*.c: one struct, and who fills it. */
#ifndef DDP_TRAIN_TRAINER_IMPL_H
#define DDP_TRAIN_TRAINER_IMPL_H

#include "base/npy.h"
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
    float *params, *grads; /* [total], registered; own pages on one rank */
    struct ddp_optim optim;
    int batch; /* most images a step of this rank */
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
    struct ddp_npy dump;        /* gradients are recorded here; its name; a row [total] */
    char *dump_path;
    float *dump_row;
    struct ddp_train_run run;
};

/* What a rank tells the others at the end of an epoch, and after a step that is watched. */
struct ddp_epoch_word {
    double loss, eval_loss, seconds, exchange_seconds, exposed_seconds, wire_bytes;
    double encode_seconds, decode_seconds, values_sent, values_total;
    int64_t correct, eval_correct, images, eval_images, peak_memory_bytes, overflow_count;
    uint64_t hash;
    bool wire_counted;
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
/* The peak of memory that epochs report begins anew: another run in this process starts. Where the
 * system refuses, it stays that of the process. */
void ddp_trainer_reset_peak(void);
/* Running statistics: the weighted mean over ranks of the model's state. Collective. */
int ddp_trainer_average_state(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
/* Pixels of set's images index[n] (NULL: first, first + 1, ...) as f32 / 255 into x, with labels.
 */
void ddp_trainer_gather(const struct ddp_images *set, const uint32_t *index, size_t first, size_t n,
                        float *x, uint8_t *labels);
/* Do all ranks hold the same parameters? hash [ranks] with `stride` bytes between. */
int ddp_trainer_compare(const struct ddp_trainer *t, const void *hashes, size_t stride,
                        struct ddp_err *err) DDP_MUST_CHECK;
uint64_t ddp_trainer_hash(const struct ddp_trainer *t);
/* Does every step end with a look at what the strategy says all ranks hold alike? Its hash. */
bool ddp_trainer_compares_steps(const struct ddp_trainer *t);
uint64_t ddp_trainer_step_hash(const struct ddp_trainer *t);
/* Creates the strategy. Collective. */
int ddp_trainer_open_sync(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
/* Recording gradients, if asked for: open is collective; due: in the step that begins; factor: what
 * makes the gradient what base/npy.h promises. */
int ddp_trainer_dump_open(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
bool ddp_trainer_dump_due(const struct ddp_trainer *t);
int ddp_trainer_dump(struct ddp_trainer *t, double factor, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_trainer_dump_close(struct ddp_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
