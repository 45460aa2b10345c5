/* A net made from its layers: shapes and memory. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/net_impl.h"

/* Unfolded images that fill half of a common L2 cache: floats. */
#define CHUNK_FLOATS 262144

static int chunk_of(const struct ddp_layer *spec, size_t unfolded)
{
    size_t fit = CHUNK_FLOATS / unfolded;
    return spec->chunk ? spec->chunk : fit > 0 ? (int)fit : 1;
}

/* The layer of a node and its output's shape, from its input's. */
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
        int chunk = chunk_of(spec, taps * (size_t)(node->shape.h * node->shape.w));
        if (spec->kind == DDP_LAYER_CONV) {
            node->layer.conv = (struct ddp_conv){conv, chunk, m->kernels};
            break;
        }
        assert(conv.stride == 1 && conv.pad == 0 && node->shape.h % 2 + node->shape.w % 2 == 0);
        node->layer.conv_pool = (struct ddp_conv_pool){conv, chunk, m->kernels};
        node->shape.h /= 2;
        node->shape.w /= 2;
        break;
    case DDP_LAYER_BATCH_NORM:
        node->layer.norm = (struct ddp_batch_norm){in->c, spec->relu, m->kernels};
        break;
    case DDP_LAYER_FLATTEN:
        node->shape = (struct ddp_net_shape){(int)ddp_net_volume(in), 1, 1};
        break;
    case DDP_LAYER_LINEAR:
        node->shape = (struct ddp_net_shape){spec->out, 1, 1};
        node->layer.linear =
            (struct ddp_linear){(int)ddp_net_volume(in), spec->out, spec->relu, m->kernels};
        break;
    default:
        break; /* ADD: its input's shape */
    }
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

/* All nodes but their memory; a list that is no net is the model file's bug. */
static void set_nodes(struct ddp_model *m)
{
    struct ddp_net_shape shape = {m->cls->channels, m->cls->height, m->cls->width};
    int param = 0;
    size_t state = 0;
    for (m->count = 0; m->cls->layers[m->count].kind != DDP_LAYER_END; m->count++) {
        assert(m->count < DDP_NET_LAYERS_MAX);
        struct ddp_net_node *node = &m->nodes[m->count];
        *node = (struct ddp_net_node){.spec = &m->cls->layers[m->count], .added_to = -1};
        node->image_major = image_major(node->spec);
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

/* Arrays one after the other in a block, each on lines of its own; base NULL: only their size. */
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

static size_t node_scratch(const struct ddp_net_node *node)
{
    return node->spec->kind == DDP_LAYER_CONV_POOL ? ddp_conv_pool_scratch(&node->layer.conv_pool)
           : node->spec->kind == DDP_LAYER_CONV    ? ddp_conv_scratch(&node->layer.conv)
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
        /* The loss's gradient takes the place of the logits. */
        node->dout = i + 1 < m->count ? take(&at, floats * sizeof(float)) : node->out;
        if (node->spec->kind == DDP_LAYER_BATCH_NORM)
            node->saved = take(&at, DDP_BATCH_NORM_SAVED * (size_t)node->shape.c * sizeof(float));
        scratch = DDP_MAX(scratch, node_scratch(node));
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
    struct ddp_model m = {.cls = cls, .batch = batch};
    set_nodes(&m);
    return carve(&m, NULL);
}

int ddp_net_create(const struct ddp_model_class *cls, int batch, float *params, float *grads,
                   struct ddp_model **out, struct ddp_err *err)
{
    struct ddp_model *m = ddp_calloc(1, sizeof *m);
    if (!m)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the model");
    m->cls = cls;
    m->kernels = ddp_nn_kernels(ddp_nn_simd());
    m->batch = batch;
    m->params = params;
    m->grads = grads;
    set_nodes(m);
    m->block_bytes = carve(m, NULL);
    m->block = ddp_alloc_pages(m->block_bytes);
    if (!m->block) {
        ddp_fail(err, DDP_ENOMEM, "no memory for %zu bytes of activations of %d images",
                 m->block_bytes, batch);
        free(m);
        return DDP_ENOMEM;
    }
    carve(m, m->block);
    for (int i = 0; i < m->count; i++)
        if (m->nodes[i].spec->kind == DDP_LAYER_BATCH_NORM)
            for (int c = 0, channels = m->nodes[i].shape.c; c < channels; c++) {
                m->state[m->nodes[i].state + (size_t)c] = 0.0f;
                m->state[m->nodes[i].state + (size_t)(channels + c)] = 1.0f;
            }
    *out = m;
    return 0;
}

void ddp_net_destroy(struct ddp_model *m)
{
    if (!m)
        return;
    ddp_free_pages(m->block, m->block_bytes);
    free(m);
}

float *ddp_net_state(struct ddp_model *m)
{
    return m->state;
}

double ddp_net_flops(const struct ddp_model_class *cls)
{
    struct ddp_model m = {.cls = cls, .batch = 1};
    double sum = 0.0;
    set_nodes(&m);
    for (int i = 0; i < m.count; i++) {
        const struct ddp_net_node *node = &m.nodes[i];
        enum ddp_layer_kind kind = node->spec->kind;
        double weights = node->param >= 0 ? (double)cls->params[node->param].count : 0.0;
        double positions = (double)node->shape.h * node->shape.w;
        if (kind == DDP_LAYER_BATCH_NORM)
            continue;
        /* Forward, gradient of the weights, and, but for the first layer, of the input. */
        sum += 2.0 * weights * positions * (kind == DDP_LAYER_CONV_POOL ? 4 : 1) * (i ? 3 : 2);
    }
    return sum;
}
