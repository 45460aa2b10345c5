/* The trainer. It runs a data-parallel training on a communicator and reports every epoch.
 *
 * With DDP_PARTITION_BATCH each global batch is split over the ranks (partition.h). If the strategy
 * averages the complete gradients over the global batch in each step, P ranks with batch B train
 * like one rank with batch P*B, except for rounding. Models with batch normalisation are an
 * exception, because each rank normalises only its own images.
 *
 * No choice depends on a measurement at run time. The same seed therefore gives the same bits if
 * the options, the ranks and their hosts, the processor or GPU, and the libraries of the matrix
 * products and of the exchange are the same. Another library or processor may add in another order
 * and round differently.
 *
 * Before an evaluation, the running statistics of batch normalisation are averaged over the ranks.
 * The weight of a rank is the number of images that it trained on in the epoch. If the ranks have
 * not exchanged anything since the run began (--sync none), they have different models, and their
 * statistics are not averaged.
 *
 * Figures of an epoch (struct ddp_epoch):
 *   - Times and images per second cover only the training steps, without evaluation, checks and
 *     events. `seconds` is the time of the slowest rank.
 *   - Compute time, exchange time, exposed time and wire bytes are means over the ranks. Exposed
 *     time is the part of the exchange time during which the training waits (struct
 *     ddp_sync_counters). Compute time is all time except exposed time.
 *   - The straggler is the rank for which the others waited in the exchanges (trainer_straggler.c).
 *   - Training loss and accuracy are computed on each batch before its update. The evaluation
 *     covers all evaluation images after the epoch.
 *   - total_seconds and target_seconds (struct ddp_train_run) are sums of training time.
 *     total_seconds and total_wire_bytes are NaN until the last epoch has ended. */
#ifndef DDP_TRAIN_TRAINER_H
#define DDP_TRAIN_TRAINER_H

#include "comm/arrival.h"
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
extern const char *const ddp_init_sync_names[]; /* "broadcast", "average", "seed", NULL */

struct ddp_train_options {
    const struct ddp_model_class *model;
    const struct ddp_dataset *data; /* borrowed, loaded */
    struct ddp_sync_spec sync;
    const char *blas;                /* BLAS library; NULL to search for one (model/blas.h) */
    const struct ddp_device *device; /* device whose streams and kernels run the model; NULL to run
                                        the model directly on the CPU */
    const struct ddp_layers *layers; /* NULL for the layers of the device */
    bool graph; /* run the model's step as a captured graph (device/stream.h); with overlap, one
                   graph per bucket */
    bool tf32;  /* see struct ddp_layers_setup */
    enum ddp_conv_way conv; /* see struct ddp_layers_setup */
    int batch;              /* images per rank and step; used if global_batch is 0 */
    int global_batch;       /* images of all ranks per step, at least one per rank; 0 if not set */
    int epochs;
    int64_t max_steps; /* evaluate and stop after this many steps; 0 for no limit */
    enum ddp_optimizer optimizer;
    double lr;
    double momentum; /* SGD only */
    double weight_decay;
    enum ddp_init init;
    enum ddp_init_sync init_sync;
    struct ddp_partition_spec partition;
    uint64_t seed;
    size_t bucket_bytes;                   /* see struct ddp_sync_setup */
    bool overlap;                          /* see struct ddp_sync_setup */
    enum ddp_feedback feedback;            /* see struct ddp_sync_setup */
    const struct ddp_aggregate *aggregate; /* see struct ddp_sync_setup */
    const char *algorithm;                 /* all-reduce algorithm; NULL for auto */
    bool check_replicas; /* compare the ranks' parameters after every step, not only after every
                            epoch */
    bool baseline; /* skip the evaluation, so that only speed is measured; evaluation figures are
                      NaN */
    const char *dump_dir; /* folder for recorded gradients (base/npy.h), created if missing; NULL to
                             record none */
    int64_t dump_every;   /* record every dump_every-th step, from the first on; at least 1 */
    double target_accuracy;     /* NaN for no target */
    struct ddp_arrival arrival; /* delays the backward pass of ranks */
};

/* Callbacks of a run. The trainer calls them only on rank 0 and outside timed regions. Each may be
 * NULL. If a callback returns an error code, the run stops on all ranks. */
struct ddp_train_events {
    int (*on_start)(void *arg, const struct ddp_train_run *run, struct ddp_err *err);
    int (*on_epoch)(void *arg, const struct ddp_train_run *run, const struct ddp_epoch *epoch,
                    struct ddp_err *err);
    /* Called at most 5 times per second. step: finished steps of this epoch. steps: all steps of
     * this epoch. loss: mean over the images that rank 0 has trained on in the epoch. */
    void (*on_progress)(void *arg, int epoch, int64_t step, int64_t steps, double loss,
                        double images_per_second);
    /* Called after every step with the mean loss of the global batch. */
    void (*on_step)(void *arg, int64_t step, double loss);
    int (*on_end)(void *arg, const struct ddp_train_run *run, struct ddp_err *err);
    void *arg;
};

/* Checks whether a run can use options->device and `backend` together. Does not access the device.
 * Several ranks on GPUs need a backend that exchanges device memory, because the trainer does not
 * copy gradients to the CPU for an exchange. Returns 0, or DDP_EUNAVAIL with the reason. */
int ddp_train_check_device(const struct ddp_train_options *options,
                           const struct ddp_backend *backend, int ranks,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Runs the training. Collective. Loads BLAS in the calling thread if the model runs on the CPU.
 * `options` must be equal on all ranks. `events` is used only on rank 0, and may be NULL. Returns,
 * among others, the errors of ddp_train_check(), ddp_train_check_device() and the callbacks.
 * Returns DDP_EDATA if the ranks' parameters differ although the strategy keeps them equal. */
int ddp_train(struct ddp_comm *comm, const struct ddp_train_options *options,
              const struct ddp_train_events *events, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_EUSAGE if the loaded data set or the batch does not fit the model or the number of
 * ranks. ddp_train() calls this function too. Callers may use it before they start ranks. */
int ddp_train_check(const struct ddp_train_options *options, int ranks,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the bytes of registered memory that each of `ranks` ranks needs for parameters, gradients
 * and the strategy's buffers. */
uint64_t ddp_train_heap_bytes(const struct ddp_train_options *options, int ranks);
/* Returns the bytes of private memory that each of `ranks` ranks needs. The data set is not
 * counted, because the ranks share it. */
uint64_t ddp_train_private_bytes(const struct ddp_train_options *options, int ranks);
/* Returns the number of images that `ranks` ranks together take in a full step. */
int64_t ddp_train_global_batch(const struct ddp_train_options *options, int ranks);
/* Returns the largest number of images that one of `ranks` ranks takes per step. */
int ddp_train_batch(const struct ddp_train_options *options, int ranks);

#ifdef __cplusplus
}
#endif
#endif
