/* The trainer: runs a data-parallel training on a communicator and reports every epoch.
 *
 * With DDP_PARTITION_BATCH the images are permuted once per (seed, epoch), and each global batch is
 * split over the ranks, including the last, shorter one. Gradients are scaled by 1 / global batch
 * before they are summed. P ranks with batch B therefore train like one rank with batch P*B, except
 * for rounding. Models with batch normalisation differ, because each rank normalises its own
 * images. No choice depends on a run-time measurement: the same seed gives the same bits.
 *
 * Before an evaluation the running statistics of batch normalisation are averaged over the ranks,
 * weighted by the images that each rank trained on in the epoch. Ranks that have never exchanged
 * anything (--sync none) hold different models and are not averaged.
 *
 * Figures of an epoch (struct ddp_epoch):
 * - All times and the images per second cover the training steps only, without evaluation, checks
 *   and events. `seconds` is the time of the slowest rank.
 * - Compute time, exchange time, exposed time and wire bytes are means over the ranks. Compute time
 *   is all time that is not exposed exchange.
 * - Training loss and accuracy are taken over the epoch's images before each update. Evaluation
 *   covers all evaluation images after the epoch.
 * - total_seconds and target_seconds are sums of training time. Totals are NaN until on_end. */
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

/* How the ranks get the same initial parameters. */
enum ddp_init_sync {
    DDP_INIT_BROADCAST, /* rank 0 sends its parameters to all ranks */
    DDP_INIT_AVERAGE,   /* each rank draws from its own seed, and the ranks average */
    DDP_INIT_SEED       /* all ranks draw from the common seed, without communication */
};
const char *ddp_init_sync_name(enum ddp_init_sync sync); /* "broadcast", "average", "seed" */

struct ddp_train_options {
    const struct ddp_model_class *model;
    const struct ddp_dataset *data; /* borrowed, loaded */
    const struct ddp_sync_class *sync;
    const char *sync_text;           /* strategy with its argument, for example "topk:0.01" */
    const char *sync_argument;       /* the argument alone, "0.01" */
    const char *blas;                /* BLAS library; NULL searches for one (model/blas.h) */
    const struct ddp_device *device; /* runs the model through streams and kernels; NULL runs it
                                        directly on the CPU */
    const struct ddp_layers *layers; /* NULL: the layers of the device */
    bool graph; /* run a step of the model as a captured graph (device/stream.h), or as one graph
                   per bucket with overlap */
    bool tf32;  /* see struct ddp_layers_setup */
    enum ddp_conv_way conv; /* see struct ddp_layers_setup */
    int batch;              /* images per rank and step; used if global_batch is 0 */
    int global_batch;       /* images of all ranks per step; every rank gets at least one */
    int epochs;
    int64_t max_steps; /* stop after this many steps and evaluate; 0: no limit */
    enum ddp_optimizer optimizer;
    double lr;
    double momentum; /* SGD only */
    double weight_decay;
    enum ddp_init init;
    enum ddp_init_sync init_sync;
    enum ddp_partition partition;
    uint64_t seed;
    size_t bucket_bytes;                   /* see struct ddp_sync_setup */
    bool overlap;                          /* see struct ddp_sync_setup */
    enum ddp_feedback feedback;            /* see struct ddp_sync_setup */
    const struct ddp_aggregate *aggregate; /* NULL: all-reduce */
    const char *algorithm;                 /* all-reduce algorithm; NULL: auto */
    bool check_replicas;    /* compare the ranks' parameters after every step, by a hash of those
                               that must be equal, rather than only after every epoch */
    bool baseline;          /* measure speed only: skip the evaluation, whose figures are NaN */
    const char *dump_dir;   /* folder for recorded gradients (base/npy.h), created if missing;
                               NULL: record none */
    int64_t dump_every;     /* record the first step and then every dump_every-th; at least 1 */
    double target_accuracy; /* NaN: no target */
};

/* Callbacks of a run. The trainer calls them on rank 0 only, outside timed regions. Each may be
 * NULL. A non-zero return value stops the run on all ranks. */
struct ddp_train_events {
    int (*on_start)(void *arg, const struct ddp_train_run *run, struct ddp_err *err);
    int (*on_epoch)(void *arg, const struct ddp_train_run *run, const struct ddp_epoch *epoch,
                    struct ddp_err *err);
    /* Called at most 5 times a second. step, steps: finished and total steps of this epoch. loss:
     * mean over the images that this rank has trained on in the epoch. */
    void (*on_progress)(void *arg, int epoch, int64_t step, int64_t steps, double loss,
                        double images_per_second);
    /* Called after every step with the mean loss of the global batch (tests, --log-steps). */
    void (*on_step)(void *arg, int64_t step, double loss);
    int (*on_end)(void *arg, const struct ddp_train_run *run, struct ddp_err *err);
    void *arg;
};

/* Checks that a run can use options->device with ranks that communicate through `backend`, without
 * touching the device. Device data is never copied to the CPU for an exchange. DDP_EUNAVAIL with
 * the reason. */
int ddp_train_check_device(const struct ddp_train_options *options,
                           const struct ddp_backend *backend, int ranks,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Runs the training. Collective. Loads BLAS in the calling thread. options must be equal on all
 * ranks; of events, only rank 0's are used. DDP_EUSAGE if the data set does not fit the model,
 * DDP_EDATA if replicas differ although the strategy keeps them equal. */
int ddp_train(struct ddp_comm *comm, const struct ddp_train_options *options,
              const struct ddp_train_events *events, struct ddp_err *err) DDP_MUST_CHECK;
/* Checks that the loaded data set and the batch fit the model and `ranks` ranks. DDP_EUSAGE.
 * ddp_train() calls it; callers may use it before they start ranks. */
int ddp_train_check(const struct ddp_train_options *options, int ranks,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Bytes of registered memory that each of `ranks` ranks needs: parameters, gradients, and the
 * strategy's buffers. */
uint64_t ddp_train_heap_bytes(const struct ddp_train_options *options, int ranks);
/* Bytes of private memory that each of `ranks` ranks needs in addition. The data set is not counted
 * because the ranks share it. */
uint64_t ddp_train_private_bytes(const struct ddp_train_options *options, int ranks);
/* Most images that one of `ranks` ranks takes in a step. */
int ddp_train_batch(const struct ddp_train_options *options, int ranks);

#ifdef __cplusplus
}
#endif
#endif
