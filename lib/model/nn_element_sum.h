/* The sums among the layers' kernels on a stream, one term at a time. nn_element.h explains
 * kernels, and nn_stream.h the order of the additions. `term` returns term j of a row. `end`
 * computes the result from the sum of the row's `count` terms. */
#ifndef DDP_MODEL_NN_ELEMENT_SUM_H
#define DDP_MODEL_NN_ELEMENT_SUM_H

#include "model/nn_element.h"

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

/* out[c] = sum of channel c of a. */
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

/* out[c] = sum of column c of a [rows][cols]. */
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
 * cut y. dbeta is the sum of dy. dgamma is the sum of dy * x^, where x^ is the normalised x. a and
 * b are inputs of norm_backward. */
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
