/* The loops of the CPU's layers other than dense matrix products, for each SIMD level. All values
 * are f32. A *tap* is one of the k * k positions in the kernel of a convolution.
 *
 * All levels give the same bits, because the terms of a sum are always added in the same order.
 * Sums along a row use 16 partial sums at every level. Nothing here allocates or fails. */
#ifndef DDP_MODEL_NN_KERNELS_H
#define DDP_MODEL_NN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpuinfo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The layout of a batch of images. Image n of channel c begins at element c * channel + n * image,
 * and its pixels [h][w] are contiguous. NCHW: {h*w, c*h*w}; CNHW: {n*h*w, h*w}. */
struct ddp_view {
    size_t channel, image;
};

/* A convolution with a square kernel k x k and zero padding: out = (in + 2 pad - k) / stride + 1.
 * pool_grad assumes stride 1 and no padding, and ignores stride and pad. */
struct ddp_conv_shape {
    int in_c, in_h, in_w, out_c, k;
    int stride, pad;
};
static inline int ddp_conv_out_h(const struct ddp_conv_shape *s)
{
    return (s->in_h + 2 * s->pad - s->k) / s->stride + 1;
}
static inline int ddp_conv_out_w(const struct ddp_conv_shape *s)
{
    return (s->in_w + 2 * s->pad - s->k) / s->stride + 1;
}

/* The value of `which` for a window whose output ReLU set to 0. For other windows `which` is the
 * position of the maximum in the 2 x 2 window, 0..3, row by row. */
#define DDP_POOL_NONE 4

struct ddp_nn_kernels {
    /* y [c][n][h][w], h and w even. For each 2 x 2 window: out [h/2][w/2] = max(0, bias[c] +
     * maximum). `which` [c][n][h/2][w/2] receives the position of the first maximum, or
     * DDP_POOL_NONE. */
    void (*bias_relu_pool)(int c, int n, int h, int w, const float *y, const float *bias,
                           float *out, struct ddp_view outv, uint8_t *which);
    /* y [rows][cols] += bias [cols], followed by max(0, .) if relu is set. */
    void (*bias)(int rows, int cols, const float *bias, int relu, float *y);
    /* dy[i] = y[i] > 0 ? dy[i] : 0. */
    void (*relu_backward)(size_t count, const float *y, float *dy);
    /* sums[r] += sum of row r of the array `a` [rows][cols]. */
    void (*row_sums)(int rows, size_t cols, const float *a, float *sums);
    /* sums[c] = sum of column c of the array `a` [rows][cols]. */
    void (*column_sums)(int rows, int cols, const float *a, float *sums);

    /* unfold (im2col): for each weight and output position, col [in_c][k][k][n][out_h][out_w]
     * receives the pixel of x that the weight multiplies. A pixel may be copied to several elements
     * of col. fold does the reverse. For each pixel it adds the elements of col that belong to the
     * pixel, in the order of the taps. It stores the sum in dx. */
    void (*unfold)(const struct ddp_conv_shape *s, int n, const float *x, struct ddp_view xv,
                   float *col);
    void (*fold)(const struct ddp_conv_shape *s, int n, const float *col, float *dx,
                 struct ddp_view dxv);
    /* y [rows][cols] += bias[rows]. */
    void (*row_bias)(int rows, size_t cols, const float *bias, float *y);
    /* y[i] += a[i]. */
    void (*add)(size_t count, const float *a, float *y);
    /* Computes the mean and the biased variance of each row of x [rows][cols], cols > 0. */
    void (*moments)(int rows, size_t cols, const float *x, float *mean, float *variance);
    /* y = (x - mean[row]) * scale[row] + shift[row], followed by max(0, .) if relu is set. */
    void (*normalize)(int rows, size_t cols, const float *x, const float *mean, const float *scale,
                      const float *shift, int relu, float *y);
    /* sums[row] = sum of dy, products[row] = sum of dy * (x - mean[row]). */
    void (*norm_sums)(int rows, size_t cols, const float *x, const float *dy, const float *mean,
                      float *sums, float *products);
    /* dx = scale[row] * (dy - a[row] - b[row] * (x - mean[row])). */
    void (*norm_backward)(int rows, size_t cols, const float *x, const float *dy, const float *mean,
                          const float *scale, const float *a, const float *b, float *dx);

    /* Backward pass of a convolution followed by bias_relu_pool. Writes the gradients of the
     * weights (dw), the bias (db) and, unless dx is NULL, the input. dout has the layout of doutv.
     * `which` holds one array [c][images][h/2][w/2] per chunk of images, as bias_relu_pool wrote
     * it. scratch has ddp_pool_grad_scratch(s) floats. */
    void (*pool_grad)(const struct ddp_conv_shape *s, int n, int chunk, const float *x,
                      struct ddp_view xv, const float *w, const float *dout, struct ddp_view doutv,
                      const uint8_t *which, float *dw, float *db, float *dx, struct ddp_view dxv,
                      float *scratch);
};

/* Returns the floats of scratch memory that pool_grad needs. All SIMD levels need the same. */
size_t ddp_pool_grad_scratch(const struct ddp_conv_shape *s);

/* Returns the highest SIMD level that the CPU supports and DDPBENCH_SIMD allows. */
enum ddp_simd ddp_nn_simd(void);
/* Returns the kernels of a level, which the CPU must support. Never NULL. */
const struct ddp_nn_kernels *ddp_nn_kernels(enum ddp_simd level);

extern const struct ddp_nn_kernels ddp_nn_kernels_scalar, ddp_nn_kernels_avx2,
    ddp_nn_kernels_avx512;

#ifdef __cplusplus
}
#endif
#endif
