/* Runs a net forward and backward. net.c builds it. */
#include "model/net_impl.h"

/* Returns the layout of an array of n images. */
static struct ddp_view view_of(const struct ddp_net_shape *s, bool image_major, int n)
{
    size_t plane = (size_t)s->h * (size_t)s->w;
    return image_major ? (struct ddp_view){plane, plane * (size_t)s->c}
                       : (struct ddp_view){plane * (size_t)n, plane};
}

static struct ddp_view view_in(const struct ddp_net_node *node, bool first, int n)
{
    return view_of(&node->in, first || node[-1].image_major, n);
}

static struct ddp_view view_out(const struct ddp_net_node *node, int n)
{
    return view_of(&node->shape, node->image_major, n);
}

/* Returns the number of values per channel in an array of n images. */
static size_t row_length(const struct ddp_net_node *node, int n)
{
    return (size_t)n * (size_t)(node->shape.h * node->shape.w);
}

/* Converts [c][n][h][w] to [n][c][h][w], or back. A device that stores all images as [n][c][h][w]
 * only copies. */
static void flatten(struct ddp_model *m, const struct ddp_net_node *node, int n, bool back,
                    const float *from, float *to)
{
    const struct ddp_net_shape *s = &node->in;
    if (m->layers->image_major)
        m->layers->copy(m->context, (size_t)n * ddp_net_volume(s), from, to);
    else
        m->layers->reorder(m->context, s->c, n, s->h * s->w, back, from, to);
}

static const float *weight(const struct ddp_model *m, const struct ddp_net_node *node)
{
    return node->param >= 0 ? m->params + m->cls->params[node->param].offset : NULL;
}

static const float *bias(const struct ddp_model *m, const struct ddp_net_node *node)
{
    return node->param >= 0 ? m->params + m->cls->params[node->param + 1].offset : NULL;
}

static void run_norm(struct ddp_model *m, struct ddp_net_node *node, const float *x, int n,
                     bool training)
{
    float *running = m->state + node->state;
    if (training)
        m->layers->batch_norm_forward(&node->layer.norm, row_length(node, n), x, weight(m, node),
                                      bias(m, node), running, node->saved, node->out);
    else
        m->layers->batch_norm_evaluate(&node->layer.norm, row_length(node, n), x, weight(m, node),
                                       bias(m, node), running, node->saved, node->out);
}

static void forward(struct ddp_model *m, const float *x, int n, bool training)
{
    for (int i = 0; i < m->count; i++) {
        struct ddp_net_node *node = &m->nodes[i];
        const float *w = weight(m, node), *b = bias(m, node);
        size_t floats = (size_t)n * ddp_net_volume(&node->shape);
        switch (node->spec->kind) {
        case DDP_LAYER_CONV_POOL:
            m->layers->conv_pool_forward(&node->layer.conv_pool, n, x, view_in(node, i == 0, n), w,
                                         b, node->out, view_out(node, n), node->which, m->scratch);
            break;
        case DDP_LAYER_CONV:
            m->layers->conv_forward(&node->layer.conv, n, x, view_in(node, i == 0, n), w, b,
                                    node->out, m->scratch);
            break;
        case DDP_LAYER_BATCH_NORM:
            run_norm(m, node, x, n, training);
            break;
        case DDP_LAYER_ADD:
            m->layers->copy(m->context, floats, x, node->out);
            m->layers->add(m->context, floats, m->nodes[node->spec->from].out, node->out);
            break;
        case DDP_LAYER_FLATTEN:
            flatten(m, node, n, false, x, node->out);
            break;
        default:
            m->layers->linear_forward(&node->layer.linear, n, x, w, b, node->out);
        }
        x = node->out;
    }
}

/* Runs one node backward: computes the gradients of its parameters and, in dx, of its input. dx is
 * NULL for the first node, whose input needs no gradient. */
static void backward(struct ddp_model *m, int i, const float *x, int n, float *dx)
{
    struct ddp_net_node *node = &m->nodes[i];
    const float *w = weight(m, node);
    float *dw = NULL, *db = NULL;
    if (node->param >= 0) {
        dw = m->grads + m->cls->params[node->param].offset;
        db = m->grads + m->cls->params[node->param + 1].offset;
    }
    struct ddp_view xv = view_in(node, i == 0, n);
    switch (node->spec->kind) {
    case DDP_LAYER_CONV_POOL:
        m->layers->conv_pool_backward(&node->layer.conv_pool, n, x, xv, w, node->dout,
                                      view_out(node, n), node->which, dw, db, dx, xv, m->scratch);
        break;
    case DDP_LAYER_CONV:
        m->layers->conv_backward(&node->layer.conv, n, x, xv, w, node->dout, dw, db, dx, xv,
                                 m->scratch);
        break;
    case DDP_LAYER_BATCH_NORM:
        m->layers->batch_norm_backward(&node->layer.norm, row_length(node, n), x, node->out,
                                       node->dout, node->saved, dw, db, dx);
        break;
    case DDP_LAYER_ADD:
        /* ddp_net_step() later adds dout to the gradient of the other input, the output of layer
         * `from`. */
        m->layers->copy(m->context, (size_t)n * ddp_net_volume(&node->shape), node->dout, dx);
        break;
    case DDP_LAYER_FLATTEN:
        flatten(m, node, n, true, node->dout, dx);
        break;
    default:
        m->layers->linear_backward(&node->layer.linear, n, x, w, node->out, node->dout, dw, db, dx);
    }
}

void ddp_net_step(struct ddp_model *m, const float *x, const uint8_t *labels, int n, float scale,
                  double *loss_sum, int *correct, void (*ready)(void *arg, int param), void *arg)
{
    struct ddp_net_node *last = &m->nodes[m->count - 1];
    forward(m, x, n, true);
    m->layers->softmax_loss(m->context, n, m->cls->classes, last->out, labels, scale, loss_sum,
                            correct, last->dout);
    for (int i = m->count - 1; i >= 0; i--) {
        struct ddp_net_node *node = &m->nodes[i], *before = i > 0 ? node - 1 : NULL;
        backward(m, i, before ? before->out : x, n, before ? before->dout : NULL);
        if (before && before->added_to >= 0)
            m->layers->add(m->context, (size_t)n * ddp_net_volume(&before->shape),
                           m->nodes[before->added_to].dout, before->dout);
        if (ready && node->param >= 0) {
            ready(arg, node->param + 1);
            ready(arg, node->param);
        }
    }
}

void ddp_net_evaluate(struct ddp_model *m, const float *x, const uint8_t *labels, int n,
                      double *loss_sum, int *correct)
{
    struct ddp_net_node *last = &m->nodes[m->count - 1];
    forward(m, x, n, false);
    m->layers->softmax_loss(m->context, n, m->cls->classes, last->out, labels, 0.0f, loss_sum,
                            correct, NULL);
}

void ddp_net_gather(struct ddp_model *m, const uint8_t *pixels, const uint8_t *labels, size_t each,
                    const uint32_t *index, size_t first, int n, float *x, uint8_t *label)
{
    m->layers->gather(m->context, pixels, labels, each, index, first, n, x, label);
}
