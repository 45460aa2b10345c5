/* The parts of the trainer, private to trainer*.c: one struct, and who fills it. */
#ifndef DDP_TRAIN_TRAINER_IMPL_H
#define DDP_TRAIN_TRAINER_IMPL_H

#include "base/npy.h"
#include "exchange/grad_buckets.h"
#include "train/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a rank counts in an epoch's training steps. pause: time spent in checks and events, which is
 * not training. */
struct ddp_train_sums {
    double loss;
    int64_t correct, images;
    int64_t global_images;
    int64_t steps;
    int64_t start_ns;
    int64_t pause_ns;
    struct ddp_sync_counters before; /* the strategy's, when the epoch began */
};

/* What the model found in a step or a batch of evaluation, as it writes it. */
struct ddp_train_result {
    double loss; /* sum over the images */
    int correct;
};

/* A part of a step, as a graph. param: the last whose gradient it makes. */
struct ddp_trainer_piece {
    struct ddp_graph *graph;
    int param;
};

/* A trainer's side of a device (trainer_device.c). The data set lies in its memory, so that batches
 * are gathered there; results come back to `results` as they are made and are looked at where
 * somebody wants to know. */
struct ddp_trainer_device {
    const struct ddp_device *device;
    struct ddp_stream *stream;
    struct ddp_trainer_images {
        uint8_t *pixels, *labels;
        size_t pixel_bytes;
        size_t count;
        size_t each;
    } train, eval;
    uint32_t *order;                  /* [train.count] */
    struct ddp_train_result *result;  /* the model's */
    struct ddp_train_result *results; /* the host's, [DDP_TRAIN_RESULTS] */
    int pending;
    bool overlap;                     /* gradients are exchanged while more are made */
    struct ddp_trainer_piece *pieces; /* [piece_count], of a step with these: */
    int piece_count;
    int graph_n;
    float graph_scale;
    bool captured; /* the pieces have their graphs */
    float *host;   /* [total], for looking at parameters and gradients */
};
#define DDP_TRAIN_RESULTS 1024

/* device: NULL: the processor, directly; then params, grads, x and labels are its memory, else the
 * device's. */
struct ddp_trainer {
    struct ddp_comm *comm;
    const struct ddp_train_options *o;
    const struct ddp_train_events *events; /* never NULL; empty but on rank 0 */
    struct ddp_partition_plan partition;
    size_t total;          /* parameters */
    float *params, *grads; /* [total], registered; own pages on one rank */
    struct ddp_optim optim;
    int batch; /* most images a step of this rank */
    struct ddp_trainer_device *device;
    struct ddp_model *model;
    struct ddp_sync *sync;
    size_t *offsets, *counts; /* [param_count] */
    float *x;                 /* [batch] images */
    uint8_t *labels;          /* [batch] */
    uint32_t *order;          /* [train images] */
    size_t order_count;
    void *gathered; /* [ranks] of the largest thing ranks exchange */
    bool watch_steps;
    bool report_steps; /* exchange loss and hash after every step; tell on_step */
    double last_loss;  /* sum over the images of the last step; on a device, once it
                          was collected */
    int64_t step;      /* of the run, finished ones */
    int64_t last_progress_ns;
    struct ddp_train_sums sums; /* of this epoch */
    double seconds, wire_bytes; /* of the epochs so far */
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
/* trainer_device.c. open: selects the device, uploads the data set; sets t->device. Not collective.
 * close: after everything else that uses it; NULL is fine. */
int ddp_trainer_device_open(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_trainer_device_close(struct ddp_trainer *t);
/* Memory of the device, or of the processor where t has none. Bytes are those of alloc. */
void *ddp_trainer_alloc(const struct ddp_trainer *t, size_t bytes);
void ddp_trainer_free(const struct ddp_trainer *t, void *ptr, size_t bytes);
/* The epoch's order of images is t->order. */
void ddp_trainer_device_order(struct ddp_trainer *t);
/* Forward and backward of order[first, first + n), put on the stream, and its result. tell: the
 * strategy hears of each gradient when it has been put there. */
int ddp_trainer_device_step(struct ddp_trainer *t, size_t first, size_t n, float scale, bool tell,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* The model's part of it; ready as ddp_model_class's step has it, with t. */
void ddp_trainer_device_model(struct ddp_trainer *t, size_t n, float scale,
                              void (*ready)(void *arg, int param));
/* trainer_graph.c: that part as graphs. launch: tell as above. release: what capture made, or had
 * begun. */
int ddp_trainer_graph_capture(struct ddp_trainer *t, size_t n, float scale,
                              struct ddp_err *err) DDP_MUST_CHECK;
void ddp_trainer_graph_launch(struct ddp_trainer *t, bool tell);
void ddp_trainer_graph_release(struct ddp_trainer *t);
/* Evaluation of images [first, first + n), likewise. */
void ddp_trainer_device_evaluate(struct ddp_trainer *t, size_t first, size_t n);
/* Is there no room for another result? */
bool ddp_trainer_device_is_full(const struct ddp_trainer *t);
/* Waits; adds the results that came, in order. Nothing to do off a device. */
int ddp_trainer_device_collect(struct ddp_trainer *t, double *loss, int64_t *correct,
                               struct ddp_err *err) DDP_MUST_CHECK;
int ddp_trainer_device_wait(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
/* from [n] (n <= total) where the processor can read it: from itself, or a copy, good until the
 * next call. Only after a wait. */
const float *ddp_trainer_look(const struct ddp_trainer *t, const float *from, size_t n);
/* to [n] = from, the processor's. */
void ddp_trainer_put(const struct ddp_trainer *t, float *to, const float *from, size_t n);

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
/* arg: the trainer. The strategy hears of a gradient; its first failure becomes ready_rc. */
void ddp_trainer_ready(void *arg, int param);
/* How the strategy cuts gradients: buckets [param_count], in the order in which they fill. Returns
 * their number. */
int ddp_trainer_buckets(const struct ddp_trainer *t, struct ddp_grad_bucket *buckets);
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
