/* The main loop of a training run: set-up, epochs, and the events that rank 0 reports. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>

#include "train/trainer_impl.h"

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
    snprintf(run->sync, sizeof run->sync, "%s", o->sync_text ? o->sync_text : o->sync->name);
    snprintf(run->init, sizeof run->init, "%s", ddp_init_names[o->init]);
    snprintf(run->init_sync, sizeof run->init_sync, "%s", ddp_init_sync_names[o->init_sync]);
    snprintf(run->partition, sizeof run->partition, "%s", ddp_partition_names[o->partition]);
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
    run->bucket_bytes = o->sync->buckets ? (int64_t)o->bucket_bytes : -1;
    snprintf(run->algorithm, sizeof run->algorithm, "%s", o->algorithm ? o->algorithm : "auto");
    if (o->sync->aggregates)
        snprintf(run->aggregate, sizeof run->aggregate, "%s",
                 o->aggregate ? o->aggregate->name : ddp_aggregates()[0]->name);
    if (o->sync->feedback)
        snprintf(run->feedback, sizeof run->feedback, "%s", o->sync->feedback(t->sync));
    run->ranks = t->comm->size;
    run->lr = o->lr;
    run->momentum = o->optimizer == DDP_OPTIM_SGD ? o->momentum : NAN;
    run->weight_decay = o->weight_decay;
    run->seed = o->seed;
    run->max_steps = o->max_steps > 0 ? o->max_steps : -1;
    run->target_accuracy = o->target_accuracy;
    run->overlap = o->overlap && o->sync->buckets;
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
    DDP_TRY_GOTO(ddp_trainer_open(&t, err), err_trainer);
    describe(&t, &t.run);
    rc = ev->on_start ? ev->on_start(ev->arg, &t.run, err) : 0;
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), err_trainer);
    DDP_TRY_GOTO(run_epochs(&t, err), err_trainer);
    rc = ev->on_end ? ev->on_end(ev->arg, &t.run, err) : 0;
    rc = ddp_comm_agree(comm, rc, err);

err_trainer:
    ddp_trainer_close(&t);
    return rc;
}
