/* Test helper: the layers as naive loops in double. They are written from the definitions, not from
 * the shipped code. All arrays are NCHW. */
#ifndef DDP_TEST_NAIVE_NET_H
#define DDP_TEST_NAIVE_NET_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

struct naive_conv {
    int in_c, in_h, in_w, out_c, k;
};

/* out [n][out_c][oh/2][ow/2] = maxpool2(relu(conv(x) + b)); oh = in_h - k + 1. */
static inline void naive_conv_pool(const struct naive_conv *s, int n, const double *x,
                                   const double *w, const double *b, double *out)
{
    int oh = s->in_h - s->k + 1, ow = s->in_w - s->k + 1;
    double *y = malloc(sizeof *y * (size_t)(oh * ow));
    for (int i = 0; i < n; i++)
        for (int o = 0; o < s->out_c; o++) {
            for (int r = 0; r < oh; r++)
                for (int c = 0; c < ow; c++) {
                    double sum = b[o];
                    for (int ic = 0; ic < s->in_c; ic++)
                        for (int kr = 0; kr < s->k; kr++)
                            for (int kc = 0; kc < s->k; kc++)
                                sum +=
                                    x[((i * s->in_c + ic) * s->in_h + r + kr) * s->in_w + c + kc] *
                                    w[((o * s->in_c + ic) * s->k + kr) * s->k + kc];
                    y[r * ow + c] = sum > 0 ? sum : 0;
                }
            for (int r = 0; r < oh / 2; r++)
                for (int c = 0; c < ow / 2; c++) {
                    const double *q = y + 2 * r * ow + 2 * c;
                    double m = fmax(fmax(q[0], q[1]), fmax(q[ow], q[ow + 1]));
                    out[((i * s->out_c + o) * (oh / 2) + r) * (ow / 2) + c] = m;
                }
        }
    free(y);
}

/* y [n][out] = x [n][in] w^T + b, w [out][in]. */
static inline void naive_linear(int n, int in, int out, int relu, const double *x, const double *w,
                                const double *b, double *y)
{
    for (int i = 0; i < n; i++)
        for (int o = 0; o < out; o++) {
            double sum = b[o];
            for (int j = 0; j < in; j++)
                sum += x[i * in + j] * w[o * in + j];
            y[i * out + o] = relu && sum < 0 ? 0 : sum;
        }
}

/* Returns the sum of -log(softmax(logits)[label]). */
static inline double naive_loss(int n, int classes, const double *logits, const uint8_t *labels)
{
    double loss = 0;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int c = 0; c < classes; c++)
            sum += exp(logits[i * classes + c]);
        loss -= log(exp(logits[i * classes + labels[i]]) / sum);
    }
    return loss;
}

/* The loss of SINGA's CNN at parameters p [431080]: conv 1->20 5x5, pool, conv 20->50 5x5, pool, FC
 * 800->500, FC 500->10. The tensors have this order, weight before bias. */
static inline double naive_singa_cnn(int n, const double *x, const double *p, const uint8_t *labels)
{
    const struct naive_conv c1 = {1, 28, 28, 20, 5}, c2 = {20, 12, 12, 50, 5};
    double *p1 = malloc(sizeof *p1 * (size_t)n * 2880), *p2 = malloc(sizeof *p2 * (size_t)n * 800);
    double *h = malloc(sizeof *h * (size_t)n * 500), *z = malloc(sizeof *z * (size_t)n * 10);
    naive_conv_pool(&c1, n, x, p, p + 500, p1);
    naive_conv_pool(&c2, n, p1, p + 520, p + 25520, p2);
    naive_linear(n, 800, 500, 1, p2, p + 25570, p + 425570, h);
    naive_linear(n, 500, 10, 0, h, p + 426070, p + 431070, z);
    double loss = naive_loss(n, 10, z, labels);
    free(p1), free(p2), free(h), free(z);
    return loss;
}

#endif
