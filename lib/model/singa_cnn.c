/* SINGA's CNN: conv 1->20 5x5, ReLU, pool 2, conv 20->50 5x5, ReLU, pool 2, FC 800->500, ReLU, FC
 * 500->10; 431,080 parameters. Source: Apache SINGA, examples/cnn/model/cnn.py (with the second
 * pooling of its MNIST figures). */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/layers.h"

enum { CLASSES = 10, SIDE = 28, PIXELS = SIDE * SIDE };
enum { C1 = 20, P1_SIDE = 12, P1 = P1_SIDE * P1_SIDE }; /* after conv 1 and its pool */
enum { C2 = 50, P2_SIDE = 4, P2 = P2_SIDE * P2_SIDE };
enum { F1_IN = C2 * P2, F1 = 500 };
/* Images unfolded at once: 8 of conv 2 are 1 MB, half of a common L2 cache. */
enum { CHUNK = 8 };

enum { W1, B1, W2, B2, W3, B3, W4, B4, PARAMS };
enum {
    W1_N = C1 * 25,
    W2_N = C2 * C1 * 25,
    W3_N = F1 * F1_IN,
    W4_N = CLASSES * F1,
    W2_AT = W1_N + C1,
    W3_AT = W2_AT + W2_N + C2,
    W4_AT = W3_AT + W3_N + F1,
    TOTAL = W4_AT + W4_N + CLASSES
};

/* fan_out of a convolution: its output channels times the kernel, as PyTorch counts. */
static const struct ddp_param layout[PARAMS] = {
    {"conv1.weight", 0, W1_N, 25, C1 * 25},          {"conv1.bias", W1_N, C1, 0, 0},
    {"conv2.weight", W2_AT, W2_N, C1 * 25, C2 * 25}, {"conv2.bias", W2_AT + W2_N, C2, 0, 0},
    {"fc1.weight", W3_AT, W3_N, F1_IN, F1},          {"fc1.bias", W3_AT + W3_N, F1, 0, 0},
    {"fc2.weight", W4_AT, W4_N, F1, CLASSES},        {"fc2.bias", W4_AT + W4_N, CLASSES, 0, 0},
};

/* Activations of one batch; d*: their gradients. p1 [C1][n][12][12], so that conv 2 unfolds it
 * with long strides; p2 [n][C2][4][4], which is what FC 1 reads as [n][800]. */
struct ddp_model {
    int batch;
    float *params, *grads;
    struct ddp_conv_pool conv1, conv2;
    struct ddp_linear fc1, fc2;
    float *p1, *p2, *h, *logits, *dp1, *dp2, *dh, *scratch;
    uint8_t *which1, *which2;
    void *block;
    size_t block_bytes;
};

static const struct ddp_conv_shape shape1 = {1, SIDE, SIDE, C1, 5};
static const struct ddp_conv_shape shape2 = {C1, P1_SIDE, P1_SIDE, C2, 5};

static size_t padded(size_t bytes)
{
    return (bytes + DDP_CACHE_LINE - 1) / DDP_CACHE_LINE * DDP_CACHE_LINE;
}

/* Hands out the arrays of m from one block; base NULL: only their size. */
static size_t carve(struct ddp_model *m, int batch, char *base)
{
    size_t n = (size_t)batch, used = 0;
    size_t scratch = DDP_MAX(ddp_conv_pool_scratch(&m->conv1), ddp_conv_pool_scratch(&m->conv2));
    struct {
        float **at;
        size_t count;
    } arrays[] = {
        {&m->p1, n * C1 * P1},  {&m->dp1, n * C1 * P1},    {&m->p2, n * F1_IN},
        {&m->dp2, n * F1_IN},   {&m->h, n * F1},           {&m->dh, n * F1},
        {&m->scratch, scratch}, {&m->logits, n * CLASSES},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(arrays); i++) {
        *arrays[i].at = base ? (float *)(void *)(base + used) : NULL;
        used += padded(arrays[i].count * sizeof(float));
    }
    m->which1 = base ? (uint8_t *)base + used : NULL;
    used += padded(n * C1 * P1);
    m->which2 = base ? (uint8_t *)base + used : NULL;
    return used + padded(n * F1_IN);
}

static void set_layers(struct ddp_model *m, const struct ddp_nn_kernels *kernels)
{
    m->conv1 = (struct ddp_conv_pool){shape1, CHUNK, kernels};
    m->conv2 = (struct ddp_conv_pool){shape2, CHUNK, kernels};
    m->fc1 = (struct ddp_linear){F1_IN, F1, 1, kernels};
    m->fc2 = (struct ddp_linear){F1, CLASSES, 0, kernels};
}

static size_t scratch_bytes(int batch)
{
    struct ddp_model m;
    set_layers(&m, NULL);
    return carve(&m, batch, NULL);
}

static int create(int batch, float *params, float *grads, struct ddp_model **out,
                  struct ddp_err *err)
{
    struct ddp_model *m = calloc(1, sizeof *m);
    if (!m)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the model");
    m->batch = batch;
    m->params = params;
    m->grads = grads;
    set_layers(m, ddp_nn_kernels(ddp_nn_simd()));
    m->block_bytes = carve(m, batch, NULL);
    m->block = ddp_alloc_pages(m->block_bytes);
    if (!m->block) {
        ddp_fail(err, DDP_ENOMEM, "no memory for %zu bytes of activations of %d images",
                 m->block_bytes, batch);
        free(m);
        return DDP_ENOMEM;
    }
    carve(m, batch, m->block);
    *out = m;
    return 0;
}

static void destroy(struct ddp_model *m)
{
    if (!m)
        return;
    ddp_free_pages(m->block, m->block_bytes);
    free(m);
}

/* [C1][n] planes of conv 1 after its pool. */
static struct ddp_view p1_view(int n)
{
    return (struct ddp_view){(size_t)n * P1, P1};
}

static const struct ddp_view x_view = {PIXELS, PIXELS}, p2_view = {P2, F1_IN};

static void forward(struct ddp_model *m, const float *x, int n)
{
    const float *p = m->params;
    ddp_conv_pool_forward(&m->conv1, n, x, x_view, p, p + layout[B1].offset, m->p1, p1_view(n),
                          m->which1, m->scratch);
    ddp_conv_pool_forward(&m->conv2, n, m->p1, p1_view(n), p + W2_AT, p + layout[B2].offset, m->p2,
                          p2_view, m->which2, m->scratch);
    ddp_linear_forward(&m->fc1, n, m->p2, p + W3_AT, p + layout[B3].offset, m->h);
    ddp_linear_forward(&m->fc2, n, m->h, p + W4_AT, p + layout[B4].offset, m->logits);
}

static void step(struct ddp_model *m, const float *x, const uint8_t *labels, int n, float scale,
                 double *loss_sum, int *correct, void (*ready)(void *arg, int param), void *arg)
{
    const float *p = m->params;
    float *g = m->grads;
    forward(m, x, n);
    ddp_softmax_loss(n, CLASSES, m->logits, labels, scale, loss_sum, correct, m->logits);
    for (int layer = PARAMS - 2; layer >= 0; layer -= 2) {
        float *dw = g + layout[layer].offset, *db = g + layout[layer + 1].offset;
        switch (layer) {
        case W4:
            ddp_linear_backward(&m->fc2, n, m->h, p + W4_AT, NULL, m->logits, dw, db, m->dh);
            break;
        case W3:
            ddp_linear_backward(&m->fc1, n, m->p2, p + W3_AT, m->h, m->dh, dw, db, m->dp2);
            break;
        case W2:
            ddp_conv_pool_backward(&m->conv2, n, m->p1, p1_view(n), p + W2_AT, m->dp2, p2_view,
                                   m->which2, dw, db, m->dp1, p1_view(n), m->scratch);
            break;
        default:
            ddp_conv_pool_backward(&m->conv1, n, x, x_view, p, m->dp1, p1_view(n), m->which1, dw,
                                   db, NULL, x_view, m->scratch);
        }
        if (ready) {
            ready(arg, layer + 1);
            ready(arg, layer);
        }
    }
}

static void evaluate(struct ddp_model *m, const float *x, const uint8_t *labels, int n,
                     double *loss_sum, int *correct)
{
    forward(m, x, n);
    ddp_softmax_loss(n, CLASSES, m->logits, labels, 0.0f, loss_sum, correct, NULL);
}

/* Multiplications and additions of the products: forward, gradient of the weights, and, but for
 * conv 1, gradient of the input. */
#define PRODUCTS1 (2.0 * W1_N * 24 * 24)
#define PRODUCTS2 (2.0 * W2_N * 8 * 8)
#define PRODUCTS3 (2.0 * W3_N)
#define PRODUCTS4 (2.0 * W4_N)

extern const struct ddp_model_class ddp_model_singa_cnn;
const struct ddp_model_class ddp_model_singa_cnn = {
    .name = "singa-cnn",
    .summary = "SINGA's CNN: 2 convolutions, 2 fully connected, 431,080 parameters, 28 x 28 grey",
    .channels = 1,
    .height = SIDE,
    .width = SIDE,
    .classes = CLASSES,
    .create = create,
    .destroy = destroy,
    .scratch_bytes = scratch_bytes,
    .parameter_count = TOTAL,
    .params = layout,
    .param_count = PARAMS,
    .flops_per_image = 2 * PRODUCTS1 + 3 * (PRODUCTS2 + PRODUCTS3 + PRODUCTS4),
    .step = step,
    .evaluate = evaluate,
};
