/* Runs the model's step as captured graphs: one graph, or, if gradients are exchanged during the
 * backward pass, one graph per bucket. Another stream can wait for the end of a graph but not for
 * a point inside one. The graphs are launched in sequence, and the strategy is notified of a
 * bucket's gradients between two launches. */
#include <stdlib.h>

#include "base/mem.h"
#include "train/trainer_impl.h"

static int plan(struct ddp_trainer *t, struct ddp_err *err)
{
    struct ddp_trainer_device *x = t->device;
    const size_t most = (size_t)t->o->model->param_count;
    struct ddp_grad_bucket *buckets = ddp_calloc(most, sizeof *buckets);
    x->pieces = ddp_calloc(most, sizeof *x->pieces);
    if (buckets == NULL || x->pieces == NULL) {
        free(buckets);
        return ddp_fail(err, DDP_ENOMEM, "no memory for the graphs of a step");
    }
    x->piece_count = x->overlap ? ddp_trainer_buckets(t, buckets) : 1;
    for (int i = 0; i < x->piece_count; i++)
        x->pieces[i].param = x->overlap ? buckets[i].first : 0;
    free(buckets);
    return 0;
}

static struct ddp_trainer_piece *open_piece(const struct ddp_trainer_device *x)
{
    struct ddp_trainer_piece *piece = x->pieces;
    while (piece->graph != NULL)
        piece++;
    return piece;
}

/* Called during capture when the gradient of `param` is complete: ends the current graph if this
 * is the last gradient in it. The last graph takes the rest of the step. */
static void cut(void *arg, int param)
{
    struct ddp_trainer *t = arg;
    struct ddp_trainer_device *x = t->device;
    if (t->ready_rc != 0 || param == 0)
        return;
    struct ddp_trainer_piece *piece = open_piece(x);
    if (param != piece->param)
        return;
    t->ready_rc = x->device->streams->capture_end(x->stream, &piece->graph, t->err);
    if (t->ready_rc == 0)
        t->ready_rc = x->device->streams->capture_begin(x->stream, t->err);
}

int ddp_trainer_graph_capture(struct ddp_trainer *t, size_t n, float scale, struct ddp_err *err)
{
    struct ddp_trainer_device *x = t->device;
    DDP_TRY(plan(t, err));
    DDP_TRY(x->device->streams->capture_begin(x->stream, err));
    ddp_trainer_device_model(t, n, scale, cut);
    DDP_TRY(t->ready_rc);
    DDP_TRY(x->device->streams->capture_end(x->stream, &open_piece(x)->graph, err));
    x->captured = true;
    return 0;
}

void ddp_trainer_graph_launch(struct ddp_trainer *t, bool tell)
{
    const struct ddp_trainer_device *x = t->device;
    int param = t->o->model->param_count - 1;
    for (int i = 0; i < x->piece_count; i++) {
        x->device->streams->graph_launch(x->pieces[i].graph, x->stream);
        for (; tell && param >= x->pieces[i].param; param--)
            ddp_trainer_ready(t, param);
    }
}

void ddp_trainer_graph_release(struct ddp_trainer *t)
{
    struct ddp_trainer_device *x = t->device;
    for (int i = 0; i < x->piece_count; i++)
        if (x->pieces[i].graph != NULL)
            x->device->streams->graph_destroy(x->pieces[i].graph);
    free(x->pieces);
}
