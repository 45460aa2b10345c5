/* Convolution with pooling, the fully connected layer and the loss on the CPU.
 *
 * A chunk of m images is unfolded into col [in_c*k*k][m*positions], images side by side. One
 * product then convolves the whole chunk. The result is y [out_c][m*positions]. */
#include "model/layers.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/blas.h"

static int out_h(const struct ddp_conv_shape *s)
{
    return s->in_h - s->k + 1;
}

static int out_w(const struct ddp_conv_shape *s)
{
    return s->in_w - s->k + 1;
}

/* Number of weights per output channel, the inner dimension of the product. */
static int taps(const struct ddp_conv_shape *s)
{
    return s->in_c * s->k * s->k;
}

static size_t col_count(const struct ddp_conv_pool *layer)
{
    const struct ddp_conv_shape *s = &layer->shape;
    return (size_t)taps(s) * (size_t)layer->chunk * (size_t)(out_h(s) * out_w(s));
}

size_t ddp_conv_pool_scratch(const struct ddp_conv_pool *layer)
{
    const struct ddp_conv_shape *s = &layer->shape;
    const size_t forward =
        col_count(layer) + (size_t)s->out_c * (size_t)layer->chunk * (size_t)(out_h(s) * out_w(s));
    return DDP_MAX(forward, ddp_pool_grad_scratch(s));
}

void ddp_conv_pool_forward(const struct ddp_conv_pool *layer, int n, const float *x,
                           struct ddp_view xv, const float *w, const float *b, float *out,
                           struct ddp_view outv, uint8_t *which, float *scratch)
{
    const struct ddp_conv_shape *s = &layer->shape;
    const int positions = out_h(s) * out_w(s), k = taps(s);
    float *col = scratch, *y = scratch + col_count(layer);
    for (int first = 0; first < n; first += layer->chunk) {
        int m = DDP_MIN(layer->chunk, n - first), cols = m * positions;
        layer->kernels->unfold(s, m, x + (size_t)first * xv.image, xv, col);
        ddp_sgemm(0, 0, s->out_c, cols, k, 1.0f, w, k, col, cols, 0.0f, y, cols);
        layer->kernels->bias_relu_pool(s->out_c, m, out_h(s), out_w(s), y, b,
                                       out + (size_t)first * outv.image, outv, which);
        which += (size_t)s->out_c * (size_t)cols / 4;
    }
}

void ddp_conv_pool_backward(const struct ddp_conv_pool *layer, int n, const float *x,
                            struct ddp_view xv, const float *w, const float *dout,
                            struct ddp_view doutv, const uint8_t *which, float *dw, float *db,
                            float *dx, struct ddp_view dxv, float *scratch)
{
    layer->kernels->pool_grad(&layer->shape, n, layer->chunk, x, xv, w, dout, doutv, which, dw, db,
                              dx, dxv, scratch);
}

void ddp_linear_forward(const struct ddp_linear *layer, int n, const float *x, const float *w,
                        const float *b, float *y)
{
    ddp_sgemm(0, 1, n, layer->out, layer->in, 1.0f, x, layer->in, w, layer->in, 0.0f, y,
              layer->out);
    layer->kernels->bias(n, layer->out, b, layer->relu, y);
}

void ddp_linear_backward(const struct ddp_linear *layer, int n, const float *x, const float *w,
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

void ddp_softmax_loss(int n, int classes, const float *logits, const uint8_t *labels, float scale,
                      double *loss_sum, int *correct, float *d)
{
    double loss = 0.0;
    int hits = 0;
    for (int i = 0; i < n; i++, logits += classes) {
        int best = 0;
        double sum = 0.0;
        for (int c = 1; c < classes; c++)
            if (logits[c] > logits[best])
                best = c;
        double top = logits[best];
        for (int c = 0; c < classes; c++)
            sum += exp((double)logits[c] - top);
        /* -log(softmax). Subtracting the largest logit first avoids overflow. */
        loss += log(sum) + top - (double)logits[labels[i]];
        hits += best == labels[i];
        if (!d)
            continue;
        for (int c = 0; c < classes; c++) {
            double p = exp((double)logits[c] - top) / sum;
            d[c] = (float)((double)scale * (p - (c == labels[i] ? 1.0 : 0.0)));
        }
        d += classes;
    }
    *loss_sum = loss;
    *correct = hits;
}
