/* What a training run needs before its first step: memory, model, strategy, first parameters. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "coll/coll.h"
#include "model/blas.h"
#include "train/trainer_impl.h"

#define PAGE_BYTES ((uint64_t)4096)
#define HUGE_BYTES ((uint64_t)2 << 20)
#define HUGE_FROM  ((uint64_t)4 << 20) /* comm.h: blocks from here up are aligned to 2 MiB */

static uint64_t block_bytes(uint64_t bytes)
{
    uint64_t unit = bytes >= HUGE_FROM ? HUGE_BYTES : PAGE_BYTES;
    return (bytes + unit - 1) / unit * unit;
}

uint64_t ddp_train_heap_bytes(const struct ddp_train_options *options)
{
    uint64_t bytes = options->model->parameter_count * sizeof(float);
    return 2 * block_bytes(bytes) + (bytes >= HUGE_FROM ? HUGE_BYTES : 0);
}

static size_t image_count(const struct ddp_images *set)
{
    return (size_t)set->channels * (size_t)set->height * (size_t)set->width;
}

uint64_t ddp_train_private_bytes(const struct ddp_train_options *options)
{
    const struct ddp_images *train = &options->data->train;
    size_t batch = (size_t)options->batch;
    return options->model->parameter_count * sizeof(float) +
           options->model->scratch_bytes(options->batch) +
           batch * (image_count(train) * sizeof(float) + 1) + train->count * sizeof(uint32_t);
}

const char *ddp_init_sync_name(enum ddp_init_sync sync)
{
    static const char *const names[] = {"broadcast", "average", "seed"};
    return names[sync];
}

static int check_shapes(const struct ddp_train_options *o, struct ddp_err *err)
{
    const struct ddp_images *sets[] = {&o->data->train, &o->data->eval};
    for (size_t i = 0; i < DDP_COUNT_OF(sets); i++) {
        const struct ddp_images *s = sets[i];
        if (s->channels != o->model->channels || s->height != o->model->height ||
            s->width != o->model->width || s->classes > o->model->classes)
            return ddp_fail(err, DDP_EUSAGE,
                            "model '%s' takes %d x %d x %d images of %d classes, data set '%s' has "
                            "%d x %d x %d of %d",
                            o->model->name, o->model->channels, o->model->height, o->model->width,
                            o->model->classes, o->data->name, s->channels, s->height, s->width,
                            s->classes);
        if (s->count == 0 || s->count > UINT32_MAX)
            return ddp_fail(err, DDP_EUSAGE, "data set '%s' has %zu images", o->data->name,
                            s->count);
    }
    return 0;
}

/* What needs no other rank. */
static int open_local(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    size_t batch = (size_t)o->batch, tensors = (size_t)o->model->param_count;
    DDP_TRY(ddp_blas_load(o->blas, err));
    t->velocity = ddp_calloc(t->total, sizeof *t->velocity);
    t->x = ddp_calloc(batch * image_count(&o->data->train), sizeof *t->x);
    t->labels = ddp_calloc(batch, 1);
    t->order = ddp_calloc(o->data->train.count, sizeof *t->order);
    t->gathered = ddp_calloc((size_t)t->comm->size, sizeof(struct ddp_epoch_word));
    t->offsets = ddp_calloc(tensors, sizeof *t->offsets);
    t->counts = ddp_calloc(tensors, sizeof *t->counts);
    if (!t->velocity || !t->x || !t->labels || !t->order || !t->gathered || !t->offsets ||
        !t->counts)
        return ddp_fail(err, DDP_ENOMEM, "no memory for batches of %d images", o->batch);
    for (size_t i = 0; i < tensors; i++) {
        t->offsets[i] = o->model->params[i].offset;
        t->counts[i] = o->model->params[i].count;
    }
    DDP_TRY(o->model->create(o->batch, t->params, t->grads, &t->model, err));
    struct ddp_sync_setup setup = {.comm = t->comm,
                                   .params = t->params,
                                   .grads = t->grads,
                                   .total = t->total,
                                   .offsets = t->offsets,
                                   .counts = t->counts,
                                   .param_count = o->model->param_count,
                                   .bucket_bytes = o->bucket_bytes,
                                   .overlap = o->overlap,
                                   .feedback = o->feedback,
                                   .argument = o->sync_argument ? o->sync_argument : ""};
    return o->sync->create(&setup, &t->sync, err);
}

/* The same first parameters everywhere. A broadcast is an all-reduce in which all but rank 0 add
 * zeros: exact (but for the sign of a zero), and the one collective that every backend has. */
static int first_parameters(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    bool average = o->init_sync == DDP_INIT_AVERAGE;
    uint64_t own_seed = ddp_mix64(o->seed ^ ddp_mix64((uint64_t)t->comm->rank));
    if (o->init_sync == DDP_INIT_BROADCAST && t->comm->rank != 0)
        memset(t->params, 0, t->total * sizeof *t->params);
    else
        ddp_model_init_params(o->model, o->init, average ? own_seed : o->seed, t->params);
    if (o->init_sync == DDP_INIT_SEED || t->comm->size == 1)
        return 0;
    struct ddp_coll_plan plan;
    struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                 .send = t->params,
                                 .recv = t->params,
                                 .count = t->total,
                                 .dtype = DDP_F32,
                                 .op = average ? DDP_AVG : DDP_SUM};
    int rc = ddp_coll_plan_init(&plan, t->comm, NULL, &args, err);
    DDP_TRY(ddp_comm_agree(t->comm, rc, err));
    rc = ddp_coll_run(t->comm, &plan, err);
    ddp_coll_plan_release(&plan);
    return rc;
}

/* Rank 0's events decide what all ranks exchange. */
static int agree_on_watching(struct ddp_trainer *t, struct ddp_err *err)
{
    uint8_t mine = t->events->on_step != NULL, *all = t->gathered;
    DDP_TRY(ddp_comm_exchange(t->comm, &mine, all, sizeof mine, err));
    t->report_steps = all[0] != 0;
    t->watch_steps = t->report_steps || (t->o->check_replicas && t->o->sync->replicas_equal);
    return 0;
}

int ddp_trainer_open(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    void *params = NULL, *grads = NULL;
    ddp_flight_phase(t->comm->flight, "training set-up");
    DDP_TRY(check_shapes(o, err)); /* equal on all ranks */
    t->total = o->model->parameter_count;
    t->partition = (struct ddp_partition_plan){.kind = o->partition,
                                               .images = o->data->train.count,
                                               .ranks = t->comm->size,
                                               .batch = o->batch,
                                               .seed = o->seed};
    DDP_TRY(ddp_comm_alloc(t->comm, t->total * sizeof(float), &params, err));
    t->params = params;
    DDP_TRY(ddp_comm_alloc(t->comm, t->total * sizeof(float), &grads, err));
    t->grads = grads;
    memset(grads, 0, t->total * sizeof(float));
    int rc = open_local(t, err);
    DDP_TRY(ddp_comm_agree(t->comm, rc, err));
    DDP_TRY(agree_on_watching(t, err));
    return first_parameters(t, err);
}

void ddp_trainer_close(struct ddp_trainer *t)
{
    if (t->sync)
        t->o->sync->destroy(t->sync);
    if (t->model)
        t->o->model->destroy(t->model);
    free(t->counts);
    free(t->offsets);
    free(t->gathered);
    free(t->order);
    free(t->labels);
    free(t->x);
    free(t->velocity);
    if (t->grads)
        ddp_comm_free(t->comm, t->grads);
    if (t->params)
        ddp_comm_free(t->comm, t->params);
}
