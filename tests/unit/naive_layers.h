/* Test helper: convolution with stride and padding, batch normalisation, and nets made of them, as
 * naive loops in double. They are written from the definitions, not from the shipped code. NCHW. */
#ifndef DDP_TEST_NAIVE_LAYERS_H
#define DDP_TEST_NAIVE_LAYERS_H

#include "naive_net.h"

struct naive_conv2 {
    int in_c, side, out_c, k, stride, pad; /* square images */
};

static inline int naive_out_side(const struct naive_conv2 *s)
{
    return (s->side + 2 * s->pad - s->k) / s->stride + 1;
}

/* y [n][out_c][o][o] = conv(x) + b. */
static inline void naive_conv2(const struct naive_conv2 *s, int n, const double *x, const double *w,
                               const double *b, double *y)
{
    int o = naive_out_side(s);
    for (int i = 0; i < n; i++)
        for (int oc = 0; oc < s->out_c; oc++)
            for (int r = 0; r < o; r++)
                for (int c = 0; c < o; c++) {
                    /* Only the taps inside the image count. */
                    const int top = r * s->stride - s->pad, left = c * s->stride - s->pad;
                    double sum = b[oc];
                    for (int ic = 0; ic < s->in_c; ic++)
                        for (int kr = top < 0 ? -top : 0; kr < s->k && top + kr < s->side; kr++) {
                            const double *in =
                                x + ((i * s->in_c + ic) * s->side + top + kr) * s->side;
                            const double *tap = w + ((oc * s->in_c + ic) * s->k + kr) * s->k;
                            for (int kc = left < 0 ? -left : 0; kc < s->k && left + kc < s->side;
                                 kc++)
                                sum += in[left + kc] * tap[kc];
                        }
                    y[((i * s->out_c + oc) * o + r) * o + c] = sum;
                }
}

/* y = gamma (x - mean) / sqrt(var + 1e-5) + beta over images and pixels of each channel. */
static inline void naive_norm(int n, int channels, int pixels, int relu, const double *x,
                              const double *gamma, const double *beta, double *y)
{
    for (int c = 0; c < channels; c++) {
        double mean = 0, var = 0;
        for (int i = 0; i < n; i++)
            for (int p = 0; p < pixels; p++)
                mean += x[(i * channels + c) * pixels + p] / (n * pixels);
        for (int i = 0; i < n; i++)
            for (int p = 0; p < pixels; p++)
                var += pow(x[(i * channels + c) * pixels + p] - mean, 2) / (n * pixels);
        for (int i = 0; i < n; i++)
            for (int p = 0; p < pixels; p++) {
                int at = (i * channels + c) * pixels + p;
                double v = gamma[c] * (x[at] - mean) / sqrt(var + 1e-5) + beta[c];
                y[at] = relu && v < 0 ? 0 : v;
            }
    }
}

/* relu(norm(conv(x))). The parameters at *p are weight, bias, gamma, beta; advances *p past them.
 */
static inline double *naive_conv_norm(const struct naive_conv2 *s, int n, const double *x,
                                      const double **p)
{
    int o = naive_out_side(s), taps = s->in_c * s->k * s->k;
    size_t bytes = sizeof(double) * (size_t)(n * s->out_c * o * o);
    double *y = malloc(bytes), *z = malloc(bytes);
    const double *w = *p, *b = w + s->out_c * taps;
    naive_conv2(s, n, x, w, b, y);
    naive_norm(n, s->out_c, o * o, 1, y, b + s->out_c, b + 2 * s->out_c, z);
    *p = b + 3 * s->out_c;
    free(y);
    return z;
}

/* x + f(f(x)), in place. Both layers have shape s, which keeps the shape of the image. */
static inline void naive_residual(const struct naive_conv2 *s, int n, double *x, const double **p)
{
    double *y = naive_conv_norm(s, n, x, p);
    double *z = naive_conv_norm(s, n, y, p);
    for (int i = 0; i < n * s->out_c * s->side * s->side; i++)
        x[i] += z[i];
    free(y), free(z);
}

/* The loss of needle's ResNet-9 at parameters p [431946]: ConvBN(3,16,7,s4) (16,32,3,s2)
 * Res[2x ConvBN(32,32,3)] (32,64,3,s2) (64,128,3,s2) Res[2x ConvBN(128,128,3)] FC 128 ReLU FC 10.
 */
static inline double naive_resnet9(int n, const double *x, const double *p, const uint8_t *labels)
{
    const struct naive_conv2 c1 = {3, 32, 16, 7, 4, 3}, c2 = {16, 8, 32, 3, 2, 1};
    const struct naive_conv2 r1 = {32, 4, 32, 3, 1, 1}, c3 = {32, 4, 64, 3, 2, 1};
    const struct naive_conv2 c4 = {64, 2, 128, 3, 2, 1}, r2 = {128, 1, 128, 3, 1, 1};
    double *a = naive_conv_norm(&c1, n, x, &p);
    double *b = naive_conv_norm(&c2, n, a, &p);
    naive_residual(&r1, n, b, &p);
    double *c = naive_conv_norm(&c3, n, b, &p);
    double *d = naive_conv_norm(&c4, n, c, &p);
    naive_residual(&r2, n, d, &p);
    double *h = malloc(sizeof *h * (size_t)n * 128), *z = malloc(sizeof *z * (size_t)n * 10);
    naive_linear(n, 128, 128, 1, d, p, p + 16384, h);
    naive_linear(n, 128, 10, 0, h, p + 16512, p + 17792, z);
    double loss = naive_loss(n, 10, z, labels);
    free(a), free(b), free(c), free(d), free(h), free(z);
    return loss;
}

/* The loss of MXNet's LeNet at parameters p [60170]: conv 6@5x5 ReLU, pool, conv 16@3x3 ReLU, pool,
 * FC 120 ReLU, FC 84 ReLU, FC 10. */
static inline double naive_lenet(int n, const double *x, const double *p, const uint8_t *labels)
{
    const struct naive_conv c1 = {1, 28, 28, 6, 5}, c2 = {6, 12, 12, 16, 3};
    double *a = malloc(sizeof *a * (size_t)n * 864), *b = malloc(sizeof *b * (size_t)n * 400);
    double *h = malloc(sizeof *h * (size_t)n * 120), *g = malloc(sizeof *g * (size_t)n * 84);
    double *z = malloc(sizeof *z * (size_t)n * 10);
    naive_conv_pool(&c1, n, x, p, p + 150, a);
    naive_conv_pool(&c2, n, a, p + 156, p + 1020, b);
    naive_linear(n, 400, 120, 1, b, p + 1036, p + 49036, h);
    naive_linear(n, 120, 84, 1, h, p + 49156, p + 59236, g);
    naive_linear(n, 84, 10, 0, g, p + 59320, p + 60160, z);
    double loss = naive_loss(n, 10, z, labels);
    free(a), free(b), free(h), free(g), free(z);
    return loss;
}

/* The loss of nnabla's net at parameters p [2060]: conv 1->1 3x3 pad 1 on 1x32x32, affine to 2. */
static inline double naive_nnabla_tiny(int n, const double *x, const double *p,
                                       const uint8_t *labels)
{
    const struct naive_conv2 c1 = {1, 32, 1, 3, 1, 1};
    double *a = malloc(sizeof *a * (size_t)n * 1024), *z = malloc(sizeof *z * (size_t)n * 2);
    naive_conv2(&c1, n, x, p, p + 9, a);
    naive_linear(n, 1024, 2, 0, a, p + 10, p + 2058, z);
    double loss = naive_loss(n, 2, z, labels);
    free(a), free(z);
    return loss;
}

#endif
