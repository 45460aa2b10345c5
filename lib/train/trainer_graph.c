/* Runs the model's step as captured graphs. Normally there is one graph. If gradients are exchanged
 * during the backward pass, there is one graph per bucket. The exchange of a bucket runs on another
 * stream, which can wait for the end of a graph but not for a point inside it. After the launch of
 * each graph, the strategy is notified of that bucket's gradients. */
#include <stdlib.h>

#include "base/mem.h"
#include "train/trainer_impl.h"

static int plan(struct ddp_trainer *t, struct ddp_err *err)
{
    struct ddp_trainer_device *x = t->device;
    const size_t most = (size_t)t->o->model->param_count;
    struct ddp_grad_bucket *buckets = ddp_calloc(most, sizeof *buckets);
    x->graphs = ddp_calloc(most, sizeof *x->graphs);
    if (buckets == NULL || x->graphs == NULL) {
        free(buckets);
        return ddp_fail(err, DDP_ENOMEM, "no memory for the graphs of a step");
    }
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
 * of the current graph, ends the graph and begins the next one. The last graph also contains the
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

int ddp_trainer_graph_capture(struct ddp_trainer *t, size_t n, float scale, struct ddp_err *err)
{
    struct ddp_trainer_device *x = t->device;
    DDP_TRY(plan(t, err));
    DDP_TRY(x->device->streams->capture_begin(x->stream, err));
    ddp_trainer_device_model(t, n, scale, end_graph);
    DDP_TRY(t->ready_rc);
    DDP_TRY(x->device->streams->capture_end(x->stream, &first_uncaptured(x)->graph, err));
    x->captured = true;
    return 0;
}

void ddp_trainer_graph_launch(struct ddp_trainer *t, bool notify)
{
    const struct ddp_trainer_device *x = t->device;
    int param = t->o->model->param_count - 1;
    for (int i = 0; i < x->graph_count; i++) {
        x->device->streams->graph_launch(x->graphs[i].graph, x->stream);
        for (; notify && param >= x->graphs[i].param; param--)
            ddp_trainer_ready(t, param);
    }
}

void ddp_trainer_graph_release(struct ddp_trainer *t)
{
    struct ddp_trainer_device *x = t->device;
    for (int i = 0; i < x->graph_count; i++)
        if (x->graphs[i].graph != NULL)
            x->device->streams->graph_destroy(x->graphs[i].graph);
    free(x->graphs);
}
