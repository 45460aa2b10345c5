/* The trainer: runs a data-parallel training on a communicator and reports every epoch.
 *
 * --partition batch: one permutation per (seed, epoch); each global batch of P*batch images is
 * sliced over the ranks, the last, uneven one too, so P ranks of B train as one rank of P*B (to
 * rounding; batch normalisation sees each rank's part, so not with it). Gradients are scaled by
 * 1/global count before the sum. Nothing is chosen by a run-time measurement: same seed, same bits.
 *
 * Before an evaluation the running statistics of batch normalisation become the mean over the
 * ranks, weighted by the images each trained on in the epoch; but not while the ranks have not
 * exchanged anything (sync none): those are other nets.
 *
 * What its figures mean. An epoch's seconds, images per second and parts of time are of its
 * training steps alone: evaluation, checks and events are outside. seconds: of the slowest rank;
 * compute (all that is not exposed exchange), exchange, exposed and wire bytes: means over ranks.
 * Training loss and accuracy are over the epoch's images as they were met, before each update;
 * evaluation is over all images, after the epoch. total_seconds and target_seconds add up training
 * seconds; totals are NaN until on_end. */
#ifndef DDP_TRAIN_TRAINER_H
#define DDP_TRAIN_TRAINER_H

#include "comm/comm.h"
#include "exchange/sync.h"
#include "model/dataset.h"
#include "model/layers.h"
#include "model/model.h"
#include "record/record.h"
#include "train/optim.h"
#include "train/partition.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the first parameters come from: rank 0's to all; the mean over ranks of what each drew from
 * a seed of its own; or each from the common seed, without communication. */
enum ddp_init_sync { DDP_INIT_BROADCAST, DDP_INIT_AVERAGE, DDP_INIT_SEED };
const char *ddp_init_sync_name(enum ddp_init_sync sync); /* "broadcast", "average", "seed" */

struct ddp_train_options {
    const struct ddp_model_class *model;
    const struct ddp_dataset *data; /* borrowed */
    const struct ddp_sync_class *sync;
    const char *sync_text;
    const char *sync_argument;       /* "topk:0.01" and "0.01" */
    const char *blas;                /* library, NULL: search (model/blas.h) */
    const struct ddp_device *device; /* where models compute, through streams and kernels on
                                        them; NULL: this processor, directly */
    const struct ddp_layers *layers; /* NULL: the device's */
    bool graph; /* a step of the model becomes a graph, launched as one (device/stream.h); with
                   overlap one a bucket */
    bool tf32;  /* this and the next: as struct ddp_layers_setup */
    enum ddp_conv_way conv;
    int batch;        /* per rank, when global_batch is 0 */
    int global_batch; /* of all ranks together, cut over them: at least one image each */
    int epochs;
    int64_t max_steps; /* 0: none; a run cut by it still evaluates */
    enum ddp_optimizer optimizer;
    double lr;
    double momentum;
    double weight_decay; /* momentum: of SGD */
    enum ddp_init init;
    enum ddp_init_sync init_sync;
    enum ddp_partition partition;
    uint64_t seed;
    size_t bucket_bytes; /* this and the next: as struct ddp_sync_setup */
    bool overlap;
    enum ddp_feedback feedback;
    const struct ddp_aggregate *aggregate; /* NULL: all-reduce */
    const char *algorithm;                 /* NULL: auto */
    bool check_replicas;    /* hash of all parameters that must be equal compared over ranks after
                               EVERY step (else after every epoch) */
    bool baseline;          /* for speed alone: no evaluation, its figures are NaN */
    const char *dump_dir;   /* folder (made if missing) for gradients as base/npy.h says; or NULL */
    int64_t dump_every;     /* record the first step and every so many; >= 1 */
    double target_accuracy; /* NaN: none */
};

/* What the trainer tells, on rank 0 only, outside timed regions. Each may be NULL; a non-zero
 * return stops the run on all ranks. */
struct ddp_train_events {
    int (*on_start)(void *arg, const struct ddp_train_run *run, struct ddp_err *err);
    int (*on_epoch)(void *arg, const struct ddp_train_run *run, const struct ddp_epoch *epoch,
                    struct ddp_err *err);
    /* At most 5 times a second. step of steps in this epoch; loss: mean so far of this rank's
     * images. */
    void (*on_progress)(void *arg, int epoch, int64_t step, int64_t steps, double loss,
                        double images_per_second);
    /* Every step: mean loss of the global batch (tests, --log-steps). */
    void (*on_step)(void *arg, int64_t step, double loss);
    int (*on_end)(void *arg, const struct ddp_train_run *run, struct ddp_err *err);
    void *arg;
};

/* Can a run be on options->device, with ranks that exchange by `backend`? DDP_EUNAVAIL says why
 * not. Nothing is ever copied to the processor to be exchanged. Does not touch the device. */
int ddp_train_check_device(const struct ddp_train_options *options,
                           const struct ddp_backend *backend, int ranks,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Collective. Loads BLAS in the calling thread. options (but events: rank 0's count) must be equal
 * on all ranks. DDP_EUSAGE when the data do not fit the model; DDP_EDATA when replicas differ
 * although the strategy says they must not. */
int ddp_train(struct ddp_comm *comm, const struct ddp_train_options *options,
              const struct ddp_train_events *events, struct ddp_err *err) DDP_MUST_CHECK;
/* Do the data, which are loaded, and the batch fit the model and `ranks` ranks? DDP_EUSAGE. Part of
 * ddp_train; for whoever wants to know before there are ranks. */
int ddp_train_check(const struct ddp_train_options *options, int ranks,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Bytes of registered memory a rank of `ranks` needs: parameters, gradients, the strategy's. */
uint64_t ddp_train_heap_bytes(const struct ddp_train_options *options, int ranks);
/* Bytes of its own memory a rank needs beside them; the data set, shared by ranks, not counted. */
uint64_t ddp_train_private_bytes(const struct ddp_train_options *options, int ranks);
/* Most images one of `ranks` ranks takes in a step. */
int ddp_train_batch(const struct ddp_train_options *options, int ranks);

#ifdef __cplusplus
}
#endif
#endif
