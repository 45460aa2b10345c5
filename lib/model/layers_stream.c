/* The layers on a stream. */
#include "model/layers_stream.h"

#include <stdlib.h>

#include "base/mem.h"

static void release(struct ddp_layers_context *c)
{
    const struct ddp_device *d = c->device;
    const size_t batch = (size_t)c->batch;
    if (c->parts != NULL)
        d->free(c->parts, c->parts_bytes);
    if (c->each != NULL)
        d->free(c->each, batch * sizeof *c->each);
    if (c->hit != NULL)
        d->free(c->hit, batch * sizeof *c->hit);
    free(c);
}

int ddp_layers_stream_open(const struct ddp_layers_setup *setup,
                           const struct ddp_nn_stream *kernels, struct ddp_layers_context **out,
                           struct ddp_err *err)
{
    const struct ddp_device *d = setup->device;
    const size_t batch = (size_t)setup->batch;
    struct ddp_layers_context *c;
    DDP_TRY(DDP_NEW(&c, 1, err));
    c->device = d;
    c->stream = setup->stream;
    c->kernels = kernels;
    c->batch = setup->batch;
    c->tf32 = setup->tf32;
    c->parts_bytes = (size_t)setup->channels * DDP_NN_SPLITS_MAX * sizeof *c->parts;
    c->parts = d->alloc(c->parts_bytes);
    c->each = d->alloc(batch * sizeof *c->each);
    c->hit = d->alloc(batch * sizeof *c->hit);
    if (c->parts == NULL || c->each == NULL || c->hit == NULL) {
        release(c);
        return ddp_fail(err, DDP_ENOMEM, "device '%s' has no memory for the losses of %d images",
                        d->name, setup->batch);
    }
    *out = c;
    return 0;
}

void ddp_layers_stream_close(struct ddp_layers_context *c)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    if (c == NULL)
        return;
    (void)!c->device->streams->wait(c->stream, &ignored);
    if (c->conv != NULL)
        c->conv->close(c);
    release(c);
}

static void batch_norm_forward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                               const float *gamma, const float *beta, float *running, float *saved,
                               float *y)
{
    struct ddp_layers_context *c = layer->context;
    const uint32_t channels = (uint32_t)layer->channels, plane = (uint32_t)layer->plane;
    const struct ddp_view view = {plane, (size_t)plane * channels};
    float *mean = saved, *inverse = saved + channels, *scale = inverse + channels;
    if (count == 0)
        return;
    const struct ddp_nn_mean means = {plane, view, x, mean};
    const struct ddp_nn_variance variances = {plane, channels, view,    x,    mean,
                                              gamma, running,  inverse, scale};
    const struct ddp_nn_normalize apply = {channels, plane, x, mean, scale, beta, layer->relu, y};
    c->kernels->mean(c->stream, channels, (uint32_t)count, &means, c->parts);
    c->kernels->variance(c->stream, channels, (uint32_t)count, &variances, c->parts);
    c->kernels->normalize(c->stream, channels * (uint32_t)count, &apply);
}

static void batch_norm_evaluate(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                const float *gamma, const float *beta, const float *running,
                                float *saved, float *y)
{
    struct ddp_layers_context *c = layer->context;
    const uint32_t channels = (uint32_t)layer->channels, plane = (uint32_t)layer->plane;
    const struct ddp_nn_norm_scale scales = {gamma, running + channels, saved};
    const struct ddp_nn_normalize apply = {channels, plane, x,           running,
                                           saved,    beta,  layer->relu, y};
    c->kernels->norm_scale(c->stream, channels, &scales);
    c->kernels->normalize(c->stream, channels * (uint32_t)count, &apply);
}

static void clear(struct ddp_layers_context *c, float *a, size_t count)
{
    c->device->streams->fill(c->stream, a, 0, count * sizeof *a);
}

/* Unlike the CPU's function, this function does not change dy. The kernels here also read y, and
 * use 0 instead of dy where y is 0. */
static void batch_norm_backward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                const float *y, float *dy, float *saved, float *dgamma,
                                float *dbeta, float *dx)
{
    struct ddp_layers_context *c = layer->context;
    const uint32_t channels = (uint32_t)layer->channels, plane = (uint32_t)layer->plane;
    const struct ddp_view view = {plane, (size_t)plane * channels};
    const float *mean = saved, *inverse = saved + channels, *scale = inverse + channels;
    float *a = saved + 3 * (size_t)channels, *b = a + channels;
    const float *cut = layer->relu ? y : NULL;
    if (count == 0) {
        clear(c, dgamma, channels);
        clear(c, dbeta, channels);
        return;
    }
    const struct ddp_nn_norm_sum sums = {plane,   view,   x,     cut, dy, mean,
                                         inverse, dgamma, dbeta, a,   b};
    const struct ddp_nn_norm_backward back = {channels, plane, x, cut, dy, mean, scale, a, b, dx};
    c->kernels->norm_sum(c->stream, channels, (uint32_t)count, &sums, c->parts);
    c->kernels->norm_backward(c->stream, channels * (uint32_t)count, &back);
}

static void linear_forward(const struct ddp_linear *layer, int n, const float *x, const float *w,
                           const float *b, float *y)
{
    struct ddp_layers_context *c = layer->context;
    const struct ddp_gemm product = {false, true, false, n,         layer->out, layer->in,
                                     x,     w,    y,     layer->in, layer->in,  layer->out};
    const struct ddp_nn_bias bias = {(uint32_t)layer->out, layer->relu, b, y};
    if (n == 0)
        return;
    c->gemm(c, &product);
    c->kernels->bias(c->stream, (uint32_t)n * (uint32_t)layer->out, &bias);
}

static void linear_backward(const struct ddp_linear *layer, int n, const float *x, const float *w,
                            const float *y, float *dy, float *dw, float *db, float *dx)
{
    struct ddp_layers_context *c = layer->context;
    const int in = layer->in, out = layer->out;
    const struct ddp_gemm to_w = {true, false, false, out, in, n, dy, x, dw, out, in, in};
    const struct ddp_gemm to_x = {false, false, false, n, in, out, dy, w, dx, out, in, in};
    const struct ddp_nn_relu_backward cut = {y, dy};
    const struct ddp_nn_column_sum sum = {(uint32_t)out, dy, db};
    if (n == 0) {
        clear(c, dw, (size_t)in * (size_t)out);
        clear(c, db, (size_t)out);
        return;
    }
    if (layer->relu)
        c->kernels->relu_backward(c->stream, (uint32_t)n * (uint32_t)out, &cut);
    c->kernels->column_sum(c->stream, (uint32_t)out, (uint32_t)n, &sum, c->parts);
    c->gemm(c, &to_w);
    if (dx != NULL)
        c->gemm(c, &to_x);
}

static void softmax_loss(struct ddp_layers_context *c, int n, int classes, const float *logits,
                         const uint8_t *labels, float scale, double *loss_sum, int *correct,
                         float *d)
{
    const struct ddp_nn_loss loss = {classes, logits, labels, scale, c->each, c->hit, d};
    c->kernels->loss(c->stream, (uint32_t)n, &loss);
    c->kernels->tally(c->stream, (uint32_t)n, c->each, c->hit, loss_sum, correct);
}

static void add(struct ddp_layers_context *c, size_t count, const float *a, float *y)
{
    const struct ddp_nn_add sum = {a, y};
    c->kernels->add(c->stream, (uint32_t)count, &sum);
}

static void copy(struct ddp_layers_context *c, size_t count, const float *from, float *to)
{
    c->device->streams->copy(c->stream, to, from, count * sizeof *to);
}

static void reorder(struct ddp_layers_context *c, int channels, int n, int plane, bool back,
                    const float *from, float *to)
{
    const size_t pixels = (size_t)plane;
    const struct ddp_view image = {pixels, pixels * (size_t)channels};
    const struct ddp_view channel = {pixels * (size_t)n, pixels};
    const struct ddp_nn_move move = {(uint32_t)n, (uint32_t)plane,        from,
                                     NULL,        back ? image : channel, back ? channel : image,
                                     to};
    c->kernels->move(c->stream, (uint32_t)(channels * n * plane), &move);
}

static void gather(struct ddp_layers_context *c, const uint8_t *pixels, const uint8_t *labels,
                   size_t each, const uint32_t *index, size_t first, int n, float *x,
                   uint8_t *label)
{
    const struct ddp_nn_gather gather = {pixels,         labels, index, (uint32_t)first,
                                         (uint32_t)each, x,      label};
    c->kernels->gather(c->stream, (uint32_t)n * (uint32_t)each, &gather);
}

/* Convolutions. If a layer has a plan, a library computes its convolution. Otherwise the
 * convolution is a product of unfolded images, chunk by chunk as on the CPU. */

static int plan_conv(struct ddp_layers_context *c, const struct ddp_conv_shape *shape,
                     struct ddp_conv_plan **out, struct ddp_err *err)
{
    *out = NULL;
    return c->conv != NULL ? c->conv->plan(c, shape, out, err) : 0;
}

static void free_plan(struct ddp_layers_context *c, struct ddp_conv_plan *plan)
{
    if (plan != NULL)
        c->conv->free_plan(plan);
}

/* The sizes of a convolution. */
struct sizes {
    int out_h, out_w;
    int positions; /* per output image */
    int taps;      /* weights per output channel */
    size_t full;   /* values per output image, all channels */
};

static struct sizes sizes_of(const struct ddp_conv_shape *s)
{
    struct sizes z = {ddp_conv_out_h(s), ddp_conv_out_w(s), 0, s->in_c * s->k * s->k, 0};
    z.positions = z.out_h * z.out_w;
    z.full = (size_t)s->out_c * (size_t)z.positions;
    return z;
}

/* Without a plan the scratch memory holds the unfolded images of a chunk, then the chunk's outputs
 * [out_c][chunk * positions]. */
static size_t col_count(const struct ddp_conv_shape *s, int chunk)
{
    const struct sizes z = sizes_of(s);
    return (size_t)z.taps * (size_t)chunk * (size_t)z.positions;
}

static size_t unfolded_scratch(const struct ddp_conv_shape *s, int chunk)
{
    return col_count(s, chunk) + sizes_of(s).full * (size_t)chunk;
}

static size_t conv_pool_scratch(const struct ddp_conv *layer, int batch)
{
    return layer->plan != NULL ? sizes_of(&layer->shape).full * (size_t)batch
                               : unfolded_scratch(&layer->shape, DDP_MIN(layer->chunk, batch));
}

static size_t conv_scratch(const struct ddp_conv *layer, int batch)
{
    return layer->plan != NULL ? 0 : unfolded_scratch(&layer->shape, DDP_MIN(layer->chunk, batch));
}

static void unfold(struct ddp_layers_context *c, const struct ddp_conv_shape *s, int m,
                   const float *x, struct ddp_view xv, float *col)
{
    const struct sizes z = sizes_of(s);
    const struct ddp_nn_unfold a = {*s, m, z.out_h, z.out_w, x, xv, col};
    c->kernels->unfold(c->stream, (uint32_t)(z.taps * m * z.positions), &a);
}

static void fold(struct ddp_layers_context *c, const struct ddp_conv_shape *s, int m,
                 const float *col, float *dx, struct ddp_view dxv)
{
    const struct sizes z = sizes_of(s);
    const struct ddp_nn_fold a = {*s, m, z.out_h, z.out_w, col, dx, dxv};
    c->kernels->fold(c->stream, (uint32_t)(s->in_c * m * s->in_h * s->in_w), &a);
}

/* y [out_c][m * positions] = w * col. */
static void product(struct ddp_layers_context *c, const struct ddp_conv_shape *s, int m,
                    const float *w, const float *col, float *y)
{
    const struct sizes z = sizes_of(s);
    const int cols = m * z.positions;
    const struct ddp_gemm g = {false, false, false, s->out_c, cols, z.taps,
                               w,     col,   y,     z.taps,   cols, cols};
    c->gemm(c, &g);
}

/* Backward pass of a chunk: dw += dy * col^T, then dx unless it is NULL. dy [out_c][m * positions].
 * With `first` (the first chunk of the batch) dw = dy * col^T. */
static void product_backward(struct ddp_layers_context *c, const struct ddp_conv_shape *s, int m,
                             bool first, const float *x, struct ddp_view xv, const float *w,
                             const float *dy, float *dw, float *dx, struct ddp_view dxv, float *col)
{
    const struct sizes z = sizes_of(s);
    const int cols = m * z.positions;
    const struct ddp_gemm to_w = {false, true, !first, s->out_c, z.taps, cols,
                                  dy,    col,  dw,     cols,     cols,   z.taps};
    const struct ddp_gemm to_col = {true, false, false, z.taps, cols, s->out_c,
                                    w,    dy,    col,   z.taps, cols, cols};
    unfold(c, s, m, x, xv, col);
    c->gemm(c, &to_w);
    if (dx == NULL)
        return;
    /* The unfolded images are no longer needed, so their gradient overwrites them. */
    c->gemm(c, &to_col);
    fold(c, s, m, col, dx, dxv);
}

static void clear_gradients(struct ddp_layers_context *c, const struct ddp_conv_shape *s, float *dw,
                            float *db)
{
    const struct ddp_stream_ops *streams = c->device->streams;
    const size_t weights = (size_t)s->out_c * (size_t)sizes_of(s).taps;
    streams->fill(c->stream, dw, 0, weights * sizeof *dw);
    streams->fill(c->stream, db, 0, (size_t)s->out_c * sizeof *db);
}

/* Return the layout of m output images: chunk_view() as a product writes them, image_view() as a
 * library writes them. */
static struct ddp_view chunk_view(const struct sizes *z, int m)
{
    return (struct ddp_view){(size_t)m * (size_t)z->positions, (size_t)z->positions};
}
static struct ddp_view image_view(const struct sizes *z)
{
    return (struct ddp_view){(size_t)z->positions, z->full};
}

/* Pools m images. `out` and `which` point to the values of the first image. */
static void pool(const struct ddp_conv *layer, int m, const float *y, struct ddp_view yv,
                 const float *b, float *out, struct ddp_view outv, uint8_t *which)
{
    const struct sizes z = sizes_of(&layer->shape);
    const struct ddp_nn_pool a = {m, z.out_h, z.out_w, y, b, yv, outv, out, which};
    layer->context->kernels->pool(layer->context->stream, (uint32_t)(z.full * (size_t)m / 4), &a);
}

static void unpool(const struct ddp_conv *layer, int m, const float *dout, struct ddp_view doutv,
                   const uint8_t *which, float *dy, struct ddp_view dyv)
{
    const struct sizes z = sizes_of(&layer->shape);
    const struct ddp_nn_unpool a = {m, z.out_h, z.out_w, dout, which, doutv, dyv, dy};
    layer->context->kernels->unpool(layer->context->stream, (uint32_t)(z.full * (size_t)m / 4), &a);
}

static void conv_pool_forward(const struct ddp_conv *layer, int n, const float *x,
                              struct ddp_view xv, const float *w, const float *b, float *out,
                              struct ddp_view outv, uint8_t *which, float *scratch)
{
    struct ddp_layers_context *c = layer->context;
    const struct ddp_conv_shape *s = &layer->shape;
    const struct sizes z = sizes_of(s);
    float *y = scratch + col_count(s, DDP_MIN(layer->chunk, c->batch));
    if (n == 0)
        return;
    if (layer->plan != NULL) {
        c->conv->forward(c, layer->plan, n, x, w, scratch);
        pool(layer, n, scratch, image_view(&z), b, out, outv, which);
        return;
    }
    for (int first = 0; first < n; first += layer->chunk) {
        const int m = DDP_MIN(layer->chunk, n - first);
        unfold(c, s, m, x + (size_t)first * xv.image, xv, scratch);
        product(c, s, m, w, scratch, y);
        pool(layer, m, y, chunk_view(&z, m), b, out + (size_t)first * outv.image, outv,
             which + (size_t)first * outv.image);
    }
}

static void bias_gradient(const struct ddp_conv *layer, int n, const float *dout,
                          struct ddp_view doutv, const uint8_t *which, float *db)
{
    struct ddp_layers_context *c = layer->context;
    const struct sizes z = sizes_of(&layer->shape);
    const uint32_t plane = (uint32_t)z.positions / 4;
    const struct ddp_nn_pool_sum sum = {plane, doutv, dout, which, db};
    c->kernels->pool_sum(c->stream, (uint32_t)layer->shape.out_c, plane * (uint32_t)n, &sum,
                         c->parts);
}

static void conv_pool_backward(const struct ddp_conv *layer, int n, const float *x,
                               struct ddp_view xv, const float *w, const float *dout,
                               struct ddp_view doutv, const uint8_t *which, float *dw, float *db,
                               float *dx, struct ddp_view dxv, float *scratch)
{
    struct ddp_layers_context *c = layer->context;
    const struct ddp_conv_shape *s = &layer->shape;
    const struct sizes z = sizes_of(s);
    float *dy = scratch + col_count(s, DDP_MIN(layer->chunk, c->batch));
    if (n == 0) {
        clear_gradients(c, s, dw, db);
        return;
    }
    bias_gradient(layer, n, dout, doutv, which, db);
    if (layer->plan != NULL) {
        unpool(layer, n, dout, doutv, which, scratch, image_view(&z));
        c->conv->backward_weights(c, layer->plan, n, x, scratch, dw);
        if (dx != NULL)
            c->conv->backward_data(c, layer->plan, n, w, scratch, dx);
        return;
    }
    for (int first = 0; first < n; first += layer->chunk) {
        const int m = DDP_MIN(layer->chunk, n - first);
        unpool(layer, m, dout + (size_t)first * doutv.image, doutv,
               which + (size_t)first * doutv.image, dy, chunk_view(&z, m));
        product_backward(c, s, m, first == 0, x + (size_t)first * xv.image, xv, w, dy, dw,
                         dx != NULL ? dx + (size_t)first * dxv.image : NULL, dxv, scratch);
    }
}

static void conv_forward(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                         const float *w, const float *b, float *y, float *scratch)
{
    struct ddp_layers_context *c = layer->context;
    const struct ddp_conv_shape *s = &layer->shape;
    const struct sizes z = sizes_of(s);
    float *part = scratch + col_count(s, DDP_MIN(layer->chunk, c->batch));
    struct ddp_nn_move add_bias = {(uint32_t)n,    (uint32_t)z.positions, y, b,
                                   image_view(&z), image_view(&z),        y};
    if (n == 0)
        return;
    if (layer->plan != NULL) {
        c->conv->forward(c, layer->plan, n, x, w, y);
        c->kernels->move(c->stream, (uint32_t)(z.full * (size_t)n), &add_bias);
        return;
    }
    for (int first = 0; first < n; first += layer->chunk) {
        const int m = DDP_MIN(layer->chunk, n - first);
        unfold(c, s, m, x + (size_t)first * xv.image, xv, scratch);
        product(c, s, m, w, scratch, part);
        add_bias.n = (uint32_t)m;
        add_bias.from = part;
        add_bias.from_view = chunk_view(&z, m);
        add_bias.to = y + z.full * (size_t)first;
        c->kernels->move(c->stream, (uint32_t)(z.full * (size_t)m), &add_bias);
    }
}

static void conv_backward(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                          const float *w, const float *dy, float *dw, float *db, float *dx,
                          struct ddp_view dxv, float *scratch)
{
    struct ddp_layers_context *c = layer->context;
    const struct ddp_conv_shape *s = &layer->shape;
    const struct sizes z = sizes_of(s);
    float *part = scratch + col_count(s, DDP_MIN(layer->chunk, c->batch));
    const struct ddp_nn_channel_sum sum = {(uint32_t)z.positions, image_view(&z), dy, db};
    if (n == 0) {
        clear_gradients(c, s, dw, db);
        return;
    }
    c->kernels->channel_sum(c->stream, (uint32_t)s->out_c, (uint32_t)(n * z.positions), &sum,
                            c->parts);
    if (layer->plan != NULL) {
        c->conv->backward_weights(c, layer->plan, n, x, dy, dw);
        if (dx != NULL)
            c->conv->backward_data(c, layer->plan, n, w, dy, dx);
        return;
    }
    for (int first = 0; first < n; first += layer->chunk) {
        const int m = DDP_MIN(layer->chunk, n - first);
        const struct ddp_nn_move collect = {
            (uint32_t)m, (uint32_t)z.positions, dy + z.full * (size_t)first,
            NULL,        image_view(&z),        chunk_view(&z, m),
            part};
        c->kernels->move(c->stream, (uint32_t)(z.full * (size_t)m), &collect);
        product_backward(c, s, m, first == 0, x + (size_t)first * xv.image, xv, w, part, dw,
                         dx != NULL ? dx + (size_t)first * dxv.image : NULL, dxv, scratch);
    }
}

/* A chunk is at most 64 MiB of unfolded images, enough to keep an accelerator busy. */
#define CHUNK_FLOATS 16777216

const struct ddp_layer_ops ddp_layers_stream_ops = {
    .image_major = true,
    .chunk_floats = CHUNK_FLOATS,
    .plan_conv = plan_conv,
    .free_plan = free_plan,
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
