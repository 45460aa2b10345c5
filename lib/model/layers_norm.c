/* Batch normalisation (Ioffe & Szegedy 2015) on the CPU. Each channel is normalised over its images
 * and positions. */
#include "model/layers.h"

#include <math.h>
#include <string.h>

#define EPSILON  1e-5f
#define MOMENTUM 0.1f

static float inverse_deviation(float variance)
{
    return 1.0f / sqrtf(variance + EPSILON);
}

void ddp_batch_norm_forward(const struct ddp_batch_norm *layer, size_t count, const float *x,
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
        running[c] = (1.0f - MOMENTUM) * running[c] + MOMENTUM * mean[c];
        running[channels + c] = (1.0f - MOMENTUM) * running[channels + c] + MOMENTUM * variance;
        inverse[c] = inverse_deviation(variance);
        scale[c] = gamma[c] * inverse[c];
    }
    layer->kernels->normalize(channels, count, x, mean, scale, beta, layer->relu, y);
}

void ddp_batch_norm_evaluate(const struct ddp_batch_norm *layer, size_t count, const float *x,
                             const float *gamma, const float *beta, const float *running,
                             float *saved, float *y)
{
    const int channels = layer->channels;
    for (int c = 0; c < channels; c++)
        saved[c] = gamma[c] * inverse_deviation(running[channels + c]);
    layer->kernels->normalize(channels, count, x, running, saved, beta, layer->relu, y);
}

void ddp_batch_norm_backward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                             const float *y, float *dy, float *saved, float *dgamma, float *dbeta,
                             float *dx)
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
    /* dx = scale * (dy - mean of dy - x^ * mean of dy * x^), with x^ = (x - mean) * inverse. */
    for (int c = 0; c < channels; c++) {
        dgamma[c] *= inverse[c];
        a[c] = dbeta[c] / (float)count;
        b[c] = dgamma[c] * inverse[c] / (float)count;
    }
    layer->kernels->norm_backward(channels, count, x, dy, mean, scale, a, b, dx);
}
