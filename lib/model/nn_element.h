/* The arithmetic of the layers on a stream, written once, one element at a time.
 *
 * kernels_nn.cu uses this header for the kernels of device cuda, and nn_stream_cpu.c for the
 * kernels of CPU streams. There are two kinds of kernels. A *map* computes element i of an array. A
 * *sum* adds the terms of a row. Each kernel consists of a struct of arguments and of functions
 * that take this struct. The callers loop over the elements. Arrays have fewer than 2^31 elements.
 */
#ifndef DDP_MODEL_NN_ELEMENT_H
#define DDP_MODEL_NN_ELEMENT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "device/two_compilers.h"
#include "model/nn_kernels.h"

/* Batch normalisation. */
#define DDP_NORM_EPSILON  1e-5f
#define DDP_NORM_MOMENTUM 0.1f

/* The position of an element of an array [c][n][plane]. */
struct ddp_nn_position {
    uint32_t channel, image, pixel;
};
DDP_BOTH struct ddp_nn_position ddp_nn_position_of(uint32_t i, uint32_t n, uint32_t plane)
{
    struct ddp_nn_position p;
    const uint32_t row = i / plane;
    p.pixel = i - row * plane;
    p.channel = row / n;
    p.image = row - p.channel * n;
    return p;
}
DDP_BOTH size_t ddp_nn_at(struct ddp_view v, struct ddp_nn_position p)
{
    return p.channel * v.channel + p.image * v.image + p.pixel;
}
/* Maps. */

/* Computes element i of col [in_c][k][k][n][out_h][out_w], as unfold() of struct ddp_nn_kernels
 * does. */
struct ddp_nn_unfold {
    struct ddp_conv_shape s;
    int n, out_h, out_w;
    const float *x;
    struct ddp_view xv;
    float *col;
};
DDP_BOTH void ddp_nn_unfold_at(const struct ddp_nn_unfold *a, uint32_t i)
{
    const uint32_t ow = (uint32_t)a->out_w, oh = (uint32_t)a->out_h, k = (uint32_t)a->s.k;
    uint32_t rest = i / ow, image, tap, channel;
    const int out_col = (int)(i - rest * ow), out_row = (int)(rest % oh);
    rest /= oh;
    image = rest % (uint32_t)a->n;
    rest /= (uint32_t)a->n;
    channel = rest / (k * k);
    tap = rest - channel * k * k;
    const int row = out_row * a->s.stride + (int)(tap / k) - a->s.pad;
    const int col = out_col * a->s.stride + (int)(tap % k) - a->s.pad;
    const int inside = row >= 0 && row < a->s.in_h && col >= 0 && col < a->s.in_w;
    a->col[i] =
        inside
            ? a->x[channel * a->xv.channel + image * a->xv.image + (size_t)(row * a->s.in_w + col)]
            : 0.0f;
}

/* Computes element i of dx, counted as in [in_c][n][in_h][in_w], as fold() of struct ddp_nn_kernels
 * does. Adds the taps in order. */
struct ddp_nn_fold {
    struct ddp_conv_shape s;
    int n, out_h, out_w;
    const float *col;
    float *dx;
    struct ddp_view dxv;
};
DDP_BOTH void ddp_nn_fold_at(const struct ddp_nn_fold *a, uint32_t i)
{
    const uint32_t plane = (uint32_t)(a->s.in_h * a->s.in_w),
                   each = (uint32_t)(a->out_h * a->out_w);
    const struct ddp_nn_position p = ddp_nn_position_of(i, (uint32_t)a->n, plane);
    const int y = (int)p.pixel / a->s.in_w, x = (int)p.pixel % a->s.in_w, k = a->s.k;
    float sum = 0.0f;
    for (int ky = 0; ky < k; ky++)
        for (int kx = 0; kx < k; kx++) {
            const int r = y + a->s.pad - ky, c = x + a->s.pad - kx;
            if (r < 0 || c < 0 || r % a->s.stride != 0 || c % a->s.stride != 0 ||
                r / a->s.stride >= a->out_h || c / a->s.stride >= a->out_w)
                continue;
            const size_t tap =
                ((size_t)p.channel * (size_t)k + (size_t)ky) * (size_t)k + (size_t)kx;
            sum += a->col[(tap * (size_t)a->n + p.image) * each +
                          (size_t)(r / a->s.stride * a->out_w + c / a->s.stride)];
        }
    a->dx[ddp_nn_at(a->dxv, p)] = sum;
}

/* Pools window i of [c][n][h/2][w/2], as bias_relu_pool() of struct ddp_nn_kernels does. Unlike in
 * that function, `which` has the layout of out. */
struct ddp_nn_pool {
    int n, h, w;
    const float *y, *bias;
    struct ddp_view yv, outv;
    float *out;
    uint8_t *which;
};
DDP_BOTH void ddp_nn_pool_at(const struct ddp_nn_pool *a, uint32_t i)
{
    const uint32_t ow = (uint32_t)a->w / 2, plane = (uint32_t)a->h / 2 * ow;
    const struct ddp_nn_position p = ddp_nn_position_of(i, (uint32_t)a->n, plane);
    const size_t row = p.pixel / ow, col = p.pixel % ow, w = (size_t)a->w;
    const float *y =
        a->y + p.channel * a->yv.channel + p.image * a->yv.image + 2 * row * w + 2 * col;
    const float v[4] = {y[0], y[1], y[w], y[w + 1]};
    float top = v[0];
    uint8_t best = 0;
    for (int j = 1; j < 4; j++)
        if (v[j] > top) {
            top = v[j];
            best = (uint8_t)j;
        }
    top += a->bias[p.channel];
    a->out[ddp_nn_at(a->outv, p)] = top > 0.0f ? top : 0.0f;
    a->which[ddp_nn_at(a->outv, p)] = top > 0.0f ? best : (uint8_t)DDP_POOL_NONE;
}

/* Backward pass of ddp_nn_pool: writes the four values of window i. */
struct ddp_nn_unpool {
    int n, h, w;
    const float *dout;
    const uint8_t *which;
    struct ddp_view doutv, dyv;
    float *dy;
};
DDP_BOTH void ddp_nn_unpool_at(const struct ddp_nn_unpool *a, uint32_t i)
{
    const uint32_t ow = (uint32_t)a->w / 2, plane = (uint32_t)a->h / 2 * ow;
    const struct ddp_nn_position p = ddp_nn_position_of(i, (uint32_t)a->n, plane);
    const size_t row = p.pixel / ow, col = p.pixel % ow, w = (size_t)a->w;
    const float d = a->dout[ddp_nn_at(a->doutv, p)];
    const int at = a->which[ddp_nn_at(a->doutv, p)];
    float *dy = a->dy + p.channel * a->dyv.channel + p.image * a->dyv.image + 2 * row * w + 2 * col;
    dy[0] = at == 0 ? d : 0.0f;
    dy[1] = at == 1 ? d : 0.0f;
    dy[w] = at == 2 ? d : 0.0f;
    dy[w + 1] = at == 3 ? d : 0.0f;
}

/* y [rows][cols] += bias [cols], followed by max(0, .) if relu is set. */
struct ddp_nn_bias {
    uint32_t cols;
    int relu;
    const float *bias;
    float *y;
};
DDP_BOTH void ddp_nn_bias_at(const struct ddp_nn_bias *a, uint32_t i)
{
    const float v = a->y[i] + a->bias[i % a->cols];
    a->y[i] = a->relu && !(v > 0.0f) ? 0.0f : v;
}

struct ddp_nn_relu_backward {
    const float *y;
    float *dy;
};
DDP_BOTH void ddp_nn_relu_backward_at(const struct ddp_nn_relu_backward *a, uint32_t i)
{
    if (!(a->y[i] > 0.0f))
        a->dy[i] = 0.0f;
}

/* Moves element i of [c][n][plane]: to = from + bias[channel], or to = from if bias is NULL. The
 * arrays `from` and `to` have the layouts from_view and to_view. */
struct ddp_nn_move {
    uint32_t n, plane;
    const float *from, *bias;
    struct ddp_view from_view, to_view;
    float *to;
};
DDP_BOTH void ddp_nn_move_at(const struct ddp_nn_move *a, uint32_t i)
{
    const struct ddp_nn_position p = ddp_nn_position_of(i, a->n, a->plane);
    const float v = a->from[ddp_nn_at(a->from_view, p)];
    a->to[ddp_nn_at(a->to_view, p)] = a->bias ? v + a->bias[p.channel] : v;
}

struct ddp_nn_add {
    const float *a;
    float *y;
};
DDP_BOTH void ddp_nn_add_at(const struct ddp_nn_add *a, uint32_t i)
{
    a->y[i] += a->a[i];
}

/* Computes element i of y [n][channels][plane], as normalize() of struct ddp_nn_kernels does. */
struct ddp_nn_normalize {
    uint32_t channels, plane;
    const float *x, *mean, *scale, *shift;
    int relu;
    float *y;
};
DDP_BOTH void ddp_nn_normalize_at(const struct ddp_nn_normalize *a, uint32_t i)
{
    const uint32_t c = i / a->plane % a->channels;
    const float v = (a->x[i] - a->mean[c]) * a->scale[c] + a->shift[c];
    a->y[i] = a->relu && !(v > 0.0f) ? 0.0f : v;
}

/* Computes scale[c] for a normalisation by the running statistics. */
struct ddp_nn_norm_scale {
    const float *gamma, *variance;
    float *scale;
};
DDP_BOTH void ddp_nn_norm_scale_at(const struct ddp_nn_norm_scale *a, uint32_t c)
{
    a->scale[c] = a->gamma[c] * (1.0f / sqrtf(a->variance[c] + DDP_NORM_EPSILON));
}

/* Computes element i of dx [n][channels][plane], as norm_backward() of struct ddp_nn_kernels does.
 * If y is not NULL, dy counts as 0 where ReLU set y to 0. */
struct ddp_nn_norm_backward {
    uint32_t channels, plane;
    const float *x, *y, *dy, *mean, *scale, *a, *b;
    float *dx;
};
DDP_BOTH void ddp_nn_norm_backward_at(const struct ddp_nn_norm_backward *a, uint32_t i)
{
    const uint32_t c = i / a->plane % a->channels;
    const float dy = a->y && !(a->y[i] > 0.0f) ? 0.0f : a->dy[i];
    a->dx[i] = a->scale[c] * (dy - a->a[c] - a->b[c] * (a->x[i] - a->mean[c]));
}

/* Gathers pixel i of x [n][each] from image index[first + i / each], or from image first + i / each
 * if index is NULL. */
struct ddp_nn_gather {
    const uint8_t *pixels, *labels;
    const uint32_t *index;
    uint32_t first, each;
    float *x;
    uint8_t *label;
};
DDP_BOTH void ddp_nn_gather_at(const struct ddp_nn_gather *a, uint32_t i)
{
    const uint32_t at = i / a->each, pixel = i - at * a->each;
    const uint32_t image = a->index ? a->index[a->first + at] : a->first + at;
    a->x[i] = (float)a->pixels[(size_t)image * a->each + pixel] / 255.0f;
    if (pixel == 0)
        a->label[at] = a->labels[image];
}

/* See softmax_loss() of struct ddp_layer_ops. */
struct ddp_nn_loss {
    int classes;
    const float *logits;
    const uint8_t *labels;
    float scale;
    double *each; /* receives the loss of each image */
    int *hit;     /* receives whether the image was classified correctly */
    float *d;
};
/* Computes the loss of image i, and whether the image was classified correctly (*hit). Writes the
 * image's row of d. */
DDP_BOTH void ddp_nn_loss_of(const struct ddp_nn_loss *a, size_t i, double *loss, int *hit)
{
    const size_t first = i * (size_t)a->classes;
    const float *logits = a->logits + first;
    const int label = a->labels[i];
    int best = 0;
    double sum = 0.0;
    for (int c = 1; c < a->classes; c++)
        if (logits[c] > logits[best])
            best = c;
    const double top = logits[best], own = logits[label];
    for (int c = 0; c < a->classes; c++)
        sum += exp((double)logits[c] - top);
    /* -log(softmax). Subtracting the largest logit first avoids overflow. */
    *loss = log(sum) + top - own;
    *hit = best == label;
    for (int c = 0; a->d && c < a->classes; c++) {
        const double p = exp((double)logits[c] - top) / sum; /* d may be the same array as logits */
        a->d[first + (size_t)c] = (float)((double)a->scale * (p - (c == label ? 1.0 : 0.0)));
    }
}
DDP_BOTH void ddp_nn_loss_at(const struct ddp_nn_loss *a, uint32_t i)
{
    ddp_nn_loss_of(a, i, &a->each[i], &a->hit[i]);
}

/* The sums. nn_stream.h describes the order of the additions. `term` returns term j of a row. `end`
 * computes the result from the sum of the row's `count` terms. */

struct ddp_nn_pair {
    float a, b;
};

/* Returns the index of term j of a channel's sum. The terms are the pixels of the first image, then
 * of the next image, and so on. */
DDP_BOTH size_t ddp_nn_term_at(struct ddp_view v, uint32_t channel, uint32_t j, uint32_t plane)
{
    const uint32_t image = j / plane;
    return channel * v.channel + image * v.image + (j - image * plane);
}

/* out[c] = sum of channel c of the array `a`. */
struct ddp_nn_channel_sum {
    uint32_t plane;
    struct ddp_view view;
    const float *a;
    float *out;
};
DDP_BOTH struct ddp_nn_pair ddp_nn_channel_sum_term(const struct ddp_nn_channel_sum *a, uint32_t c,
                                                    uint32_t j)
{
    const struct ddp_nn_pair p = {a->a[ddp_nn_term_at(a->view, c, j, a->plane)], 0.0f};
    return p;
}
DDP_BOTH void ddp_nn_channel_sum_end(const struct ddp_nn_channel_sum *a, uint32_t c, uint32_t count,
                                     struct ddp_nn_pair sum)
{
    (void)count;
    a->out[c] = sum.a;
}

/* out[c] = sum of the gradients that the pooling windows of channel c pass back. */
struct ddp_nn_pool_sum {
    uint32_t plane;
    struct ddp_view doutv;
    const float *dout;
    const uint8_t *which;
    float *out;
};
DDP_BOTH struct ddp_nn_pair ddp_nn_pool_sum_term(const struct ddp_nn_pool_sum *a, uint32_t c,
                                                 uint32_t j)
{
    const size_t at = ddp_nn_term_at(a->doutv, c, j, a->plane);
    const struct ddp_nn_pair p = {a->which[at] == DDP_POOL_NONE ? 0.0f : a->dout[at], 0.0f};
    return p;
}
DDP_BOTH void ddp_nn_pool_sum_end(const struct ddp_nn_pool_sum *a, uint32_t c, uint32_t count,
                                  struct ddp_nn_pair sum)
{
    (void)count;
    a->out[c] = sum.a;
}

/* out[c] = sum of column c of the array `a` [rows][cols]. */
struct ddp_nn_column_sum {
    uint32_t cols;
    const float *a;
    float *out;
};
DDP_BOTH struct ddp_nn_pair ddp_nn_column_sum_term(const struct ddp_nn_column_sum *a, uint32_t c,
                                                   uint32_t j)
{
    const struct ddp_nn_pair p = {a->a[(size_t)j * a->cols + c], 0.0f};
    return p;
}
DDP_BOTH void ddp_nn_column_sum_end(const struct ddp_nn_column_sum *a, uint32_t c, uint32_t count,
                                    struct ddp_nn_pair sum)
{
    (void)count;
    a->out[c] = sum.a;
}

/* mean[c] = mean of channel c of x. */
struct ddp_nn_mean {
    uint32_t plane;
    struct ddp_view view;
    const float *x;
    float *mean;
};
DDP_BOTH struct ddp_nn_pair ddp_nn_mean_term(const struct ddp_nn_mean *a, uint32_t c, uint32_t j)
{
    const struct ddp_nn_pair p = {a->x[ddp_nn_term_at(a->view, c, j, a->plane)], 0.0f};
    return p;
}
DDP_BOTH void ddp_nn_mean_end(const struct ddp_nn_mean *a, uint32_t c, uint32_t count,
                              struct ddp_nn_pair sum)
{
    a->mean[c] = sum.a / (float)count;
}

/* The variance of a channel about its mean. `end` updates the running statistics (means, then
 * variances) and computes the factors for the normalisation and for its backward pass. */
struct ddp_nn_variance {
    uint32_t plane, channels;
    struct ddp_view view;
    const float *x, *mean, *gamma;
    float *running, *inverse, *scale;
};
DDP_BOTH struct ddp_nn_pair ddp_nn_variance_term(const struct ddp_nn_variance *a, uint32_t c,
                                                 uint32_t j)
{
    const float d = a->x[ddp_nn_term_at(a->view, c, j, a->plane)] - a->mean[c];
    const struct ddp_nn_pair p = {d * d, 0.0f};
    return p;
}
DDP_BOTH void ddp_nn_variance_end(const struct ddp_nn_variance *a, uint32_t c, uint32_t count,
                                  struct ddp_nn_pair sum)
{
    const float variance = sum.a / (float)count, keep = 1.0f - DDP_NORM_MOMENTUM;
    float *running = a->running + c;
    running[0] = keep * running[0] + DDP_NORM_MOMENTUM * a->mean[c];
    running[a->channels] = keep * running[a->channels] + DDP_NORM_MOMENTUM * variance;
    a->inverse[c] = 1.0f / sqrtf(variance + DDP_NORM_EPSILON);
    a->scale[c] = a->gamma[c] * a->inverse[c];
}

/* Sums for the backward pass of batch normalisation. If y is not NULL, dy counts as 0 where ReLU
 * set y to 0. dbeta is the sum of dy. dgamma is the sum of dy * x^, where x^ is the normalised x.
 * The arrays `a` and `b` are inputs of norm_backward. */
struct ddp_nn_norm_sum {
    uint32_t plane;
    struct ddp_view view;
    const float *x, *y, *dy, *mean, *inverse;
    float *dgamma, *dbeta, *a, *b;
};
DDP_BOTH struct ddp_nn_pair ddp_nn_norm_sum_term(const struct ddp_nn_norm_sum *a, uint32_t c,
                                                 uint32_t j)
{
    const size_t at = ddp_nn_term_at(a->view, c, j, a->plane);
    const float dy = a->y && !(a->y[at] > 0.0f) ? 0.0f : a->dy[at];
    const struct ddp_nn_pair p = {dy, dy * (a->x[at] - a->mean[c])};
    return p;
}
DDP_BOTH void ddp_nn_norm_sum_end(const struct ddp_nn_norm_sum *a, uint32_t c, uint32_t count,
                                  struct ddp_nn_pair sum)
{
    const float dgamma = sum.b * a->inverse[c];
    a->dbeta[c] = sum.a;
    a->dgamma[c] = dgamma;
    a->a[c] = sum.a / (float)count;
    a->b[c] = dgamma * a->inverse[c] / (float)count;
}

#endif
