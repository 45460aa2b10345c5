/* The net that net.c builds and net_run.c runs.
 *
 * A *node* is a layer within a net, with its shapes, its parameters, its output and the gradient of
 * its output. On the CPU the outputs are stored channel by channel, [c][n][h][w], so that products
 * and normalisation run over long rows. The inputs and outputs of LINEAR layers are stored image by
 * image. */
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
    struct ddp_net_shape in, shape; /* input and output */
    bool image_major;               /* the output is [n][c][h][w] rather than [c][n][h][w] */
    int param;                      /* index of the first of the two parameters, or -1 */
    int added_to;                   /* index of the ADD layer whose `from` is this node, or -1 */
    union {
        struct ddp_conv_pool conv_pool;
        struct ddp_conv conv;
        struct ddp_batch_norm norm;
        struct ddp_linear linear;
    } layer;
    float *out, *dout; /* [batch] images; dout: gradient of out */
    uint8_t *which;    /* CONV_POOL: see ddp_conv_pool_forward() */
    float *saved;      /* BATCH_NORM: see ddp_batch_norm_forward() */
    size_t state;      /* BATCH_NORM: offset of its running statistics in the model's state */
};

struct ddp_model {
    const struct ddp_model_class *cls;
    const struct ddp_layers *layers;
    struct ddp_layers_context *context; /* state that the layers share */
    const struct ddp_device *device;    /* `block` lies in its memory */
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

#ifdef __cplusplus
}
#endif
#endif
