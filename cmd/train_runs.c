/* Chooses the strategies and seeds of `ddpbench train`, and trains with one after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#include "rank_baseline.h"
#include "train_options.h"

/* Number of training steps of the baseline on one rank. They suffice to measure a rate, and are few
 * compared with a training run. */
#define BASELINE_STEPS 60

/* Fails with DDP_EUSAGE if no strategy has the property `has`, because the option would have no
 * effect. */
static int needs_one(const struct ddp_train_values *v, const char *option,
                     bool (*has)(const struct ddp_sync_class *cls), const char *what,
                     struct ddp_err *err)
{
    for (int i = 0; i < v->job_count; i++)
        if (has(v->jobs[i].cls))
            return 0;
    return ddp_fail(err, DDP_EUSAGE, "--%s has no effect with '%s', which %s", option,
                    v->jobs[0].text, what);
}

static bool has_buckets(const struct ddp_sync_class *cls)
{
    return cls->buckets;
}
static bool has_aggregates(const struct ddp_sync_class *cls)
{
    return cls->aggregates;
}
static bool has_compressor(const struct ddp_sync_class *cls)
{
    return cls->compresses;
}

/* Returns true if the strategy exchanges data. */
static bool has_exchange(const struct ddp_sync_class *cls)
{
    return cls->replicas_equal || cls->equal_part != NULL;
}

/* Dump files are named after ranks, so a second run would overwrite them. */
static int check_dump(const struct ddp_cmd *cmd, const struct ddp_train_values *v,
                      const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    const int runs = v->job_count * v->seeds.n * DDP_MAX(v->world.ranks.n, 1);
    if (v->dump_dir && runs > 1)
        return ddp_fail(err, DDP_EUSAGE, "--dump-gradients records one run, not %d", runs);
    if (!v->dump_dir && ddp_opt_given(cmd->rows, parsed, "dump-every"))
        return ddp_fail(err, DDP_EUSAGE, "--dump-every has no effect without --dump-gradients");
    return 0;
}

static int check_meaning(const struct ddp_train_values *v, struct ddp_err *err)
{
    if (strcmp(v->algorithm, "auto") != 0)
        DDP_TRY(needs_one(v, "algorithm", has_exchange, "exchanges nothing", err));
    if (v->overlap)
        DDP_TRY(needs_one(v, "overlap on", has_buckets, "exchanges no gradients", err));
    if (v->bucket_bytes > 0)
        DDP_TRY(needs_one(v, "bucket-bytes", has_buckets, "exchanges no gradients", err));
    if (v->aggregate > 0)
        DDP_TRY(needs_one(v, "aggregate", has_aggregates, "sums no dense gradients", err));
    if (v->feedback != DDP_FEEDBACK_AUTO)
        DDP_TRY(needs_one(v, "feedback", has_compressor, "compresses nothing", err));
    return 0;
}

int ddp_train_values_jobs(const struct ddp_cmd *cmd, struct ddp_train_values *v,
                          const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    if (v->compare.n > 0 && ddp_opt_given(cmd->rows, parsed, "sync"))
        return ddp_fail(err, DDP_EUSAGE, "--sync and --compare are mutually exclusive");
    if (v->seeds.n > 0 && ddp_opt_given(cmd->rows, parsed, "seed"))
        return ddp_fail(err, DDP_EUSAGE, "--seed and --seeds are mutually exclusive");
    v->job_count = v->compare.n > 0 ? v->compare.n : 1;
    for (int i = 0; i < v->job_count; i++) {
        const char *text = v->compare.n > 0 ? v->compare.v[i] : v->sync;
        DDP_TRY(ddp_sync_parse(text, &v->jobs[i], err));
        for (int other = 0; other < i; other++)
            if (strcmp(v->jobs[other].text, text) == 0)
                return ddp_fail(err, DDP_EUSAGE, "--compare has '%s' twice", text);
    }
    if (v->seeds.n == 0) {
        v->seeds.n = 1;
        v->seeds.v[0] = v->world.seed;
    }
    for (int i = 0; i < v->seeds.n; i++)
        for (int other = 0; other < i; other++)
            if (v->seeds.v[other] == v->seeds.v[i])
                return ddp_fail(err, DDP_EUSAGE, "--seeds has %lld twice",
                                (long long)v->seeds.v[i]);
    DDP_TRY(check_dump(cmd, v, parsed, err));
    return check_meaning(v, err);
}

void ddp_train_values_options(const struct ddp_train_values *v, int job, int seed,
                              struct ddp_train_options *out)
{
    *out = (struct ddp_train_options){
        .model = ddp_models()[v->model],
        .data = &v->data,
        .sync = v->jobs[job],
        .blas = v->blas,
        .device = v->model_device,
        .graph = v->model_device != NULL && v->graph != 0,
        .tf32 = v->tf32 != 0,
        .conv = (enum ddp_conv_way)v->conv,
        .batch = (int)v->batch,
        .global_batch = (int)v->global_batch,
        .epochs = (int)v->epochs,
        .max_steps = v->max_steps,
        .optimizer = (enum ddp_optimizer)v->optimizer,
        .lr = v->lr,
        .momentum = v->momentum,
        .weight_decay = v->weight_decay,
        .init = (enum ddp_init)v->init,
        .init_sync = (enum ddp_init_sync)v->init_sync,
        .partition = (enum ddp_partition)v->partition,
        .seed = (uint64_t)v->seeds.v[seed],
        .bucket_bytes = v->bucket_bytes,
        .overlap = v->overlap != 0,
        .feedback = (enum ddp_feedback)v->feedback,
        .aggregate = ddp_aggregates()[v->aggregate],
        .algorithm = strcmp(v->algorithm, "auto") != 0 ? v->algorithm : NULL,
        .check_replicas = v->check_replicas != 0,
        .dump_dir = v->dump_dir,
        .dump_every = v->dump_every,
        .target_accuracy = v->target_accuracy,
    };
}

static int on_start(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    return ddp_emit_train(arg, run, err);
}

static int on_epoch(void *arg, const struct ddp_train_run *run, const struct ddp_epoch *epoch,
                    struct ddp_err *err)
{
    (void)run;
    return ddp_emit_epoch(arg, epoch, err);
}

static int on_end(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    return ddp_emit_train_end(arg, run, err);
}

static void on_progress(void *arg, int epoch, int64_t step, int64_t steps, double loss,
                        double images_per_second)
{
    ddp_emit_progress(arg, "epoch %d, step %lld of %lld, loss %.4f, %.0f images/s", epoch,
                      (long long)step, (long long)steps, loss, images_per_second);
}

static struct ddp_train_events events_of(struct ddp_rank *rank)
{
    return (struct ddp_train_events){.on_start = on_start,
                                     .on_epoch = on_epoch,
                                     .on_progress = on_progress,
                                     .on_end = on_end,
                                     .arg = rank};
}

/* All-gathers one byte per rank into all[ranks]. The byte of rank 0 says whether rank 0 is still
 * training alone. Called outside timed regions. */
static int share_more(struct ddp_comm *comm, char more, char *all, struct ddp_err *err)
{
    return ddp_comm_allgather_bytes(comm, &more, all, 1, err);
}

/* Waits until rank 0 has finished its baseline. The wait consists of one all-gather per training
 * step, because the whole baseline may take longer than the deadline of one all-gather. */
static int wait_for_rank0(struct ddp_comm *comm, char *all, struct ddp_err *err)
{
    do
        DDP_TRY(share_more(comm, 0, all, err));
    while (all[0]);
    return 0;
}

/* The argument of the baseline's event functions. baseline_step calls share_more, in which the
 * other ranks wait. */
struct baseline {
    struct ddp_rank *rank;
    char *all;
    struct ddp_err err;
    int code;
};

static int baseline_start(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    return ddp_emit_train(((struct baseline *)arg)->rank, run, err);
}

static void baseline_step(void *arg, int64_t step, double loss)
{
    struct baseline *b = arg;
    (void)step;
    (void)loss;
    if (b->code == 0)
        b->code = share_more(b->rank->comm, 1, b->all, &b->err);
}

static int baseline_epoch(void *arg, const struct ddp_train_run *run, const struct ddp_epoch *epoch,
                          struct ddp_err *err)
{
    struct baseline *b = arg;
    (void)run;
    if (b->code == 0)
        return ddp_emit_epoch(b->rank, epoch, err);
    *err = b->err;
    return b->code;
}

static int baseline_end(void *arg, const struct ddp_train_run *run, struct ddp_err *err)
{
    return ddp_emit_train_end(((struct baseline *)arg)->rank, run, err);
}

static int train_alone(struct ddp_rank *rank, const struct ddp_train_values *v, int seed, char *all,
                       struct ddp_err *err)
{
    const int zero = 0;
    struct ddp_comm *alone;
    struct ddp_train_options o;
    struct baseline b = {.rank = rank, .all = all, .err = DDP_ERR_INIT};
    const struct ddp_train_events events = {.on_start = baseline_start,
                                            .on_step = baseline_step,
                                            .on_epoch = baseline_epoch,
                                            .on_end = baseline_end,
                                            .arg = &b};
    ddp_train_values_options(v, 0, seed, &o);
    DDP_TRY(ddp_sync_parse("dense", &o.sync, err));
    o.aggregate = NULL;
    o.algorithm = NULL;
    o.overlap = false;
    o.epochs = 1;
    o.max_steps = BASELINE_STEPS;
    o.target_accuracy = NAN;
    o.baseline = true;
    DDP_TRY(ddp_comm_group(rank->comm, &zero, 1, &alone, err));
    int rc = ddp_train(alone, &o, &events, err);
    ddp_comm_destroy(alone);
    return rc;
}

/* Trains a few steps on rank 0 while the other ranks are idle. */
static int run_baseline(struct ddp_rank *rank, const struct ddp_train_values *v, int seed,
                        struct ddp_err *err)
{
    char *all = ddp_calloc((size_t)rank->comm->size, 1);
    int rc = all ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory for the run on one rank");
    if (rc == 0 && rank->comm->rank != 0)
        rc = wait_for_rank0(rank->comm, all, err);
    else if (rc == 0)
        rc = train_alone(rank, v, seed, all, err);
    if (rc == 0 && rank->comm->rank == 0)
        rc = share_more(rank->comm, 0, all, err);
    free(all);
    return rc;
}

/* Measures the memory-copy speed before and also after the training, because a training may take
 * hours. */
int ddp_train_run_all(struct ddp_rank *rank, const struct ddp_train_values *v, struct ddp_err *err)
{
    const struct ddp_train_events events = events_of(rank);
    const bool several = v->job_count * v->seeds.n > 1;
    DDP_TRY(ddp_rank_baseline(rank, err));
    for (int seed = 0; seed < v->seeds.n; seed++) {
        if (several && rank->comm->size > 1)
            DDP_TRY(run_baseline(rank, v, seed, err));
        for (int job = 0; job < v->job_count; job++) {
            struct ddp_train_options o;
            ddp_train_values_options(v, job, seed, &o);
            DDP_TRY(ddp_train(rank->comm, &o, &events, err));
        }
    }
    return ddp_rank_baseline(rank, err);
}
