/* Types and functions shared by the trainer*.c files. Private to lib/train. */
#ifndef DDP_TRAIN_TRAINER_IMPL_H
#define DDP_TRAIN_TRAINER_IMPL_H

#include "base/core_time.h"
#include "base/npy.h"
#include "base/sysinfo.h"
#include "comm/clocks.h"
#include "stats/straggler.h"
#include "train/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This rank's sums over the training steps of an epoch. */
struct ddp_train_sums {
    double loss;             /* sum over this rank's images */
    int64_t correct, images; /* of this rank */
    int64_t global_images;   /* of all ranks */
    int64_t steps;
    int64_t start_ns;
    int64_t pause_ns; /* time spent in checks and events, which does not count as training time */
    struct ddp_sync_counters before; /* the strategy's counters when the epoch began */
};

/* The result of a training step or of one evaluation batch, as the model writes it. */
struct ddp_train_result {
    double loss; /* sum over the images */
    int correct;
};

/* A part of a step that was captured as a graph. */
struct ddp_step_graph {
    struct ddp_graph *graph; /* NULL until captured */
    int param; /* lowest index of the parameters whose gradients this graph computes */
};

/* The trainer's state on a device (trainer_device.c). The data set lies in device memory, and the
 * device gathers the batches. Results are copied to `results` asynchronously. Only
 * ddp_trainer_device_collect() reads them. */
struct ddp_trainer_device {
    const struct ddp_device *device;
    struct ddp_stream *stream;
    struct ddp_trainer_images {
        uint8_t *pixels, *labels;
        size_t pixel_bytes;  /* size of `pixels` */
        size_t count;        /* images */
        size_t image_pixels; /* pixels per image */
    } train, eval;
    uint32_t *order;                  /* [train.count], in device memory */
    struct ddp_train_result *result;  /* of the current step, in device memory */
    struct ddp_train_result *results; /* [DDP_TRAIN_RESULTS], in host memory */
    int pending;                      /* results enqueued and not yet collected */
    bool overlap;                     /* exchange gradients during the backward pass */
    struct ddp_step_graph *graphs;    /* [graph_count] */
    int graph_count;
    int graph_n;       /* images per step of the captured graphs */
    float graph_scale; /* gradient scale of the captured graphs */
    bool captured;     /* all graphs have been captured */
    float *host;       /* [total], host copy of parameters or gradients */
};
#define DDP_TRAIN_RESULTS 1024

/* The times of an epoch's steps, from which the straggler is found (trainer_straggler.c). */
struct ddp_trainer_straggler {
    /* `sums`: the steps of this epoch. `run_sums`: the steps of the whole run. NULL: one rank, or a
     * strategy without buckets. */
    struct ddp_straggler_sums *sums, *run_sums;
    struct ddp_clocks clocks;
    struct ddp_core_time core;      /* at the begin of the step */
    struct ddp_interference before; /* when the epoch began */
    /* The members of struct ddp_straggler_setup, for this epoch and for the whole run. */
    double *throttled_ns, *run_throttled_ns, run_passed_ns;
    int buckets;
    int rows;       /* steps that were kept in this epoch */
    int64_t stride; /* every stride-th step is kept */
    size_t width;   /* values of a row */
    int64_t *row, *gathered;
    struct ddp_straggler_times *times; /* [ranks] */
    /* [buckets][ranks]: sums of the times by which a rank entered a bucket's exchange after all
     * others */
    double *late_ns, *run_late_ns;
};

/* A training run on one rank. */
struct ddp_trainer {
    struct ddp_comm *comm;
    const struct ddp_train_options *o;
    const struct ddp_train_events *events; /* never NULL; has no callbacks on ranks other than 0 */
    struct ddp_partition_plan partition;
    size_t total;            /* number of parameters */
    float *params, *grads;   /* [total], registered memory; private if there is one rank */
    struct ddp_range *shard; /* the parts that `optim` updates; NULL: all parameters */
    struct ddp_optim optim;
    int batch; /* largest number of images that this rank takes per step */
    /* NULL if the model runs directly on the CPU. Otherwise params, grads, x and labels lie in the
     * memory of this device. */
    struct ddp_trainer_device *device;
    struct ddp_model *model;
    struct ddp_sync *sync;
    size_t *layout;  /* [3 * param_count]: offsets, counts and columns of the tensors */
    float *x;        /* [batch] images */
    uint8_t *labels; /* [batch] */
    uint32_t *order; /* [train images], the image indices of this epoch */
    size_t order_count;
    void *gathered;    /* [ranks], receives the figures gathered from all ranks */
    bool watch_steps;  /* gather loss and hash from all ranks after every step */
    bool report_steps; /* rank 0 has an on_step callback */
    double last_loss;  /* sum over the images of the last step, or of the last collected step on a
                          device */
    int64_t step;      /* steps finished since the run began */
    int64_t last_progress_ns;
    struct ddp_train_sums sums; /* of this epoch */
    double seconds, wire_bytes; /* sums over the epochs so far */
    struct ddp_trainer_straggler straggler;
    int ready_rc;        /* first error of on_grad_ready or of a graph capture in this step */
    struct ddp_err *err; /* receives the error of ready_rc; valid during a step */
    struct ddp_npy dump; /* file of recorded gradients */
    char *dump_path;
    float *dump_row; /* [total], one row of the file of recorded gradients */
    struct ddp_train_run run;
};

/* The figures of one rank at the end of an epoch. Every rank gathers the figures of all ranks. */
struct ddp_epoch_totals {
    double loss, eval_loss, seconds, exchange_seconds, exposed_seconds, wire_bytes;
    double encode_seconds, decode_seconds, values_sent, values_total;
    int64_t correct, eval_correct, images, eval_images, peak_memory_bytes, overflow_count;
    uint64_t hash;
    bool wire_counted;
};
/* The figures of one rank after a watched step (watch_steps). Every rank gathers the figures of all
 * ranks. */
struct ddp_step_totals {
    double loss;
    uint64_t hash;
};

/* Returns the number of values in one image of the set. */
static inline size_t ddp_trainer_pixels(const struct ddp_images *set)
{
    return (size_t)set->channels * (size_t)set->height * (size_t)set->width;
}

/* Sets t->device and uploads the data set. Also selects the GPU if there is only one rank. Does
 * nothing if options->device is NULL. Not collective. */
int ddp_trainer_device_open(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
/* Releases t->device, which may be NULL. Call this after everything else that uses the device has
 * been released. */
void ddp_trainer_device_close(struct ddp_trainer *t);
/* Allocate and free device memory, or CPU memory (ddp_alloc_pages) if the trainer has no device.
 * The memory is not initialised. `bytes` must be the same in both calls. */
void *ddp_trainer_alloc(const struct ddp_trainer *t, size_t bytes);
void ddp_trainer_free(const struct ddp_trainer *t, void *ptr, size_t bytes);
/* Copies t->order, the order of this epoch's images, to the device. */
void ddp_trainer_device_order(struct ddp_trainer *t);
/* Enqueues the forward and backward pass of images order[first, first + n) and the copy of the
 * result. If `notify` is true, notifies the strategy of each gradient after the work that computes
 * the gradient has been enqueued. */
int ddp_trainer_device_step(struct ddp_trainer *t, size_t first, size_t n, float scale, bool notify,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* Enqueues the evaluation of images [first, first + n) and the copy of their result. */
void ddp_trainer_device_evaluate(struct ddp_trainer *t, size_t first, size_t n);
/* Returns whether the results must be collected before the next step or evaluation batch. */
bool ddp_trainer_device_is_full(const struct ddp_trainer *t);
/* Waits for the device and adds all pending results, in order, to *loss and *correct. Does nothing
 * without a device. */
int ddp_trainer_device_collect(struct ddp_trainer *t, double *loss, int64_t *correct,
                               struct ddp_err *err) DDP_MUST_CHECK;
int ddp_trainer_device_wait(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the n values of `from` in CPU memory. Without a device, this is `from` itself. With a
 * device, it is a copy that is valid until the next call. n <= total. The caller must have waited
 * for the device. */
const float *ddp_trainer_read(const struct ddp_trainer *t, const float *from, size_t n);
/* Copies n values from CPU memory to `to`, which is device memory if the trainer has a device. */
void ddp_trainer_write(const struct ddp_trainer *t, float *to, const float *from, size_t n);

/* Runs the training steps of one epoch. Stops early if max_steps is reached. */
int ddp_trainer_epoch(struct ddp_trainer *t, int epoch, struct ddp_err *err) DDP_MUST_CHECK;
/* Evaluates the evaluation images unless options->baseline is set. Combines the figures of all
 * ranks in *out. Compares the ranks' parameters if the strategy keeps them equal or has a function
 * end_epoch. Collective. */
int ddp_trainer_evaluate(struct ddp_trainer *t, int epoch, struct ddp_epoch *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Resets the peak memory that epochs report. Called at the start of a run, because a process may
 * run several trainings. If the system refuses, the peak of the whole process is reported. */
void ddp_trainer_reset_peak(void);
/* Returns DDP_EDATA if the ranks' hashes differ. hashes: one uint64_t per rank, `stride` bytes
 * apart. */
int ddp_trainer_compare(const struct ddp_trainer *t, const void *hashes, size_t stride,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the hash of this rank's parameters. */
uint64_t ddp_trainer_hash(const struct ddp_trainer *t);
/* Returns whether the ranks' parameters are compared after every step. */
bool ddp_trainer_compares_steps(const struct ddp_trainer *t);
/* Returns the hash of the parameters that the strategy keeps equal on all ranks. */
uint64_t ddp_trainer_step_hash(const struct ddp_trainer *t);
/* Notifies the strategy of a finished gradient. arg is the trainer. Stores the first failure in
 * ready_rc. */
void ddp_trainer_ready(void *arg, int param);
/* Stores the strategy's buckets in `buckets` [param_count], in the order in which they are filled.
 * Returns the number of buckets. */
int ddp_trainer_buckets(const struct ddp_trainer *t, struct ddp_bucket *buckets);
/* These functions find the straggler of an epoch. The trainer calls _epoch before the first of
 * `steps` steps. In each step it calls _begin first, _computed when the gradients are computed, and
 * _end when they are exchanged. After the epoch, _judge sets *out, and the straggler of the run so
 * far. _epoch and _judge are collective. _open is not. */
int ddp_trainer_straggler_open(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_trainer_straggler_close(struct ddp_trainer *t);
int ddp_trainer_straggler_epoch(struct ddp_trainer *t, int64_t steps,
                                struct ddp_err *err) DDP_MUST_CHECK;
void ddp_trainer_straggler_begin(struct ddp_trainer *t);
void ddp_trainer_straggler_computed(struct ddp_trainer *t);
void ddp_trainer_straggler_end(struct ddp_trainer *t);
int ddp_trainer_straggler_judge(struct ddp_trainer *t, struct ddp_straggler *out,
                                struct ddp_err *err) DDP_MUST_CHECK;
/* Recording of gradients (options->dump_dir). ddp_trainer_dump_open() is collective and does
 * nothing without a folder. */
int ddp_trainer_dump_open(struct ddp_trainer *t, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_trainer_dump_close(struct ddp_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
