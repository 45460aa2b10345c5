/* The loops of the layers that are not matrix products, at each SIMD level.
 *
 * For the layers (layers_cblas.c) only. All f32. Each level gives the same bits: an element's sum
 * is always taken in the same order, and sums over elements use 16 fixed lanes. Nothing here
 * allocates or fails. */
#ifndef DDP_MODEL_NN_KERNELS_H
#define DDP_MODEL_NN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpuinfo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where image n of channel c of a batch begins: c * channel + n * image elements in; its pixels
 * [h][w] are contiguous. NCHW: {h*w, c*h*w}; CNHW: {n*h*w, h*w}. */
struct ddp_view {
    size_t channel, image;
};

/* A convolution: square kernel k x k, zeros around; out = (in + 2 pad - k) / stride + 1. im2col,
 * bias_relu_pool and pool_grad have stride 1 and no padding and do not look at either. */
struct ddp_conv_shape {
    int in_c, in_h, in_w, out_c, k;
    int stride, pad;
};

/* What a position of a 2 x 2 window gave its maximum: 0..3 row by row, or none, when ReLU cut it.
 */
#define DDP_POOL_NONE 4

struct ddp_nn_kernels {
    /* col [in_c][k][k][n][out_h][out_w] = the pixel of x that this weight meets there. */
    void (*im2col)(const struct ddp_conv_shape *s, int n, const float *x, struct ddp_view xv,
                   float *col);
    /* y [c][n][h][w], h and w even; out [h/2][w/2] = max(0, bias[c] + largest of the window), the
     * first of equals in which [c][n][h/2][w/2]. */
    void (*bias_relu_pool)(int c, int n, int h, int w, const float *y, const float *bias,
                           float *out, struct ddp_view outv, uint8_t *which);
    /* y [rows][cols] += bias[cols]; with relu also max(0, .). */
    void (*bias)(int rows, int cols, const float *bias, int relu, float *y);
    /* dy[i] = y[i] > 0 ? dy[i] : 0. */
    void (*relu_backward)(size_t count, const float *y, float *dy);
    /* sums[r] += sum of a[r][cols]. */
    void (*row_sums)(int rows, size_t cols, const float *a, float *sums);
    /* sums[c] = sum over rows of a[rows][cols]. */
    void (*column_sums)(int rows, int cols, const float *a, float *sums);

    /* im2col for any stride and padding; and back: dx = for each pixel the sum of what it was
     * copied to, taps in order. */
    void (*unfold)(const struct ddp_conv_shape *s, int n, const float *x, struct ddp_view xv,
                   float *col);
    void (*fold)(const struct ddp_conv_shape *s, int n, const float *col, float *dx,
                 struct ddp_view dxv);
    /* y [rows][cols] += bias[rows]. */
    void (*row_bias)(int rows, size_t cols, const float *bias, float *y);
    /* y[i] += a[i]. */
    void (*add)(size_t count, const float *a, float *y);
    /* Of each row of x [rows][cols], cols > 0: mean, and mean square distance from it. */
    void (*moments)(int rows, size_t cols, const float *x, float *mean, float *variance);
    /* y = (x - mean[row]) * scale[row] + shift[row]; with relu also max(0, .). */
    void (*normalize)(int rows, size_t cols, const float *x, const float *mean, const float *scale,
                      const float *shift, int relu, float *y);
    /* sums[row] = sum of dy, products[row] = sum of dy * (x - mean[row]). */
    void (*norm_sums)(int rows, size_t cols, const float *x, const float *dy, const float *mean,
                      float *sums, float *products);
    /* dx = scale[row] * (dy - a[row] - b[row] * (x - mean[row])). */
    void (*norm_backward)(int rows, size_t cols, const float *x, const float *dy, const float *mean,
                          const float *scale, const float *a, const float *b, float *dx);

    /* From dout [c][n][h/2][w/2] and which, chunk by chunk of images as bias_relu_pool wrote it
     * (each chunk [c][images][h/2][w/2]): gradients of the weights dw and the bias db of the
     * convolution before the pool, and of its input, dx, or NULL. All written. scratch:
     * ddp_pool_grad_scratch(s) floats. */
    void (*pool_grad)(const struct ddp_conv_shape *s, int n, int chunk, const float *x,
                      struct ddp_view xv, const float *w, const float *dout, struct ddp_view doutv,
                      const uint8_t *which, float *dw, float *db, float *dx, struct ddp_view dxv,
                      float *scratch);
};

/* Floats of scratch that pool_grad needs, at every level. */
size_t ddp_pool_grad_scratch(const struct ddp_conv_shape *s);

/* The highest level this processor has and DDPBENCH_SIMD allows. */
enum ddp_simd ddp_nn_simd(void);
/* The kernels of a level, which the processor must have. Never NULL. */
const struct ddp_nn_kernels *ddp_nn_kernels(enum ddp_simd level);

extern const struct ddp_nn_kernels ddp_nn_kernels_scalar, ddp_nn_kernels_avx2,
    ddp_nn_kernels_avx512;

#ifdef __cplusplus
}
#endif
#endif
