/* The layer table of the CPU: the functions of layers.h. They finish their work before they return.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/blas.h"
#include "model/layers.h"

/* The layer tables, one per device. */
#define DDP_LAYERS(symbol) extern const struct ddp_layers ddp_layers_##symbol;
#include "model/layers_list.h"
#undef DDP_LAYERS

static const struct ddp_layers *const all[] = {
#define DDP_LAYERS(symbol) &ddp_layers_##symbol,
#include "model/layers_list.h"
#undef DDP_LAYERS
    NULL,
};

const struct ddp_layers *const *ddp_layers_all(void)
{
    return all;
}

const struct ddp_layers *ddp_layers_find(const char *device)
{
    for (int i = 0; all[i] != NULL; i++)
        if (strcmp(all[i]->device, device) == 0)
            return all[i];
    return NULL;
}

const char *const ddp_conv_names[] = {"auto", "cudnn", "im2col", NULL};

/* Floats of unfolded images in a chunk: 1 MiB, half of a common L2 cache. */
#define CHUNK_FLOATS 262144

struct ddp_layers_context {
    const struct ddp_nn_kernels *kernels;
};

static int cpu_open(const struct ddp_layers_setup *setup, struct ddp_layers_context **out,
                    struct ddp_err *err)
{
    struct ddp_layers_context *c;
    DDP_TRY(DDP_NEW(&c, 1, err));
    c->kernels = ddp_nn_kernels(ddp_nn_simd());
    *out = c;
    return 0;
}

static void cpu_close(struct ddp_layers_context *c)
{
    free(c);
}

static size_t conv_pool_scratch(const struct ddp_conv_pool *layer, int batch)
{
    return ddp_conv_pool_scratch(layer);
}

static size_t conv_scratch(const struct ddp_conv *layer, int batch)
{
    return ddp_conv_scratch(layer);
}

static void softmax_loss(struct ddp_layers_context *c, int n, int classes, const float *logits,
                         const uint8_t *labels, float scale, double *loss_sum, int *correct,
                         float *d)
{
    ddp_softmax_loss(n, classes, logits, labels, scale, loss_sum, correct, d);
}

static void add(struct ddp_layers_context *c, size_t count, const float *a, float *y)
{
    c->kernels->add(count, a, y);
}

static void copy(struct ddp_layers_context *c, size_t count, const float *from, float *to)
{
    memcpy(to, from, count * sizeof *to);
}

static void reorder(struct ddp_layers_context *c, int channels, int n, int plane, bool back,
                    const float *from, float *to)
{
    for (int i = 0; i < n; i++)
        for (int ch = 0; ch < channels; ch++) {
            size_t image = (size_t)(i * channels + ch) * (size_t)plane;
            size_t channel = (size_t)(ch * n + i) * (size_t)plane;
            memcpy(to + (back ? channel : image), from + (back ? image : channel),
                   (size_t)plane * sizeof *to);
        }
}

static void gather(struct ddp_layers_context *c, const uint8_t *pixels, const uint8_t *labels,
                   size_t each, const uint32_t *index, size_t first, int n, float *x,
                   uint8_t *label)
{
    for (int i = 0; i < n; i++, x += each) {
        const size_t image = index ? index[first + (size_t)i] : first + (size_t)i;
        const uint8_t *from = pixels + image * each;
        for (size_t p = 0; p < each; p++)
            x[p] = (float)from[p] / 255.0f;
        label[i] = labels[image];
    }
}

const struct ddp_layers ddp_layers_cpu = {
    .device = "cpu",
    .library = ddp_blas_name,
    .fixed_chunks = true,
    .chunk_floats = CHUNK_FLOATS,
    .open = cpu_open,
    .close = cpu_close,
    .conv_pool_scratch = conv_pool_scratch,
    .conv_scratch = conv_scratch,
    .conv_pool_forward = ddp_conv_pool_forward,
    .conv_pool_backward = ddp_conv_pool_backward,
    .conv_forward = ddp_conv_forward,
    .conv_backward = ddp_conv_backward,
    .batch_norm_forward = ddp_batch_norm_forward,
    .batch_norm_evaluate = ddp_batch_norm_evaluate,
    .batch_norm_backward = ddp_batch_norm_backward,
    .linear_forward = ddp_linear_forward,
    .linear_backward = ddp_linear_backward,
    .softmax_loss = softmax_loss,
    .add = add,
    .copy = copy,
    .reorder = reorder,
    .gather = gather,
};
