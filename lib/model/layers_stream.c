/* The layers on a stream, except for convolutions. */
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

void ddp_stream_batch_norm_forward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                   const float *gamma, const float *beta, float *running,
                                   float *saved, float *y)
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

void ddp_stream_batch_norm_evaluate(const struct ddp_batch_norm *layer, size_t count,
                                    const float *x, const float *gamma, const float *beta,
                                    const float *running, float *saved, float *y)
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

/* Unlike the CPU's function, this one does not change dy: the kernels apply ReLU by reading y. */
void ddp_stream_batch_norm_backward(const struct ddp_batch_norm *layer, size_t count,
                                    const float *x, const float *y, float *dy, float *saved,
                                    float *dgamma, float *dbeta, float *dx)
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

void ddp_stream_linear_forward(const struct ddp_linear *layer, int n, const float *x,
                               const float *w, const float *b, float *y)
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

void ddp_stream_linear_backward(const struct ddp_linear *layer, int n, const float *x,
                                const float *w, const float *y, float *dy, float *dw, float *db,
                                float *dx)
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

void ddp_stream_softmax_loss(struct ddp_layers_context *c, int n, int classes, const float *logits,
                             const uint8_t *labels, float scale, double *loss_sum, int *correct,
                             float *d)
{
    const struct ddp_nn_loss loss = {classes, logits, labels, scale, c->each, c->hit, d};
    c->kernels->loss(c->stream, (uint32_t)n, &loss);
    c->kernels->tally(c->stream, (uint32_t)n, c->each, c->hit, loss_sum, correct);
}

void ddp_stream_add(struct ddp_layers_context *c, size_t count, const float *a, float *y)
{
    const struct ddp_nn_add sum = {a, y};
    c->kernels->add(c->stream, (uint32_t)count, &sum);
}

void ddp_stream_copy(struct ddp_layers_context *c, size_t count, const float *from, float *to)
{
    c->device->streams->copy(c->stream, to, from, count * sizeof *to);
}

void ddp_stream_reorder(struct ddp_layers_context *c, int channels, int n, int plane, bool back,
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

void ddp_stream_gather(struct ddp_layers_context *c, const uint8_t *pixels, const uint8_t *labels,
                       size_t each, const uint32_t *index, size_t first, int n, float *x,
                       uint8_t *label)
{
    const struct ddp_nn_gather gather = {pixels,         labels, index, (uint32_t)first,
                                         (uint32_t)each, x,      label};
    c->kernels->gather(c->stream, (uint32_t)n * (uint32_t)each, &gather);
}
