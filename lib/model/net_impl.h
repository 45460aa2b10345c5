/* A net as net.c makes it and net_run.c runs it.
 *
 * A node is a layer at its place: its input's and output's shape, its parameters, its output and
 * that output's gradient. On the processor image outputs lie channel by channel, [c][n][h][w], so
 * that products and normalisation see long rows; what a LINEAR layer reads lies image by image. */
#ifndef DDP_MODEL_NET_IMPL_H
#define DDP_MODEL_NET_IMPL_H

#include <stdbool.h>

#include "model/layers.h"
#include "model/net.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_net_shape {
    int c, h, w;
};

struct ddp_net_node {
    const struct ddp_layer *spec;
    struct ddp_net_shape in, shape;
    bool image_major; /* the output: [n][c][h][w] instead of [c][n][h][w] */
    int param;        /* its first of two, -1: none */
    int added_to;     /* the ADD layer that takes this output besides the next one, -1: none */
    union {
        struct ddp_conv_pool conv_pool;
        struct ddp_conv conv;
        struct ddp_batch_norm norm;
        struct ddp_linear linear;
    } layer;
    float *out, *dout; /* [batch] images */
    uint8_t *which;    /* CONV_POOL */
    float *saved;      /* BATCH_NORM */
    size_t state;      /* BATCH_NORM: offset of its running statistics */
};

/* device: where block lies. context: of layers. */
struct ddp_model {
    const struct ddp_model_class *cls;
    const struct ddp_layers *layers;
    struct ddp_layers_context *context;
    const struct ddp_device *device;
    const struct ddp_nn_kernels *kernels;
    int batch;
    int count;
    float *params, *grads;
    struct ddp_net_node nodes[DDP_NET_LAYERS_MAX];
    float *state, *scratch;
    void *block;
    size_t block_bytes;
};

/* Elements of one image. */
static inline size_t ddp_net_volume(const struct ddp_net_shape *s)
{
    return (size_t)s->c * (size_t)s->h * (size_t)s->w;
}

#ifdef __cplusplus
}
#endif
#endif
