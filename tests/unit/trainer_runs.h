/* Test helper for the trainer's tests: training runs on threads as ranks, on generated images.
 * Include it after cmocka.h. */
#ifndef DDP_TESTS_TRAINER_RUNS_H
#define DDP_TESTS_TRAINER_RUNS_H

#include <assert.h>
#include <math.h>
#include <string.h>

#include "comm/backend.h"
#include "launch/launch.h"
#include "train/trainer.h"

#include "trainer_images.h"

enum { TRAIN = 1000, EVAL = 203, STEPS_MAX = 200, EPOCHS_MAX = 20 };

static struct ddp_dataset data;

/* A run, the events it reported, and its result. */
struct run {
    struct ddp_train_options o;
    int ranks;
    int stop_at_epoch, stop_code; /* on_epoch returns stop_code at this epoch; 0: at none */
    bool quiet;                   /* no callbacks for steps and progress */
    double losses[STEPS_MAX];
    int64_t steps;
    struct ddp_epoch epochs[EPOCHS_MAX];
    int epoch_count, progress;
    struct ddp_train_run start, end;
    int code;
    struct ddp_err err;
};

static inline int on_start(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    ((struct run *)arg)->start = *run;
    return 0;
}

static inline int on_epoch(void *arg, const struct ddp_train_run *run,
                           const struct ddp_epoch *epoch, struct ddp_err *err)
{
    struct run *r = arg;
    r->epochs[r->epoch_count++] = *epoch;
    if (epoch->epoch == r->stop_at_epoch)
        return ddp_fail(err, r->stop_code, "the listener has had enough");
    return 0;
}

static inline void on_progress(void *arg, int epoch, int64_t step, int64_t steps, double loss,
                               double images_per_second)
{
    ((struct run *)arg)->progress++;
}

static inline void on_step(void *arg, int64_t step, double loss)
{
    struct run *r = arg;
    assert(step == r->steps + 1 && step <= STEPS_MAX);
    r->losses[r->steps++] = loss;
}

static inline int on_end(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    ((struct run *)arg)->end = *run;
    return 0;
}

static inline int rank_main(void *arg, struct ddp_launch_rank *rank, struct ddp_err *err)
{
    struct run *r = arg;
    struct ddp_comm *comm;
    const struct ddp_train_events events = {.on_start = on_start,
                                            .on_epoch = on_epoch,
                                            .on_progress = r->quiet ? NULL : on_progress,
                                            .on_step = r->quiet ? NULL : on_step,
                                            .on_end = on_end,
                                            .arg = r};
    const struct ddp_comm_options options = {
        .timeout_ns = (int64_t)60 * 1000000000,
        .heap_bytes = ddp_train_heap_bytes(&r->o, r->ranks),
        .threads = r->o.overlap,
        .device = ddp_device_cpu(ddp_cpu_best_simd()),
    };
    DDP_TRY(ddp_comm_create(ddp_backend_find("shm"), &rank->rank_info, &options, &comm, err));
    int rc = ddp_train(comm, &r->o, comm->rank == 0 ? &events : NULL, err);
    ddp_comm_destroy(comm);
    return rc;
}

/* Sets the strategy from a text such as "topk:0.01". */
static inline void set_sync(struct ddp_train_options *o, const char *text)
{
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_sync_parse(text, &o->sync, &err) != 0)
        fail_msg("%s", err.text);
}

static inline struct run defaults(int ranks, int batch)
{
    struct run r = {.ranks = ranks,
                    .o = {.model = ddp_model_find("singa-cnn"),
                          .data = &data,
                          .batch = batch,
                          .epochs = 1,
                          .lr = 0.005,
                          .momentum = 0.9,
                          .weight_decay = 1e-5,
                          .seed = 1,
                          .dump_every = 1,
                          .target_accuracy = NAN},
                    .err = DDP_ERR_INIT};
    set_sync(&r.o, "dense");
    return r;
}

static inline void run_it(struct run *r)
{
    const struct ddp_launch_job job = {.ranks = r->ranks,
                                       .mode = DDP_LAUNCH_THREADS,
                                       .timeout_ns = (int64_t)60 * 1000000000,
                                       .heap_bytes = ddp_train_heap_bytes(&r->o, r->ranks),
                                       .rank_main = rank_main,
                                       .arg = r};
    struct ddp_launch_outcome outcome = {0};
    int rc = ddp_launch(&job, &outcome, &r->err);
    r->code = rc ? rc : outcome.code;
}

static inline void expect_success(struct run *r)
{
    run_it(r);
    if (r->code)
        print_error("%d ranks: %d, %s\n", r->ranks, r->code, r->err.text);
    assert_int_equal(r->code, 0);
}

static inline int make_data(void **state)
{
    make_images(&data.train, TRAIN, 2);
    make_images(&data.eval, EVAL, 3);
    strcpy(data.name, "noise");
    data.synthetic = true;
    return 0;
}

static inline int drop_data(void **state)
{
    ddp_dataset_release(&data);
    return 0;
}

#endif
