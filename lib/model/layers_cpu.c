/* The layer tables of all devices, and the layers of the CPU. The functions of the CPU finish their
 * work before they return. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/blas.h"
#include "model/layers.h"
#include "model/nn_element.h"

/* The layer tables, one per device. */
static const struct ddp_layers *const tables[] = {&ddp_layers_cpu, &ddp_layers_cuda, NULL};

const struct ddp_layers *const *ddp_layers_all(void)
{
    return tables;
}

const struct ddp_layers *ddp_layers_find(const char *device)
{
    for (int i = 0; tables[i] != NULL; i++)
        if (strcmp(tables[i]->device, device) == 0)
            return tables[i];
    return NULL;
}

const char *const ddp_conv_names[] = {"auto", "cudnn", "im2col", NULL};

/* A convolution unfolds a chunk of m images into col [in_c*k*k][m*positions], images side by side.
 * One product then convolves the whole chunk. */

/* Returns the number of weights per output channel, which is the inner dimension of the product. */
static int taps(const struct ddp_conv_shape *s)
{
    return s->in_c * s->k * s->k;
}

static int positions(const struct ddp_conv_shape *s)
{
    return ddp_conv_out_h(s) * ddp_conv_out_w(s);
}

/* Returns the floats of an unfolded chunk. */
static size_t conv_scratch(const struct ddp_conv *layer, int batch)
{
    return (size_t)taps(&layer->shape) * (size_t)layer->chunk * (size_t)positions(&layer->shape);
}

static void conv_forward(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                         const float *w, const float *b, float *y, float *scratch)
{
    const struct ddp_conv_shape *s = &layer->shape;
    const int each = positions(s), k = taps(s), all = n * each;
    for (int first = 0; first < n; first += layer->chunk) {
        int m = DDP_MIN(layer->chunk, n - first), cols = m * each;
        layer->kernels->unfold(s, m, x + (size_t)first * xv.image, xv, scratch);
        ddp_sgemm(0, 0, s->out_c, cols, k, 1.0f, w, k, scratch, cols, 0.0f, y + first * each, all);
    }
    layer->kernels->row_bias(s->out_c, (size_t)all, b, y);
}

static void conv_backward(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                          const float *w, const float *dy, float *dw, float *db, float *dx,
                          struct ddp_view dxv, float *scratch)
{
    const struct ddp_conv_shape *s = &layer->shape;
    const int each = positions(s), k = taps(s), all = n * each;
    memset(dw, 0, sizeof *dw * (size_t)s->out_c * (size_t)k);
    memset(db, 0, sizeof *db * (size_t)s->out_c);
    layer->kernels->row_sums(s->out_c, (size_t)all, dy, db);
    for (int first = 0; first < n; first += layer->chunk) {
        int m = DDP_MIN(layer->chunk, n - first), cols = m * each;
        const float *part = dy + first * each;
        layer->kernels->unfold(s, m, x + (size_t)first * xv.image, xv, scratch);
        ddp_sgemm(0, 1, s->out_c, k, cols, 1.0f, part, all, scratch, cols, 1.0f, dw, k);
        if (!dx)
            continue;
        /* The unfolded images are no longer needed, so their gradient overwrites them. */
        ddp_sgemm(1, 0, k, cols, s->out_c, 1.0f, w, k, part, all, 0.0f, scratch, cols);
        layer->kernels->fold(s, m, scratch, dx + (size_t)first * dxv.image, dxv);
    }
}

static size_t conv_pool_scratch(const struct ddp_conv *layer, int batch)
{
    const struct ddp_conv_shape *s = &layer->shape;
    const size_t forward =
        conv_scratch(layer, batch) + (size_t)s->out_c * (size_t)layer->chunk * (size_t)positions(s);
    return DDP_MAX(forward, ddp_pool_grad_scratch(s));
}

static void conv_pool_forward(const struct ddp_conv *layer, int n, const float *x,
                              struct ddp_view xv, const float *w, const float *b, float *out,
                              struct ddp_view outv, uint8_t *which, float *scratch)
{
    const struct ddp_conv_shape *s = &layer->shape;
    const int each = positions(s), k = taps(s);
    float *col = scratch, *y = scratch + conv_scratch(layer, n);
    for (int first = 0; first < n; first += layer->chunk) {
        int m = DDP_MIN(layer->chunk, n - first), cols = m * each;
        layer->kernels->unfold(s, m, x + (size_t)first * xv.image, xv, col);
        ddp_sgemm(0, 0, s->out_c, cols, k, 1.0f, w, k, col, cols, 0.0f, y, cols);
        layer->kernels->bias_relu_pool(s->out_c, m, ddp_conv_out_h(s), ddp_conv_out_w(s), y, b,
                                       out + (size_t)first * outv.image, outv, which);
        which += (size_t)s->out_c * (size_t)cols / 4;
    }
}

static void conv_pool_backward(const struct ddp_conv *layer, int n, const float *x,
                               struct ddp_view xv, const float *w, const float *dout,
                               struct ddp_view doutv, const uint8_t *which, float *dw, float *db,
                               float *dx, struct ddp_view dxv, float *scratch)
{
    layer->kernels->pool_grad(&layer->shape, n, layer->chunk, x, xv, w, dout, doutv, which, dw, db,
                              dx, dxv, scratch);
}

static void linear_forward(const struct ddp_linear *layer, int n, const float *x, const float *w,
                           const float *b, float *y)
{
    ddp_sgemm(0, 1, n, layer->out, layer->in, 1.0f, x, layer->in, w, layer->in, 0.0f, y,
              layer->out);
    layer->kernels->bias(n, layer->out, b, layer->relu, y);
}

static void linear_backward(const struct ddp_linear *layer, int n, const float *x, const float *w,
                            const float *y, float *dy, float *dw, float *db, float *dx)
{
    if (layer->relu)
        layer->kernels->relu_backward((size_t)n * (size_t)layer->out, y, dy);
    layer->kernels->column_sums(n, layer->out, dy, db);
    if (n == 0)
        memset(dw, 0, sizeof *dw * (size_t)layer->out * (size_t)layer->in);
    else
        ddp_sgemm(1, 0, layer->out, layer->in, n, 1.0f, dy, layer->out, x, layer->in, 0.0f, dw,
                  layer->in);
    if (dx)
        ddp_sgemm(0, 0, n, layer->in, layer->out, 1.0f, dy, layer->out, w, layer->in, 0.0f, dx,
                  layer->in);
}

static void softmax_loss(struct ddp_layers_context *c, int n, int classes, const float *logits,
                         const uint8_t *labels, float scale, double *loss_sum, int *correct,
                         float *d)
{
    double loss, sum = 0.0;
    int hit, hits = 0;
    const struct ddp_nn_loss all = {classes, logits, labels, scale, NULL, NULL, d};
    for (int i = 0; i < n; i++) {
        ddp_nn_loss_of(&all, (size_t)i, &loss, &hit);
        sum += loss;
        hits += hit;
    }
    *loss_sum = sum;
    *correct = hits;
}

/* Batch normalisation (Ioffe & Szegedy 2015). Each channel is normalised over its images and
 * positions. */

static float inverse_deviation(float variance)
{
    return 1.0f / sqrtf(variance + DDP_NORM_EPSILON);
}

static void batch_norm_forward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                               const float *gamma, const float *beta, float *running, float *saved,
                               float *y)
{
    const int channels = layer->channels;
    float *mean = saved, *inverse = saved + channels, *scale = inverse + channels;
    if (count == 0)
        return;
    layer->kernels->moments(channels, count, x, mean, inverse);
    for (int c = 0; c < channels; c++) {
        float variance = inverse[c];
        running[c] = (1.0f - DDP_NORM_MOMENTUM) * running[c] + DDP_NORM_MOMENTUM * mean[c];
        running[channels + c] =
            (1.0f - DDP_NORM_MOMENTUM) * running[channels + c] + DDP_NORM_MOMENTUM * variance;
        inverse[c] = inverse_deviation(variance);
        scale[c] = gamma[c] * inverse[c];
    }
    layer->kernels->normalize(channels, count, x, mean, scale, beta, layer->relu, y);
}

static void batch_norm_evaluate(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                const float *gamma, const float *beta, const float *running,
                                float *saved, float *y)
{
    const int channels = layer->channels;
    for (int c = 0; c < channels; c++)
        saved[c] = gamma[c] * inverse_deviation(running[channels + c]);
    layer->kernels->normalize(channels, count, x, running, saved, beta, layer->relu, y);
}

static void batch_norm_backward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                const float *y, float *dy, float *saved, float *dgamma,
                                float *dbeta, float *dx)
{
    const int channels = layer->channels;
    const float *mean = saved, *inverse = saved + channels, *scale = inverse + channels;
    float *a = saved + 3 * channels, *b = saved + 4 * channels;
    if (count == 0) {
        memset(dgamma, 0, sizeof *dgamma * (size_t)channels);
        memset(dbeta, 0, sizeof *dbeta * (size_t)channels);
        return;
    }
    if (layer->relu)
        layer->kernels->relu_backward((size_t)channels * count, y, dy);
    layer->kernels->norm_sums(channels, count, x, dy, mean, dbeta, dgamma);
    /* dx = scale * (dy - average(dy) - x^ * average(dy * x^)), with x^ = (x - mean) * inverse. The
     * averages are over the `count` values of a channel. */
    for (int c = 0; c < channels; c++) {
        dgamma[c] *= inverse[c];
        a[c] = dbeta[c] / (float)count;
        b[c] = dgamma[c] * inverse[c] / (float)count;
    }
    layer->kernels->norm_backward(channels, count, x, dy, mean, scale, a, b, dx);
}

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

static const struct ddp_layer_ops cpu_ops = {
    .fixed_chunks = true,
    .chunk_floats = CHUNK_FLOATS,
    .conv_pool_scratch = conv_pool_scratch,
    .conv_scratch = conv_scratch,
    .conv_pool_forward = conv_pool_forward,
    .conv_pool_backward = conv_pool_backward,
    .conv_forward = conv_forward,
    .conv_backward = conv_backward,
    .batch_norm_forward = batch_norm_forward,
    .batch_norm_evaluate = batch_norm_evaluate,
    .batch_norm_backward = batch_norm_backward,
    .linear_forward = linear_forward,
    .linear_backward = linear_backward,
    .softmax_loss = softmax_loss,
    .add = add,
    .copy = copy,
    .reorder = reorder,
    .gather = gather,
};

const struct ddp_layers ddp_layers_cpu = {
    .device = "cpu",
    .library = ddp_blas_name,
    .open = cpu_open,
    .close = cpu_close,
    .ops = &cpu_ops,
};
