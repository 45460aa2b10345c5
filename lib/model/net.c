/* Builds a net from its layers: computes shapes and divides memory. Runs the net forward and
 * backward.
 *
 * A *node* is a layer within a net, with its shapes, its parameters, its output and the gradient of
 * its output. On the CPU the outputs are stored channel by channel, [c][n][h][w], so that products
 * and normalisation run over long rows. The inputs and outputs of LINEAR layers are stored image by
 * image. */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/layers.h"
#include "model/net.h"

struct ddp_net_shape {
    int c, h, w;
};

struct ddp_net_node {
    const struct ddp_layer *spec;
    struct ddp_net_shape in, shape; /* input and output */
    bool image_major;               /* the output is [n][c][h][w] rather than [c][n][h][w] */
    int param;                      /* index of the first of the two parameters, or -1 */
    int added_to;                   /* index of the ADD layer whose `from` is this node, or -1 */
    union {
        struct ddp_conv conv; /* CONV and CONV_POOL */
        struct ddp_batch_norm norm;
        struct ddp_linear linear;
    } layer;
    float *out, *dout; /* [batch] images; dout: gradient of out */
    uint8_t *which;    /* CONV_POOL: see conv_pool_forward() in layers.h */
    float *saved;      /* BATCH_NORM: see batch_norm_forward() in layers.h */
    size_t state;      /* BATCH_NORM: offset of its running statistics in the model's state */
};

struct ddp_model {
    const struct ddp_model_class *cls;
    const struct ddp_layers *layers;
    const struct ddp_layer_ops *ops;    /* those of `layers` */
    struct ddp_layers_context *context; /* state that the layers share */
    const struct ddp_device *device;    /* `block` lies in the memory of this device */
    const struct ddp_nn_kernels *kernels;
    int batch; /* largest number of images per call */
    int count; /* number of nodes */
    float *params, *grads;
    struct ddp_net_node nodes[DDP_NET_LAYERS_MAX];
    float *state, *scratch;
    void *block; /* holds all arrays of the model and its nodes */
    size_t block_bytes;
};

/* Returns the number of elements in one image. */
static inline size_t ddp_net_volume(const struct ddp_net_shape *s)
{
    return (size_t)s->c * (size_t)s->h * (size_t)s->w;
}

static int chunk_of(const struct ddp_model *m, const struct ddp_layer *spec, size_t unfolded)
{
    size_t fit = m->ops->chunk_floats / unfolded;
    return spec->chunk && m->ops->fixed_chunks ? spec->chunk : fit > 0 ? (int)fit : 1;
}

/* Sets the layer of a node and the shape of its output from the shape of its input. */
static void set_node(struct ddp_model *m, struct ddp_net_node *node, const struct ddp_net_shape *in)
{
    const struct ddp_layer *spec = node->spec;
    struct ddp_conv_shape conv = {
        in->c, in->h, in->w, spec->out, spec->k, spec->stride ? spec->stride : 1, spec->pad};
    size_t taps = (size_t)(in->c * spec->k * spec->k);
    node->in = node->shape = *in;
    switch (spec->kind) {
    case DDP_LAYER_CONV_POOL:
    case DDP_LAYER_CONV:
        node->shape =
            (struct ddp_net_shape){spec->out, ddp_conv_out_h(&conv), ddp_conv_out_w(&conv)};
        int chunk = chunk_of(m, spec, taps * (size_t)(node->shape.h * node->shape.w));
        node->layer.conv = (struct ddp_conv){conv, chunk, m->kernels, m->context, NULL};
        if (spec->kind == DDP_LAYER_CONV)
            break;
        assert(conv.stride == 1 && conv.pad == 0 && node->shape.h % 2 + node->shape.w % 2 == 0);
        node->shape.h /= 2;
        node->shape.w /= 2;
        break;
    case DDP_LAYER_BATCH_NORM:
        node->layer.norm =
            (struct ddp_batch_norm){in->c, spec->relu, m->kernels, m->context, in->h * in->w};
        break;
    case DDP_LAYER_FLATTEN:
        node->shape = (struct ddp_net_shape){(int)ddp_net_volume(in), 1, 1};
        break;
    case DDP_LAYER_LINEAR:
        node->shape = (struct ddp_net_shape){spec->out, 1, 1};
        node->layer.linear = (struct ddp_linear){(int)ddp_net_volume(in), spec->out, spec->relu,
                                                 m->kernels, m->context};
        break;
    default:
        break; /* ADD: the output has the shape of the input */
    }
}

static bool is_conv(const struct ddp_layer *spec)
{
    return spec->kind == DDP_LAYER_CONV || spec->kind == DDP_LAYER_CONV_POOL;
}

static bool has_params(const struct ddp_layer *spec)
{
    return spec->kind != DDP_LAYER_ADD && spec->kind != DDP_LAYER_FLATTEN;
}

static bool image_major(const struct ddp_layer *spec)
{
    bool before_linear = spec[1].kind == DDP_LAYER_LINEAR;
    return spec->kind == DDP_LAYER_LINEAR || spec->kind == DDP_LAYER_FLATTEN ||
           (spec->kind == DDP_LAYER_CONV_POOL && before_linear);
}

/* Sets all nodes except for their memory. An invalid list of layers is a bug in the model's file.
 */
static void set_nodes(struct ddp_model *m)
{
    struct ddp_net_shape shape = {m->cls->channels, m->cls->height, m->cls->width};
    int param = 0;
    size_t state = 0;
    for (m->count = 0; m->cls->layers[m->count].kind != DDP_LAYER_END; m->count++) {
        assert(m->count < DDP_NET_LAYERS_MAX);
        struct ddp_net_node *node = &m->nodes[m->count];
        *node = (struct ddp_net_node){.spec = &m->cls->layers[m->count], .added_to = -1};
        node->image_major = m->ops->image_major || image_major(node->spec);
        node->param = has_params(node->spec) ? param : -1;
        param += has_params(node->spec) ? 2 : 0;
        set_node(m, node, &shape);
        shape = node->shape;
        if (node->spec->kind == DDP_LAYER_ADD) {
            assert(node->spec->from < m->count);
            assert(ddp_net_volume(&m->nodes[node->spec->from].shape) == ddp_net_volume(&shape));
            m->nodes[node->spec->from].added_to = m->count;
        }
        if (node->spec->kind == DDP_LAYER_BATCH_NORM) {
            node->state = state;
            state += 2 * (size_t)shape.c;
        }
        assert(node->spec->kind != DDP_LAYER_LINEAR || m->count == 0 || node->in.c == 1 ||
               node[-1].image_major);
    }
    assert(param == m->cls->param_count && state == m->cls->state_count);
    assert(m->count > 0 && shape.c == m->cls->classes);
}

/* A position in a block of memory. take() returns the next array of the block, on cache lines of
 * its own. If base is NULL, take() only counts the bytes. */
struct cursor {
    char *base;
    size_t used;
};

static void *take(struct cursor *at, size_t bytes)
{
    void *p = at->base ? at->base + at->used : NULL;
    at->used += (bytes + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE * DDP_CACHE_LINE;
    return p;
}

static size_t node_scratch(const struct ddp_model *m, const struct ddp_net_node *node)
{
    return node->spec->kind == DDP_LAYER_CONV_POOL
               ? m->ops->conv_pool_scratch(&node->layer.conv, m->batch)
           : node->spec->kind == DDP_LAYER_CONV ? m->ops->conv_scratch(&node->layer.conv, m->batch)
                                                : 0;
}

static size_t carve(struct ddp_model *m, char *base)
{
    struct cursor at = {base, 0};
    size_t scratch = 0, batch = (size_t)m->batch;
    for (int i = 0; i < m->count; i++) {
        struct ddp_net_node *node = &m->nodes[i];
        size_t floats = batch * ddp_net_volume(&node->shape);
        node->out = take(&at, floats * sizeof(float));
        /* The gradient of the loss overwrites the logits. */
        node->dout = i + 1 < m->count ? take(&at, floats * sizeof(float)) : node->out;
        if (node->spec->kind == DDP_LAYER_BATCH_NORM)
            node->saved = take(&at, DDP_BATCH_NORM_SAVED * (size_t)node->shape.c * sizeof(float));
        scratch = DDP_MAX(scratch, node_scratch(m, node));
    }
    m->scratch = take(&at, scratch * sizeof(float));
    m->state = take(&at, m->cls->state_count * sizeof(float));
    for (int i = 0; i < m->count; i++)
        if (m->nodes[i].spec->kind == DDP_LAYER_CONV_POOL)
            m->nodes[i].which = take(&at, batch * ddp_net_volume(&m->nodes[i].shape));
    return at.used;
}

size_t ddp_net_scratch_bytes(const struct ddp_model_class *cls, int batch)
{
    struct ddp_model m = {.cls = cls, .ops = ddp_layers_cpu.ops, .batch = batch};
    set_nodes(&m);
    return carve(&m, NULL);
}

/* Returns the largest number of channels or outputs of a layer. No sum of a kernel has more rows.
 */
static int most_channels(const struct ddp_model_class *cls)
{
    int most = cls->classes;
    for (int i = 0; cls->layers[i].kind != DDP_LAYER_END; i++)
        most = DDP_MAX(most, cls->layers[i].out);
    return most;
}

static int open_layers(struct ddp_model *m, const struct ddp_model_target *place,
                       struct ddp_err *err)
{
    static const struct ddp_model_target processor = {.conv = DDP_CONV_AUTO};
    if (place == NULL)
        place = &processor;
    m->device = place->device ? place->device : ddp_device_cpu(ddp_nn_simd());
    m->layers = place->layers ? place->layers : ddp_layers_find(m->device->name);
    if (m->layers == NULL)
        return ddp_fail(err, DDP_EUNAVAIL, "device '%s' cannot run models", m->device->name);
    m->ops = m->layers->ops;
    const struct ddp_layers_setup setup = {.device = m->device,
                                           .stream = place->stream,
                                           .batch = m->batch,
                                           .channels = most_channels(m->cls),
                                           .tf32 = place->tf32,
                                           .conv = (enum ddp_conv_way)place->conv};
    return m->layers->open(&setup, &m->context, err);
}

static int plan_convolutions(struct ddp_model *m, struct ddp_err *err)
{
    for (int i = 0; i < m->count && m->ops->plan_conv != NULL; i++) {
        struct ddp_net_node *node = &m->nodes[i];
        if (is_conv(node->spec))
            DDP_TRY(m->ops->plan_conv(m->context, &node->layer.conv.shape, &node->layer.conv.plan,
                                      err));
    }
    return 0;
}

/* Sets the running means to 0 and the running variances to 1. */
static int fill_state(struct ddp_model *m, struct ddp_err *err)
{
    const size_t count = m->cls->state_count;
    if (count == 0)
        return 0;
    float *state;
    DDP_TRY(DDP_NEW(&state, count, err));
    for (int i = 0; i < m->count; i++)
        for (int c = 0; m->nodes[i].spec->kind == DDP_LAYER_BATCH_NORM && c < m->nodes[i].shape.c;
             c++)
            state[m->nodes[i].state + (size_t)(m->nodes[i].shape.c + c)] = 1.0f;
    m->device->copy(m->state, state, count * sizeof *state);
    free(state);
    return 0;
}

int ddp_net_create(const struct ddp_model_class *cls, const struct ddp_model_target *place,
                   int batch, float *params, float *grads, struct ddp_model **out,
                   struct ddp_err *err)
{
    int rc;
    struct ddp_model *m;
    DDP_TRY(DDP_NEW(&m, 1, err));
    m->cls = cls;
    m->kernels = ddp_nn_kernels(ddp_nn_simd());
    m->batch = batch;
    m->params = params;
    m->grads = grads;
    DDP_TRY_GOTO(open_layers(m, place, err), err_model);
    set_nodes(m);
    DDP_TRY_GOTO(plan_convolutions(m, err), err_model);
    m->block_bytes = carve(m, NULL);
    m->block = m->device->alloc(m->block_bytes);
    if (!m->block) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for the %zu bytes of activations of %d images",
                      m->block_bytes, batch);
        goto err_model;
    }
    carve(m, m->block);
    DDP_TRY_GOTO(fill_state(m, err), err_model);
    *out = m;
    return 0;

err_model:
    ddp_net_destroy(m);
    return rc;
}

void ddp_net_destroy(struct ddp_model *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->count && m->ops->free_plan != NULL; i++) {
        const struct ddp_net_node *node = &m->nodes[i];
        if (is_conv(node->spec))
            m->ops->free_plan(m->context, node->layer.conv.plan);
    }
    if (m->context)
        m->layers->close(m->context); /* waits for the device, which uses the block until then */
    if (m->block)
        m->device->free(m->block, m->block_bytes);
    free(m);
}

float *ddp_net_state(struct ddp_model *m)
{
    return m->state;
}

double ddp_net_flops(const struct ddp_model_class *cls)
{
    struct ddp_model m = {.cls = cls, .ops = ddp_layers_cpu.ops, .batch = 1};
    double sum = 0.0;
    set_nodes(&m);
    for (int i = 0; i < m.count; i++) {
        const struct ddp_net_node *node = &m.nodes[i];
        enum ddp_layer_kind kind = node->spec->kind;
        double weights = node->param >= 0 ? (double)cls->params[node->param].count : 0.0;
        double positions = (double)node->shape.h * node->shape.w;
        if (kind == DDP_LAYER_BATCH_NORM)
            continue;
        /* Each layer with weights has three products: the forward pass and the gradients of the
         * weights and of the input. The first layer needs no gradient of the input. CONV_POOL
         * computes four positions per output. */
        sum += 2.0 * weights * positions * (kind == DDP_LAYER_CONV_POOL ? 4 : 1) * (i ? 3 : 2);
    }
    return sum;
}

/* The functions below run a net. */

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
    if (m->ops->image_major)
        m->ops->copy(m->context, (size_t)n * ddp_net_volume(s), from, to);
    else
        m->ops->reorder(m->context, s->c, n, s->h * s->w, back, from, to);
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
        m->ops->batch_norm_forward(&node->layer.norm, row_length(node, n), x, weight(m, node),
                                   bias(m, node), running, node->saved, node->out);
    else
        m->ops->batch_norm_evaluate(&node->layer.norm, row_length(node, n), x, weight(m, node),
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
            m->ops->conv_pool_forward(&node->layer.conv, n, x, view_in(node, i == 0, n), w, b,
                                      node->out, view_out(node, n), node->which, m->scratch);
            break;
        case DDP_LAYER_CONV:
            m->ops->conv_forward(&node->layer.conv, n, x, view_in(node, i == 0, n), w, b, node->out,
                                 m->scratch);
            break;
        case DDP_LAYER_BATCH_NORM:
            run_norm(m, node, x, n, training);
            break;
        case DDP_LAYER_ADD:
            m->ops->copy(m->context, floats, x, node->out);
            m->ops->add(m->context, floats, m->nodes[node->spec->from].out, node->out);
            break;
        case DDP_LAYER_FLATTEN:
            flatten(m, node, n, false, x, node->out);
            break;
        default:
            m->ops->linear_forward(&node->layer.linear, n, x, w, b, node->out);
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
        m->ops->conv_pool_backward(&node->layer.conv, n, x, xv, w, node->dout, view_out(node, n),
                                   node->which, dw, db, dx, xv, m->scratch);
        break;
    case DDP_LAYER_CONV:
        m->ops->conv_backward(&node->layer.conv, n, x, xv, w, node->dout, dw, db, dx, xv,
                              m->scratch);
        break;
    case DDP_LAYER_BATCH_NORM:
        m->ops->batch_norm_backward(&node->layer.norm, row_length(node, n), x, node->out,
                                    node->dout, node->saved, dw, db, dx);
        break;
    case DDP_LAYER_ADD:
        /* ddp_net_step() later adds dout to the gradient of the other input, the output of layer
         * `from`. */
        m->ops->copy(m->context, (size_t)n * ddp_net_volume(&node->shape), node->dout, dx);
        break;
    case DDP_LAYER_FLATTEN:
        flatten(m, node, n, true, node->dout, dx);
        break;
    default:
        m->ops->linear_backward(&node->layer.linear, n, x, w, node->out, node->dout, dw, db, dx);
    }
}

void ddp_net_step(struct ddp_model *m, const float *x, const uint8_t *labels, int n, float scale,
                  double *loss_sum, int *correct, void (*ready)(void *arg, int param), void *arg)
{
    struct ddp_net_node *last = &m->nodes[m->count - 1];
    forward(m, x, n, true);
    m->ops->softmax_loss(m->context, n, m->cls->classes, last->out, labels, scale, loss_sum,
                         correct, last->dout);
    for (int i = m->count - 1; i >= 0; i--) {
        struct ddp_net_node *node = &m->nodes[i], *before = i > 0 ? node - 1 : NULL;
        backward(m, i, before ? before->out : x, n, before ? before->dout : NULL);
        if (before && before->added_to >= 0)
            m->ops->add(m->context, (size_t)n * ddp_net_volume(&before->shape),
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
    m->ops->softmax_loss(m->context, n, m->cls->classes, last->out, labels, 0.0f, loss_sum, correct,
                         NULL);
}

void ddp_net_gather(struct ddp_model *m, const uint8_t *pixels, const uint8_t *labels, size_t each,
                    const uint32_t *index, size_t first, int n, float *x, uint8_t *label)
{
    m->ops->gather(m->context, pixels, labels, each, index, first, n, x, label);
}
