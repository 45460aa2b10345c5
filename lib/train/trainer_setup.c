/* Set-up of a training run: memory, model, strategy and initial parameters. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "coll/coll.h"
#include "model/blas.h"
#include "train/trainer_impl.h"

static size_t image_count(const struct ddp_images *set)
{
    return (size_t)set->channels * (size_t)set->height * (size_t)set->width;
}

/* For DDP_PARTITION_SHARD the batch is rounded down (as in needle). */
int ddp_train_batch(const struct ddp_train_options *options, int ranks)
{
    if (!options->global_batch)
        return options->batch;
    bool up = options->partition == DDP_PARTITION_BATCH && options->global_batch % ranks != 0;
    return options->global_batch / ranks + up;
}

const char *const ddp_init_sync_names[] = {"broadcast", "average", "seed", NULL};

int ddp_train_check(const struct ddp_train_options *o, int ranks, struct ddp_err *err)
{
    const struct ddp_images *sets[] = {&o->data->train, &o->data->eval};
    for (size_t i = 0; i < DDP_COUNT_OF(sets); i++) {
        const struct ddp_images *s = sets[i];
        if (s->channels != o->model->channels || s->height != o->model->height ||
            s->width != o->model->width || s->classes > o->model->classes)
            return ddp_fail(err, DDP_EUSAGE,
                            "model '%s' takes %d x %d x %d images of %d classes, but data set "
                            "'%s' has %d x %d x %d images of %d classes",
                            o->model->name, o->model->channels, o->model->height, o->model->width,
                            o->model->classes, o->data->name, s->channels, s->height, s->width,
                            s->classes);
        if (s->count == 0 || s->count > UINT32_MAX)
            return ddp_fail(err, DDP_EUSAGE,
                            "data set '%s' has %zu images; 1 to 4294967295 are supported",
                            o->data->name, s->count);
    }
    if (ddp_train_batch(o, ranks) < 1)
        return ddp_fail(err, DDP_EUSAGE, "a global batch of %d images is too small for %d ranks",
                        o->global_batch, ranks);
    return 0;
}

/* The part of the set-up that needs no communication. */
static int open_local(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    size_t batch = (size_t)t->batch, tensors = (size_t)o->model->param_count;
    if (o->device == NULL || strcmp(o->device->name, "cpu") == 0)
        DDP_TRY(ddp_blas_load(o->blas, err));
    t->optim = (struct ddp_optim){.device = t->device ? t->device->device : NULL,
                                  .stream = t->device ? t->device->stream : NULL,
                                  .kind = o->optimizer,
                                  .lr = o->lr,
                                  .momentum = o->momentum,
                                  .weight_decay = o->weight_decay};
    DDP_TRY(ddp_optim_init(&t->optim, t->total, err));
    t->x = ddp_trainer_alloc(t, batch * image_count(&o->data->train) * sizeof *t->x);
    t->labels = ddp_trainer_alloc(t, batch);
    t->order = ddp_calloc(o->data->train.count, sizeof *t->order);
    t->gathered = ddp_calloc((size_t)t->comm->size, sizeof(struct ddp_epoch_totals));
    t->offsets = ddp_calloc(tensors, sizeof *t->offsets);
    t->counts = ddp_calloc(tensors, sizeof *t->counts);
    if (!t->x || !t->labels || !t->order || !t->gathered || !t->offsets || !t->counts)
        return ddp_fail(err, DDP_ENOMEM, "no memory for batches of %d images", t->batch);
    const struct ddp_model_target model_place = {.device = o->device,
                                                 .stream = t->device ? t->device->stream : NULL,
                                                 .layers = o->layers,
                                                 .tf32 = o->tf32,
                                                 .conv = (int)o->conv};
    return o->model->create(o->model, &model_place, t->batch, t->params, t->grads, &t->model, err);
}

/* Initialises this rank's parameters. For DDP_INIT_BROADCAST, all ranks except rank 0 set them to
 * zero, because first_parameters() broadcasts by a sum. */
static int own_parameters(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    const uint64_t own_seed = ddp_mix64(o->seed ^ ddp_mix64((uint64_t)t->comm->rank));
    float *params = ddp_calloc(t->total, sizeof *params);
    if (params == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu parameters", t->total);
    if (o->init_sync != DDP_INIT_BROADCAST || t->comm->rank == 0)
        ddp_model_init_params(o->model, o->init,
                              o->init_sync == DDP_INIT_AVERAGE ? own_seed : o->seed, params);
    ddp_trainer_write(t, t->params, params, t->total);
    free(params);
    return 0;
}

/* Sets all ranks' parameters to the same initial values. The broadcast is an all-reduce to which
 * all ranks except rank 0 contribute zeros, because every backend has an all-reduce. The sum is
 * exact, except for the sign of a zero. */
static int first_parameters(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    bool average = o->init_sync == DDP_INIT_AVERAGE;
    DDP_TRY(ddp_comm_agree(t->comm, own_parameters(t, err), err));
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

/* Sets report_steps and watch_steps on all ranks. Only rank 0 has callbacks, so rank 0 decides
 * whether losses are gathered after each step. */
static int agree_on_watching(struct ddp_trainer *t, struct ddp_err *err)
{
    uint8_t mine = t->events->on_step != NULL, *all = t->gathered;
    DDP_TRY(ddp_comm_allgather_bytes(t->comm, &mine, all, sizeof mine, err));
    t->report_steps = all[0] != 0;
    t->watch_steps = t->report_steps || ddp_trainer_compares_steps(t);
    return 0;
}

/* Allocates an array of all parameters. A single rank uses private memory, because it may belong to
 * a larger world whose other ranks cannot join a collective allocation. */
static int alloc_array(struct ddp_trainer *t, float **out, struct ddp_err *err)
{
    void *pages = NULL;
    if (t->comm->size > 1)
        DDP_TRY(ddp_comm_alloc(t->comm, t->total * sizeof(float), &pages, err));
    else
        pages = t->device ? t->device->device->alloc(t->total * sizeof(float))
                          : ddp_alloc_pages(t->total * sizeof(float));
    if (pages == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu parameters", t->total);
    *out = pages;
    return 0;
}

static void free_array(struct ddp_trainer *t, float *pages)
{
    if (pages && t->comm->size > 1)
        ddp_comm_free(t->comm, pages);
    else if (pages && t->device)
        t->device->device->free(pages, t->total * sizeof(float));
    else if (pages)
        ddp_free_pages(pages, t->total * sizeof(float));
}

int ddp_trainer_open(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    ddp_flight_phase(t->comm->flight, "training set-up");
    ddp_trainer_reset_peak();
    DDP_TRY(ddp_train_check(o, t->comm->size, err)); /* the result is the same on all ranks */
    t->batch = ddp_train_batch(o, t->comm->size);
    t->total = o->model->parameter_count;
    t->partition = (struct ddp_partition_plan){.kind = o->partition,
                                               .images = o->data->train.count,
                                               .ranks = t->comm->size,
                                               .batch = t->batch,
                                               .global_batch = (size_t)o->global_batch,
                                               .seed = o->seed};
    DDP_TRY(ddp_train_check_device(o, t->comm->backend, t->comm->size, err));
    int rc = ddp_trainer_device_open(t, err);
    if (o->device)
        DDP_TRY(ddp_comm_agree(t->comm, rc, err));
    DDP_TRY(alloc_array(t, &t->params, err));
    DDP_TRY(alloc_array(t, &t->grads, err));
    if (t->device)
        t->device->device->fill(t->grads, 0, t->total * sizeof(float));
    else
        memset(t->grads, 0, t->total * sizeof(float));
    rc = open_local(t, err);
    DDP_TRY(ddp_comm_agree(t->comm, rc, err));
    DDP_TRY(ddp_trainer_open_sync(t, err));
    DDP_TRY(ddp_trainer_dump_open(t, err));
    DDP_TRY(agree_on_watching(t, err));
    return first_parameters(t, err);
}

void ddp_trainer_close(struct ddp_trainer *t)
{
    if (t->sync)
        t->o->sync->destroy(t->sync);
    ddp_trainer_dump_close(t);
    if (t->model)
        t->o->model->destroy(t->model);
    free(t->counts);
    free(t->offsets);
    free(t->gathered);
    free(t->order);
    const size_t batch = (size_t)t->batch;
    ddp_trainer_free(t, t->labels, batch);
    ddp_trainer_free(t, t->x, batch * image_count(&t->o->data->train) * sizeof *t->x);
    ddp_optim_release(&t->optim);
    free_array(t, t->grads);
    free_array(t, t->params);
    ddp_trainer_device_close(t);
}
