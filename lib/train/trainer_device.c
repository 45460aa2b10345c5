/* The device part of the trainer. It allocates device memory and enqueues steps on the trainer's
 * stream. Steps do not wait for the device, except in ddp_trainer_device_wait() and
 * ddp_trainer_device_collect().
 *
 * If options->graph is set, the model's step runs as captured graphs. Normally there is one graph.
 * If gradients are exchanged during the backward pass, there is one graph per bucket. The exchange
 * of a bucket runs on another stream, which can wait for the end of a graph but not for a point
 * inside it. After the launch of each graph, the strategy is notified of the gradients that this
 * graph computes. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/backend.h"
#include "train/trainer_impl.h"

int ddp_train_check_device(const struct ddp_train_options *o, const struct ddp_backend *backend,
                           int ranks, struct ddp_err *err)
{
    const struct ddp_device *d = o->device;
    const bool moves_device = backend->caps & DDP_CAP_DEVICE;
    if (moves_device && (d == NULL || ddp_device_is_cpu(d))) {
        ddp_fail(err, DDP_EUNAVAIL, "backend '%s' exchanges GPU memory only", backend->name);
        return ddp_hint(err, "use --device cuda, or another backend with --device cpu");
    }
    if (d == NULL)
        return 0;
    if (ranks > 1 && !ddp_device_is_cpu(d) && !moves_device) {
        ddp_fail(err, DDP_EUNAVAIL, "backend '%s' cannot exchange memory of device '%s'",
                 backend->name, d->name);
        return ddp_hint(err, "use --backend nccl, or --ranks 1, which needs no exchange");
    }
    return 0;
}

void *ddp_trainer_alloc(const struct ddp_trainer *t, size_t bytes)
{
    return t->device ? t->device->device->alloc(bytes) : ddp_alloc_pages(bytes);
}

void ddp_trainer_free(const struct ddp_trainer *t, void *ptr, size_t bytes)
{
    if (ptr == NULL)
        return;
    if (t->device)
        t->device->device->free(ptr, bytes);
    else
        ddp_free_pages(ptr, bytes);
}

static int upload(const struct ddp_device *d, const struct ddp_images *set,
                  struct ddp_trainer_images *out, struct ddp_err *err)
{
    out->image_pixels = ddp_trainer_pixels(set);
    out->count = set->count;
    out->pixel_bytes = set->count * out->image_pixels;
    out->pixels = d->alloc(out->pixel_bytes);
    out->labels = d->alloc(set->count);
    if (out->pixels == NULL || out->labels == NULL)
        return ddp_fail(err, DDP_ENOMEM, "device '%s' has no memory for %zu images", d->name,
                        set->count);
    d->copy(out->pixels, set->pixels, out->pixel_bytes);
    d->copy(out->labels, set->labels, set->count);
    return 0;
}

static void discard(const struct ddp_device *d, struct ddp_trainer_images *set)
{
    if (set->pixels != NULL)
        d->free(set->pixels, set->pixel_bytes);
    if (set->labels != NULL)
        d->free(set->labels, set->count);
}

/* Enqueues the model's part of a step. Calls ready(t, param) for each gradient, as ddp_model_class
 * describes. */
static void run_model(struct ddp_trainer *t, size_t n, float scale,
                      void (*ready)(void *arg, int param))
{
    struct ddp_train_result *r = t->device->result;
    t->o->model->step(t->model, t->x, t->labels, (int)n, scale, &r->loss, &r->correct, ready, t);
}

static int plan(struct ddp_trainer *t, struct ddp_err *err)
{
    struct ddp_trainer_device *x = t->device;
    const size_t most = (size_t)t->o->model->param_count;
    struct ddp_bucket *buckets;
    DDP_TRY(DDP_NEW(&x->graphs, most, err));
    DDP_TRY(DDP_NEW(&buckets, most, err));
    x->graph_count = x->overlap ? ddp_trainer_buckets(t, buckets) : 1;
    for (int i = 0; i < x->graph_count; i++)
        x->graphs[i].param = x->overlap ? buckets[i].first : 0;
    free(buckets);
    return 0;
}

static struct ddp_step_graph *first_uncaptured(const struct ddp_trainer_device *x)
{
    struct ddp_step_graph *part = x->graphs;
    while (part->graph != NULL)
        part++;
    return part;
}

/* Called during the capture when the gradient of `param` is complete. If this is the last gradient
 * of the current graph, ends the graph and begins the next graph. The last graph also contains the
 * rest of the step. */
static void end_graph(void *arg, int param)
{
    struct ddp_trainer *t = arg;
    struct ddp_trainer_device *x = t->device;
    if (t->ready_rc != 0 || param == 0)
        return;
    struct ddp_step_graph *part = first_uncaptured(x);
    if (param != part->param)
        return;
    t->ready_rc = x->device->streams->capture_end(x->stream, &part->graph, t->err);
    if (t->ready_rc == 0)
        t->ready_rc = x->device->streams->capture_begin(x->stream, t->err);
}

/* Captures the model's part of a step. If the capture fails halfway, release_graphs() releases the
 * graphs that were made before the failure. */
static int capture(struct ddp_trainer *t, size_t n, float scale, struct ddp_err *err)
{
    struct ddp_trainer_device *x = t->device;
    DDP_TRY(plan(t, err));
    DDP_TRY(x->device->streams->capture_begin(x->stream, err));
    run_model(t, n, scale, end_graph);
    DDP_TRY(t->ready_rc);
    DDP_TRY(x->device->streams->capture_end(x->stream, &first_uncaptured(x)->graph, err));
    x->captured = true;
    return 0;
}

static void launch(struct ddp_trainer *t, bool notify)
{
    const struct ddp_trainer_device *x = t->device;
    int param = t->o->model->param_count - 1;
    for (int i = 0; i < x->graph_count; i++) {
        x->device->streams->graph_launch(x->graphs[i].graph, x->stream);
        for (; notify && param >= x->graphs[i].param; param--)
            ddp_trainer_ready(t, param);
    }
}

static void release_graphs(struct ddp_trainer *t)
{
    struct ddp_trainer_device *x = t->device;
    for (int i = 0; i < x->graph_count; i++)
        if (x->graphs[i].graph != NULL)
            x->device->streams->graph_destroy(x->graphs[i].graph);
    free(x->graphs);
}

int ddp_trainer_device_open(struct ddp_trainer *t, struct ddp_err *err)
{
    const struct ddp_train_options *o = t->o;
    const struct ddp_device *d = o->device;
    if (d == NULL)
        return 0;
    DDP_TRY(d->probe(err));
    /* If there are several ranks, the backend has already selected a device for each rank. */
    if (t->comm->size == 1 && !ddp_device_is_cpu(d))
        DDP_TRY(d->select(t->comm->rank_info.local_rank % DDP_MAX(d->count(), 1), err));
    DDP_TRY(DDP_NEW(&t->device, 1, err));
    struct ddp_trainer_device *x = t->device;
    x->device = d;
    x->overlap = o->overlap && o->sync.cls->buckets && t->comm->size > 1;
    DDP_TRY(d->streams->create(&x->stream, err));
    DDP_TRY(upload(d, &o->data->train, &x->train, err));
    DDP_TRY(upload(d, &o->data->eval, &x->eval, err));
    x->order = d->alloc(x->train.count * sizeof *x->order);
    x->result = d->alloc(sizeof *x->result);
    x->results = d->streams->host_alloc(DDP_TRAIN_RESULTS * sizeof *x->results);
    x->host = ddp_calloc(t->total, sizeof *x->host);
    if (x->order == NULL || x->result == NULL || x->results == NULL || x->host == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the results of device '%s'", d->name);
    return 0;
}

void ddp_trainer_device_close(struct ddp_trainer *t)
{
    struct ddp_trainer_device *x = t->device;
    if (x == NULL)
        return;
    const struct ddp_device *d = x->device;
    free(x->host);
    if (x->results != NULL)
        d->streams->host_free(x->results, DDP_TRAIN_RESULTS * sizeof *x->results);
    if (x->result != NULL)
        d->free(x->result, sizeof *x->result);
    if (x->order != NULL)
        d->free(x->order, x->train.count * sizeof *x->order);
    discard(d, &x->eval);
    discard(d, &x->train);
    release_graphs(t);
    d->streams->destroy(x->stream);
    free(x);
    t->device = NULL;
}

void ddp_trainer_device_order(struct ddp_trainer *t)
{
    if (t->device)
        t->device->device->copy(t->device->order, t->order, t->order_count * sizeof *t->order);
}

/* Enqueues the copy of the step's result to host memory. */
static void send_result(struct ddp_trainer_device *x)
{
    x->device->streams->copy(x->stream, &x->results[x->pending++], x->result, sizeof *x->result);
}

/* If options->graph is set, a step runs without a graph until two consecutive steps have the same
 * size and scale. The second of these steps is captured as a graph and launched. Later steps of
 * this size and scale launch the graph again. The first step must run without a graph, because the
 * libraries initialise themselves in it and an initialisation cannot be captured. */
int ddp_trainer_device_step(struct ddp_trainer *t, size_t first, size_t n, float scale, bool notify,
                            struct ddp_err *err)
{
    struct ddp_trainer_device *x = t->device;
    const bool same = x->graph_n == (int)n && x->graph_scale == scale;
    t->o->model->gather(t->model, x->train.pixels, x->train.labels, x->train.image_pixels, x->order,
                        first, (int)n, t->x, t->labels);
    if (t->o->graph && !x->captured && same && n > 0)
        DDP_TRY(capture(t, n, scale, err));
    if (x->captured && same) {
        launch(t, notify);
    } else {
        run_model(t, n, scale, notify ? ddp_trainer_ready : NULL);
        if (!x->captured) {
            x->graph_n = (int)n;
            x->graph_scale = scale;
        }
    }
    send_result(x);
    return 0;
}

void ddp_trainer_device_evaluate(struct ddp_trainer *t, size_t first, size_t n)
{
    struct ddp_trainer_device *x = t->device;
    t->o->model->gather(t->model, x->eval.pixels, x->eval.labels, x->eval.image_pixels, NULL, first,
                        (int)n, t->x, t->labels);
    t->o->model->evaluate(t->model, t->x, t->labels, (int)n, &x->result->loss, &x->result->correct);
    send_result(x);
}

bool ddp_trainer_device_is_full(const struct ddp_trainer *t)
{
    return t->device && t->device->pending == DDP_TRAIN_RESULTS;
}

int ddp_trainer_device_wait(struct ddp_trainer *t, struct ddp_err *err)
{
    if (t->device == NULL)
        return 0;
    if (t->sync != NULL && t->o->sync.cls->settle != NULL)
        DDP_TRY(t->o->sync.cls->settle(t->sync, err));
    return t->device->device->streams->wait(t->device->stream, err);
}

int ddp_trainer_device_collect(struct ddp_trainer *t, double *loss, int64_t *correct,
                               struct ddp_err *err)
{
    struct ddp_trainer_device *x = t->device;
    if (x == NULL)
        return 0;
    DDP_TRY(ddp_trainer_device_wait(t, err));
    for (int i = 0; i < x->pending; i++) {
        *loss += x->results[i].loss;
        *correct += x->results[i].correct;
        t->last_loss = x->results[i].loss;
    }
    x->pending = 0;
    return 0;
}

const float *ddp_trainer_read(const struct ddp_trainer *t, const float *from, size_t n)
{
    if (t->device == NULL)
        return from;
    t->device->device->copy(t->device->host, from, n * sizeof *from);
    return t->device->host;
}

void ddp_trainer_write(const struct ddp_trainer *t, float *to, const float *from, size_t n)
{
    if (t->device)
        t->device->device->copy(to, from, n * sizeof *to);
    else
        memcpy(to, from, n * sizeof *to);
}
