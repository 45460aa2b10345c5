/* A training run: set-up of memory, model, strategy and initial parameters, then the epochs, and
 * the events that rank 0 reports. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "coll/coll.h"
#include "model/blas.h"
#include "train/trainer_impl.h"

#define PAGE_BYTES ((uint64_t)4096)
#define HUGE_BYTES ((uint64_t)2 << 20)
#define HUGE_FROM  ((uint64_t)4 << 20) /* comm.h aligns blocks of this size or more to 2 MiB */

static uint64_t block_bytes(uint64_t bytes)
{
    uint64_t unit = bytes >= HUGE_FROM ? HUGE_BYTES : PAGE_BYTES;
    return (bytes + unit - 1) / unit * unit;
}

/* Returns the strategy's set-up. Fills layout [3 * param_count], which the set-up refers to. A
 * weight tensor is a matrix with one row per output. */
static struct ddp_sync_setup setup_of(const struct ddp_train_options *o, size_t *layout)
{
    size_t *offsets = layout, *counts = offsets + o->model->param_count;
    size_t *cols = counts + o->model->param_count;
    for (int i = 0; i < o->model->param_count; i++) {
        offsets[i] = o->model->params[i].offset;
        counts[i] = o->model->params[i].count;
        cols[i] = (size_t)o->model->params[i].fan_in;
    }
    return (struct ddp_sync_setup){.total = o->model->parameter_count,
                                   .seed = o->seed,
                                   .offsets = offsets,
                                   .counts = counts,
                                   .param_count = o->model->param_count,
                                   .cols = cols,
                                   .bucket_bytes = o->bucket_bytes,
                                   .overlap = o->overlap,
                                   .feedback = o->feedback,
                                   .aggregate = o->aggregate,
                                   .algorithm = o->algorithm,
                                   .compress = o->sync.compress,
                                   .number = o->sync.number,
                                   .device = o->device};
}

int ddp_trainer_buckets(const struct ddp_trainer *t, struct ddp_bucket *buckets)
{
    const struct ddp_sync_setup setup = setup_of(t->o, t->layout);
    return ddp_sync_buckets(&setup, buckets);
}

/* Creates the strategy. Collective. */
static int open_sync(struct ddp_trainer *t, struct ddp_err *err)
{
    struct ddp_sync_setup setup = setup_of(t->o, t->layout);
    setup.comm = t->comm;
    setup.params = t->params;
    setup.grads = t->grads;
    setup.device = t->device ? t->device->device : NULL;
    setup.stream = t->device ? t->device->stream : NULL;
    int rc = t->o->sync.cls->create(&setup, &t->sync, err);
    /* Agree only on errors that occur on all ranks (DDP_EUSAGE, DDP_EUNAVAIL). After any other
     * error, other ranks may still wait inside create() and would not take part. */
    if (rc != 0 && rc != DDP_EUSAGE && rc != DDP_EUNAVAIL)
        return rc;
    return ddp_comm_agree(t->comm, rc, err);
}

/* More bytes than any host has. The sum over all ranks of a host does not overflow. */
#define TOO_MANY_BYTES (UINT64_C(1) << 50)

/* Sets *registered and *private_bytes to the bytes that the strategy will allocate, or to
 * TOO_MANY_BYTES if there is no memory even for this calculation. */
static void sync_bytes(const struct ddp_train_options *o, int ranks, uint64_t *registered,
                       uint64_t *private_bytes)
{
    size_t tensors = (size_t)o->model->param_count;
    size_t *layout = ddp_calloc(3 * tensors, sizeof *layout);
    *registered = *private_bytes = layout ? 0 : TOO_MANY_BYTES;
    if (layout && o->sync.cls->memory) {
        struct ddp_sync_setup setup = setup_of(o, layout);
        o->sync.cls->memory(&setup, ranks, registered, private_bytes);
    }
    free(layout);
}

/* Returns the number of parameters that the optimiser of a rank updates. Stores their ranges in
 * parts [*count], as ddp_sync_class.shard describes. parts may be NULL. If the strategy has no
 * shards, sets *count to 0 and stores nothing. layout: as in setup_of. */
static size_t shard_of(const struct ddp_train_options *o, size_t *layout, int ranks, int rank,
                       struct ddp_range *parts, int *count)
{
    const struct ddp_sync_setup setup = setup_of(o, layout);
    *count = 0;
    return o->sync.cls->shard ? o->sync.cls->shard(&setup, ranks, rank, parts, count) : setup.total;
}

/* Returns the largest optimiser state of a rank in bytes, or TOO_MANY_BYTES if there is no memory
 * even for this calculation. */
static uint64_t state_bytes(const struct ddp_train_options *o, int ranks)
{
    size_t *layout = ddp_calloc(3 * (size_t)o->model->param_count, sizeof *layout);
    size_t most = 0;
    int count;
    for (int r = 0; layout && r < ranks; r++)
        most = DDP_MAX(most, shard_of(o, layout, ranks, r, NULL, &count));
    const bool known = layout != NULL;
    free(layout);
    return known ? ddp_optimizer_state_bytes(o->optimizer, most) : TOO_MANY_BYTES;
}

uint64_t ddp_train_heap_bytes(const struct ddp_train_options *options, int ranks)
{
    uint64_t bytes = options->model->parameter_count * sizeof(float), registered, own;
    sync_bytes(options, ranks, &registered, &own);
    return 2 * block_bytes(bytes) + (bytes >= HUGE_FROM ? HUGE_BYTES : 0) + registered;
}

uint64_t ddp_train_private_bytes(const struct ddp_train_options *options, int ranks)
{
    const struct ddp_images *train = &options->data->train;
    size_t batch = (size_t)ddp_train_batch(options, ranks);
    size_t image = ddp_trainer_pixels(train);
    uint64_t registered, own;
    sync_bytes(options, ranks, &registered, &own);
    return state_bytes(options, ranks) + options->model->scratch_bytes(options->model, (int)batch) +
           batch * (image * sizeof(float) + 1) + train->count * sizeof(uint32_t) + own;
}

uint64_t ddp_trainer_hash(const struct ddp_trainer *t)
{
    return ddp_fnv1a(DDP_FNV_INIT, ddp_trainer_read(t, t->params, t->total),
                     t->total * sizeof *t->params);
}

bool ddp_trainer_compares_steps(const struct ddp_trainer *t)
{
    return t->o->check_replicas && (t->o->sync.cls->replicas_equal || t->o->sync.cls->equal_part);
}

/* Hashes floats word by word, which is faster than ddp_fnv1a. Two arrays that differ in one word
 * have different hashes. */
static uint64_t hash_words(const float *x, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, x + i, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return hash;
}

uint64_t ddp_trainer_step_hash(const struct ddp_trainer *t)
{
    size_t first = 0, n = t->total;
    if (!t->o->sync.cls->replicas_equal)
        t->o->sync.cls->equal_part(t->sync, &first, &n);
    return hash_words(ddp_trainer_read(t, t->params + first, n), n);
}

int64_t ddp_train_global_batch(const struct ddp_train_options *options, int ranks)
{
    return options->global_batch ? options->global_batch : (int64_t)options->batch * ranks;
}

/* The share of a rank in global_batch is rounded up. For DDP_PARTITION_SHARD it is rounded down, as
 * in the course framework needle. */
int ddp_train_batch(const struct ddp_train_options *options, int ranks)
{
    const struct ddp_partition_spec *p = &options->partition;
    const int64_t global = ddp_train_global_batch(options, ranks);
    size_t least;
    if (p->kind == DDP_PARTITION_WEIGHTS && p->count == ranks)
        return (int)ddp_partition_largest((size_t)global, p->weight, ranks, &least);
    if (!options->global_batch)
        return options->batch;
    return (int)(global / ranks) + (p->kind != DDP_PARTITION_SHARD && global % ranks != 0);
}

/* Checks that there is a weight for each rank, and that each rank gets an image in a full step. */
static int check_weights(const struct ddp_train_options *o, int ranks, struct ddp_err *err)
{
    const struct ddp_partition_spec *p = &o->partition;
    const int64_t global = ddp_train_global_batch(o, ranks);
    size_t least;
    if (p->kind != DDP_PARTITION_WEIGHTS)
        return 0;
    if (p->count != ranks) {
        ddp_fail(err, DDP_EUSAGE, "--partition weights has %d weight%s, but there are %d ranks",
                 p->count, p->count == 1 ? "" : "s", ranks);
        return ddp_hint(err, "give one weight per rank, or set --ranks %d", p->count);
    }
    (void)ddp_partition_largest((size_t)global, p->weight, ranks, &least);
    if (least < 1)
        return ddp_fail(
            err, DDP_EUSAGE,
            "--partition: a global batch of %lld images is too small: the rank with the "
            "smallest weight may get no image",
            (long long)global);
    return 0;
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
    DDP_TRY(check_weights(o, ranks, err));
    if (ddp_train_batch(o, ranks) < 1)
        return ddp_fail(err, DDP_EUSAGE, "a global batch of %d images is too small for %d ranks",
                        o->global_batch, ranks);
    return 0;
}

/* Opens the optimiser, with state for this rank's shard. */
static int open_optimizer(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    const int ranks = t->comm->size, rank = t->comm->rank;
    t->optim = (struct ddp_optim){.device = t->device ? t->device->device : NULL,
                                  .stream = t->device ? t->device->stream : NULL,
                                  .kind = o->optimizer,
                                  .lr = o->lr,
                                  .momentum = o->momentum,
                                  .weight_decay = o->weight_decay};
    const size_t n = shard_of(o, t->layout, ranks, rank, NULL, &t->optim.part_count);
    if (o->sync.cls->shard) {
        DDP_TRY(DDP_NEW(&t->shard, (size_t)t->optim.part_count, err));
        shard_of(o, t->layout, ranks, rank, t->shard, &t->optim.part_count);
        t->optim.parts = t->shard;
    }
    return ddp_optim_init(&t->optim, n, err);
}

/* The part of the set-up that needs no communication. */
static int open_local(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    size_t batch = (size_t)t->batch, tensors = (size_t)o->model->param_count;
    if (o->device == NULL || ddp_device_is_cpu(o->device)) {
        ddp_flight_compute(t->comm->flight, true);
        const int rc = ddp_blas_load(o->blas, err);
        ddp_flight_compute(t->comm->flight, false);
        DDP_TRY(rc);
        ddp_blas_count(&t->comm->flight->beats);
    }
    DDP_TRY(DDP_NEW(&t->layout, 3 * tensors, err));
    DDP_TRY(open_optimizer(t, err));
    t->x = ddp_trainer_alloc(t, batch * ddp_trainer_pixels(&o->data->train) * sizeof *t->x);
    t->labels = ddp_trainer_alloc(t, batch);
    t->order = ddp_calloc(o->data->train.count, sizeof *t->order);
    t->gathered = ddp_calloc((size_t)t->comm->size, sizeof(struct ddp_epoch_totals));
    if (!t->x || !t->labels || !t->order || !t->gathered)
        return ddp_fail(err, DDP_ENOMEM, "no memory for batches of %d images", t->batch);
    DDP_TRY(ddp_trainer_straggler_open(t, err));
    const struct ddp_model_target model_place = {.device = o->device,
                                                 .stream = t->device ? t->device->stream : NULL,
                                                 .layers = o->layers,
                                                 .tf32 = o->tf32,
                                                 .conv = (int)o->conv};
    return o->model->create(o->model, &model_place, t->batch, t->params, t->grads, &t->model, err);
}

/* Initialises this rank's parameters. For DDP_INIT_BROADCAST, all ranks except rank 0 set their
 * parameters to zero, because first_parameters() then broadcasts the parameters of rank 0. */
static int own_parameters(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    const uint64_t own_seed = ddp_mix64(o->seed ^ ddp_mix64((uint64_t)t->comm->rank));
    float *params;
    DDP_TRY(DDP_NEW(&params, t->total, err));
    if (o->init_sync != DDP_INIT_BROADCAST || t->comm->rank == 0)
        ddp_model_init_params(o->model, o->init,
                              o->init_sync == DDP_INIT_AVERAGE ? own_seed : o->seed, params);
    ddp_trainer_write(t, t->params, params, t->total);
    free(params);
    return 0;
}

/* Sets all ranks' parameters to the same initial values. */
static int first_parameters(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    bool average = o->init_sync == DDP_INIT_AVERAGE;
    DDP_TRY(ddp_comm_agree(t->comm, own_parameters(t, err), err));
    if (o->init_sync == DDP_INIT_SEED || t->comm->size == 1)
        return 0;
    struct ddp_coll_plan plan;
    struct ddp_coll_args args = {.coll = average ? DDP_ALLREDUCE : DDP_BROADCAST,
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
 * whether steps are reported. Losses are gathered after each step if steps are reported or
 * compared. */
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
        pages = ddp_trainer_alloc(t, t->total * sizeof(float));
    if (pages == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu parameters", t->total);
    *out = pages;
    return 0;
}

static void free_array(struct ddp_trainer *t, float *pages)
{
    if (pages && t->comm->size > 1)
        ddp_comm_free(t->comm, pages);
    else
        ddp_trainer_free(t, pages, t->total * sizeof(float));
}

/* Sets up the run. Collective. If it fails on one rank, it fails on all ranks. After a failure the
 * caller must still call close_trainer(). */
static int open_trainer(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    ddp_flight_phase(t->comm->flight, "training set-up");
    ddp_trainer_reset_peak();
    DDP_TRY(ddp_train_check(o, t->comm->size, err)); /* the result is the same on all ranks */
    t->batch = ddp_train_batch(o, t->comm->size);
    t->total = o->model->parameter_count;
    t->partition = (struct ddp_partition_plan){.kind = o->partition.kind,
                                               .images = o->data->train.count,
                                               .weight = o->partition.weight,
                                               .ranks = t->comm->size,
                                               .batch = t->batch,
                                               .global_batch =
                                                   (size_t)ddp_train_global_batch(o, t->comm->size),
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
    DDP_TRY(open_sync(t, err));
    DDP_TRY(ddp_trainer_dump_open(t, err));
    DDP_TRY(agree_on_watching(t, err));
    return first_parameters(t, err);
}

/* Releases everything that open_trainer() has set up, even if open_trainer() failed. */
static void close_trainer(struct ddp_trainer *t)
{
    ddp_blas_count(NULL);
    if (t->sync)
        t->o->sync.cls->destroy(t->sync);
    ddp_trainer_straggler_close(t);
    ddp_trainer_dump_close(t);
    if (t->model)
        t->o->model->destroy(t->model);
    free(t->layout);
    free(t->gathered);
    free(t->order);
    const size_t batch = (size_t)t->batch;
    ddp_trainer_free(t, t->labels, batch);
    ddp_trainer_free(t, t->x, batch * ddp_trainer_pixels(&t->o->data->train) * sizeof *t->x);
    ddp_optim_release(&t->optim);
    free(t->shard);
    free_array(t, t->grads);
    free_array(t, t->params);
    ddp_trainer_device_close(t);
}

static const char *run_device(const struct ddp_train_options *o)
{
    return o->device != NULL ? o->device->name : "cpu";
}

static void describe(const struct ddp_trainer *t, struct ddp_train_run *run)
{
    const struct ddp_train_options *o = t->o;
    ddp_train_run_init(run);
    snprintf(run->model, sizeof run->model, "%s", o->model->name);
    snprintf(run->dataset, sizeof run->dataset, "%s", o->data->name);
    snprintf(run->data_path, sizeof run->data_path, "%s", o->data->path);
    run->data_hash = o->data->hash;
    snprintf(run->optimizer, sizeof run->optimizer, "%s", ddp_optimizer_names[o->optimizer]);
    snprintf(run->sync, sizeof run->sync, "%s", o->sync.text);
    snprintf(run->init, sizeof run->init, "%s", ddp_init_names[o->init]);
    snprintf(run->init_sync, sizeof run->init_sync, "%s", ddp_init_sync_names[o->init_sync]);
    ddp_partition_text(&o->partition, run->partition, sizeof run->partition);
    const struct ddp_layers *layers =
        o->layers != NULL ? o->layers : ddp_layers_find(run_device(o));
    snprintf(run->blas, sizeof run->blas, "%s", layers->library());
    snprintf(run->device, sizeof run->device, "%s", run_device(o));
    run->graph = o->device != NULL && o->graph;
    run->tf32 = o->device != NULL && o->tf32;
    run->parameters = (int64_t)o->model->parameter_count;
    run->train_images = (int64_t)o->data->train.count;
    run->eval_images = (int64_t)o->data->eval.count;
    run->batch_per_rank = t->batch;
    run->bucket_bytes = o->sync.cls->buckets ? (int64_t)o->bucket_bytes : -1;
    snprintf(run->algorithm, sizeof run->algorithm, "%s", o->algorithm ? o->algorithm : "auto");
    if (o->sync.cls->aggregates)
        snprintf(run->aggregate, sizeof run->aggregate, "%s",
                 o->aggregate ? o->aggregate->name : ddp_aggregates()[0]->name);
    if (o->sync.cls->feedback)
        snprintf(run->feedback, sizeof run->feedback, "%s", o->sync.cls->feedback(t->sync));
    run->ranks = t->comm->size;
    run->lr = o->lr;
    run->momentum = o->optimizer == DDP_OPTIM_SGD ? o->momentum : NAN;
    run->weight_decay = o->weight_decay;
    run->optimizer_bytes = (int64_t)ddp_optimizer_state_bytes(o->optimizer, t->optim.n);
    run->seed = o->seed;
    run->max_steps = o->max_steps > 0 ? o->max_steps : -1;
    run->target_accuracy = o->target_accuracy;
    run->overlap = o->overlap && o->sync.cls->buckets;
    run->baseline = o->baseline;
    run->synthetic = o->data->synthetic;
}

/* Adds an epoch to the sums over epochs. Stores the epoch in which the target accuracy is first
 * reached. The totals in the record are set only at the end of the run, so an interrupted run has
 * unknown totals. */
static void account(struct ddp_trainer *t, const struct ddp_epoch *e)
{
    struct ddp_train_run *run = &t->run;
    t->seconds += e->seconds;
    t->wire_bytes += e->wire_bytes_per_rank;
    if (run->target_epoch < 0 && e->eval_accuracy >= run->target_accuracy) { /* false for NaN */
        run->target_epoch = e->epoch;
        run->target_seconds = t->seconds;
        run->target_wire_bytes = t->wire_bytes;
    }
}

static int run_epochs(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_events *ev = t->events;
    for (int epoch = 1; epoch <= t->o->epochs; epoch++) {
        if (t->o->max_steps > 0 && t->step >= t->o->max_steps)
            break;
        struct ddp_epoch e;
        DDP_TRY(ddp_trainer_epoch(t, epoch, err));
        DDP_TRY(ddp_trainer_evaluate(t, epoch, &e, err));
        account(t, &e);
        int rc = ev->on_epoch ? ev->on_epoch(ev->arg, &t->run, &e, err) : 0;
        DDP_TRY(ddp_comm_agree(t->comm, rc, err));
    }
    t->run.total_seconds = t->seconds;
    t->run.total_wire_bytes = t->wire_bytes;
    return 0;
}

int ddp_train(struct ddp_comm *comm, const struct ddp_train_options *options,
              const struct ddp_train_events *events, struct ddp_err *err)
{
    static const struct ddp_train_events no_events = {.on_start = NULL};
    bool is_root = comm->rank == 0 && events;
    struct ddp_trainer t = {.comm = comm, .o = options, .events = is_root ? events : &no_events};
    const struct ddp_train_events *ev = t.events;
    int rc;
    DDP_TRY_GOTO(open_trainer(&t, err), err_trainer);
    describe(&t, &t.run);
    rc = ev->on_start ? ev->on_start(ev->arg, &t.run, err) : 0;
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_trainer);
    DDP_TRY_GOTO(run_epochs(&t, err), err_trainer);
    rc = ev->on_end ? ev->on_end(ev->arg, &t.run, err) : 0;
    rc = ddp_comm_agree(comm, rc, err);

err_trainer:
    close_trainer(&t);
    return rc;
}
