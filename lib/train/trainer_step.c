/* The training steps of one epoch, and the recording of gradients. Each rank records its gradients,
 * before they are exchanged, in an NPY file of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "train/trainer_impl.h"

#define PATH_BYTES 4096

static int open_file(struct ddp_trainer *t, struct ddp_err *err)
{
    const char *dir = t->o->dump_dir;
    t->dump_path = ddp_calloc(PATH_BYTES, 1);
    t->dump_row = ddp_calloc(t->total, sizeof *t->dump_row);
    if (!t->dump_path || !t->dump_row)
        return ddp_fail(err, DDP_ENOMEM, "no memory to record gradients");
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return ddp_fail_errno(err, DDP_ECREATE, errno, "cannot create folder '%s'", dir);
    int n = snprintf(t->dump_path, PATH_BYTES, "%s/rank%d.npy", dir, t->comm->rank);
    if (n < 0 || n >= PATH_BYTES)
        return ddp_fail(err, DDP_ECREATE, "the path of folder '%.64s...' is too long", dir);
    return ddp_npy_create(t->dump_path, t->total, &t->dump, err);
}

int ddp_trainer_dump_open(struct ddp_trainer *t, struct ddp_err *err)
{
    if (!t->o->dump_dir)
        return 0;
    return ddp_comm_agree(t->comm, open_file(t, err), err);
}

/* Returns whether the gradients of this step are recorded. */
static bool dump_due(const struct ddp_trainer *t)
{
    return t->o->dump_dir && t->step % t->o->dump_every == 0;
}

/* Appends the gradients, multiplied by `factor`, to the file. The scale of recorded gradients is
 * described in base/npy.h. */
static int dump(struct ddp_trainer *t, double factor, struct ddp_err *err)
{
    DDP_TRY(ddp_trainer_device_wait(t, err));
    const float *grads = ddp_trainer_read(t, t->grads, t->total);
    for (size_t i = 0; i < t->total; i++)
        t->dump_row[i] = (float)(grads[i] * factor);
    return ddp_npy_append(&t->dump, t->dump_row, err);
}

void ddp_trainer_dump_close(struct ddp_trainer *t)
{
    ddp_npy_close(&t->dump);
    free(t->dump_row);
    free(t->dump_path);
}

#define PROGRESS_EVERY_NS 200000000

void ddp_trainer_ready(void *arg, int param)
{
    struct ddp_trainer *t = arg;
    ddp_flight_beat(t->comm->flight);
    if (param == t->o->model->param_count / 2)
        ddp_arrival_wait(&t->o->arrival, t->comm, t->o->seed, (uint64_t)t->step);
    if (t->ready_rc == 0 && t->o->sync.cls->on_grad_ready)
        t->ready_rc = t->o->sync.cls->on_grad_ready(t->sync, param, t->err);
}

/* Records this rank's gradient before it is exchanged. */
static int record(struct ddp_trainer *t, double scale, size_t images, size_t global,
                  struct ddp_err *err)
{
    int64_t begin = ddp_now_ns();
    double wanted = images > 0 ? (double)t->comm->size / (double)global : 0.0;
    DDP_TRY(dump(t, scale > 0.0 ? wanted / scale : 0.0, err));
    t->sums.pause_ns += ddp_now_ns() - begin;
    return 0;
}

/* Runs the forward and backward pass on this rank's images, and notifies the strategy of the
 * gradients. If the gradients are recorded, or if a device does not overlap the exchange, the
 * notifications come after the backward pass. Otherwise they come during the backward pass. */
static int run_model(struct ddp_trainer *t, size_t first, size_t n, size_t global,
                     struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    const bool recorded = dump_due(t);
    const bool inside = !recorded && (t->device == NULL || t->device->overlap);
    const double scale = ddp_sync_scale(o->sync.cls, t->comm->size, n, global);
    if (t->device) {
        if (ddp_trainer_device_is_full(t))
            DDP_TRY(ddp_trainer_device_collect(t, &t->sums.loss, &t->sums.correct, err));
        DDP_TRY(ddp_trainer_device_step(t, first, n, (float)scale, inside, err));
    } else {
        int correct;
        const struct ddp_images *set = &o->data->train;
        ddp_flight_compute(t->comm->flight, true);
        o->model->gather(t->model, set->pixels, set->labels, ddp_trainer_pixels(set), t->order,
                         first, (int)n, t->x, t->labels);
        o->model->step(t->model, t->x, t->labels, (int)n, (float)scale, &t->last_loss, &correct,
                       inside ? ddp_trainer_ready : NULL, t);
        ddp_flight_compute(t->comm->flight, false);
        t->sums.loss += t->last_loss;
        t->sums.correct += correct;
    }
    if (recorded)
        DDP_TRY(record(t, scale, n, global, err));
    for (int p = o->model->param_count - 1; !inside && p >= 0; p--)
        ddp_trainer_ready(t, p);
    return t->ready_rc;
}

/* One training step: forward, backward, exchange, update. */
static int one_step(struct ddp_trainer *t, int64_t step, size_t *global, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    size_t first, n;
    ddp_partition_slice(&t->partition, step, t->comm->rank, &first, &n, global);
    t->ready_rc = 0;
    t->err = err;
    ddp_trainer_straggler_begin(t);
    if (o->sync.cls->begin_step)
        o->sync.cls->begin_step(t->sync, n, *global);
    DDP_TRY(run_model(t, first, n, *global, err));
    ddp_trainer_straggler_computed(t);
    if (o->sync.cls->finish_backward)
        DDP_TRY(o->sync.cls->finish_backward(t->sync, err));
    ddp_trainer_straggler_end(t);
    ddp_optim_step(&t->optim, t->params, t->grads);
    if (!t->device)
        DDP_TRY(DDP_FAULT_DATA(TRAIN_STEP, t->comm->rank_info.rank, t->params,
                               t->total * sizeof *t->params, err));
    if (o->sync.cls->end_step)
        DDP_TRY(o->sync.cls->end_step(t->sync, err));
    t->sums.images += (int64_t)n;
    t->sums.global_images += (int64_t)*global;
    t->sums.steps++;
    t->step++;
    return 0;
}

/* Called after a watched step. Gathers the loss of the step from all ranks. If the user asked
 * for it (check_replicas), compares the parameters that the strategy keeps equal on all ranks. */
static int watch(struct ddp_trainer *t, size_t global, struct ddp_err *err)
{
    DDP_TRY(ddp_trainer_device_collect(t, &t->sums.loss, &t->sums.correct, err));
    bool compare = ddp_trainer_compares_steps(t);
    struct ddp_step_totals mine = {.loss = t->last_loss,
                                   .hash = compare ? ddp_trainer_step_hash(t) : 0};
    struct ddp_step_totals *all = t->gathered;
    DDP_TRY(ddp_comm_allgather_bytes(t->comm, &mine, all, sizeof mine, err));
    if (compare)
        DDP_TRY(ddp_trainer_compare(t, &all->hash, sizeof *all, err));
    double sum = 0.0;
    for (int r = 0; r < t->comm->size; r++)
        sum += all[r].loss;
    if (t->events->on_step)
        t->events->on_step(t->events->arg, t->step, sum / (double)global);
    return 0;
}

static int report_progress(struct ddp_trainer *t, int epoch, int64_t steps, int64_t now_ns,
                           struct ddp_err *err)
{
    DDP_TRY(ddp_trainer_device_collect(t, &t->sums.loss, &t->sums.correct, err));
    const struct ddp_train_sums *s = &t->sums;
    double seconds = (double)(now_ns - s->start_ns - s->pause_ns) * 1e-9;
    t->last_progress_ns = now_ns;
    t->events->on_progress(t->events->arg, epoch, s->steps, steps,
                           s->images ? s->loss / (double)s->images : 0.0,
                           seconds > 0.0 ? (double)s->global_images / seconds : 0.0);
    return 0;
}

int ddp_trainer_epoch(struct ddp_trainer *t, int epoch, struct ddp_err *err)
{
    int64_t steps = ddp_partition_steps(&t->partition);
    ddp_partition_order(&t->partition, epoch, t->comm->rank, t->order, &t->order_count);
    ddp_trainer_device_order(t);
    t->sums = (struct ddp_train_sums){0};
    t->o->sync.cls->counters(t->sync, &t->sums.before);
    DDP_TRY(ddp_trainer_straggler_epoch(t, steps, err));
    /* Synchronise first, so that the other ranks do not count the delay of a late rank as exchange
     * time. */
    DDP_TRY(ddp_comm_barrier(t->comm, err));
    t->sums.start_ns = ddp_now_ns();
    for (int64_t step = 0; step < steps; step++) {
        if (t->o->max_steps > 0 && t->step >= t->o->max_steps)
            break;
        size_t global;
        ddp_flight_phase(t->comm->flight, "epoch %d step %lld", epoch, (long long)step + 1);
        DDP_TRY(one_step(t, step, &global, err));
        if (!t->watch_steps && !t->events->on_progress)
            continue;
        int64_t now = ddp_now_ns();
        if (t->watch_steps)
            DDP_TRY(watch(t, global, err));
        if (t->events->on_progress && now - t->last_progress_ns >= PROGRESS_EVERY_NS)
            DDP_TRY(report_progress(t, epoch, steps, now, err));
        t->sums.pause_ns += ddp_now_ns() - now;
    }
    DDP_TRY(ddp_trainer_device_collect(t, &t->sums.loss, &t->sums.correct, err));
    return t->o->sync.cls->end_epoch ? t->o->sync.cls->end_epoch(t->sync, err) : 0;
}
