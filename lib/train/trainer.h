/* The trainer: runs a data-parallel training on a communicator and reports every epoch.
 *
 * --partition batch: one permutation per (seed, epoch); each global batch of P*batch images is
 * sliced over the ranks, the last, uneven one too, so P ranks of B train as one rank of P*B (to
 * rounding). Gradients are scaled by 1/global count before the sum. Nothing is chosen by a run-time
 * measurement: same seed, same bits. */
#ifndef DDP_TRAIN_TRAINER_H
#define DDP_TRAIN_TRAINER_H

#include "comm/comm.h"
#include "exchange/sync.h"
#include "model/dataset.h"
#include "model/model.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_partition { DDP_PARTITION_BATCH, DDP_PARTITION_SHARD };
enum ddp_init_sync { DDP_INIT_BROADCAST, DDP_INIT_AVERAGE, DDP_INIT_SEED };

struct ddp_train_options {
    const struct ddp_model_class *model;
    const struct ddp_dataset *data; /* borrowed */
    const struct ddp_sync_class *sync;
    const char *sync_text, *sync_argument, *blas;
    int batch; /* per rank */
    int epochs;
    int64_t max_steps; /* 0: none; a run cut by it still evaluates */
    double lr, momentum, weight_decay;
    enum ddp_init init;
    enum ddp_init_sync init_sync;
    enum ddp_partition partition;
    uint64_t seed;
    size_t bucket_bytes;
    bool overlap, feedback;
    bool check_replicas; /* hash of all parameters compared over ranks after EVERY step (else after
                            every epoch) */
    double target_accuracy; /* NaN: none */
};

/* What the trainer tells, on rank 0 only, outside timed regions. Each may be NULL; a non-zero
 * return stops the run on all ranks. */
struct ddp_train_events {
    int (*on_start)(void *arg, const struct ddp_train_run *run, struct ddp_err *err);
    int (*on_epoch)(void *arg, const struct ddp_train_run *run, const struct ddp_epoch *epoch,
                    struct ddp_err *err);
    /* At most 5 times a second. */
    void (*on_progress)(void *arg, int epoch, int64_t step, int64_t steps, double loss,
                        double images_per_second);
    /* Every step: mean loss of the global batch (tests, --log-steps). */
    void (*on_step)(void *arg, int64_t step, double loss);
    int (*on_end)(void *arg, const struct ddp_train_run *run, struct ddp_err *err);
    void *arg;
};

/* Collective. DDP_EDATA when replicas differ although the strategy says they must not. */
int ddp_train(struct ddp_comm *comm, const struct ddp_train_options *options,
              const struct ddp_train_events *events, struct ddp_err *err) DDP_MUST_CHECK;
/* Bytes of registered memory a rank needs: parameters, gradients. */
uint64_t ddp_train_heap_bytes(const struct ddp_train_options *options);

#ifdef __cplusplus
}
#endif
#endif
