/* Convolution with stride and padding on the CPU. The forward pass unfolds a chunk of images and
 * writes its product to the chunk's columns of the output [out_c][n * positions]. */
#include "model/layers.h"

#include <string.h>

#include "base/mem.h"
#include "model/blas.h"

int ddp_conv_out_h(const struct ddp_conv_shape *s)
{
    return (s->in_h + 2 * s->pad - s->k) / s->stride + 1;
}

int ddp_conv_out_w(const struct ddp_conv_shape *s)
{
    return (s->in_w + 2 * s->pad - s->k) / s->stride + 1;
}

static int taps(const struct ddp_conv_shape *s)
{
    return s->in_c * s->k * s->k;
}

static int positions(const struct ddp_conv_shape *s)
{
    return ddp_conv_out_h(s) * ddp_conv_out_w(s);
}

size_t ddp_conv_scratch(const struct ddp_conv *layer)
{
    return (size_t)taps(&layer->shape) * (size_t)layer->chunk * (size_t)positions(&layer->shape);
}

void ddp_conv_forward(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
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

void ddp_conv_backward(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
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
