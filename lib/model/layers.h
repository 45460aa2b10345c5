/* Layers: what models are made of, on plain f32 arrays that the caller owns.
 *
 * A layer keeps no state: the shape, the arrays and the scratch are the model's. User: net.c, which
 * strings them together. The functions here run on the CPU (layers_*.c: CBLAS for the products,
 * nn_kernels.h for the rest) after ddp_blas_load(). Gradients of parameters are written, not added.
 * Deterministic, and, except for the products, equal at every SIMD level. What they do not do:
 * allocate, fail, communicate. */
#ifndef DDP_MODEL_LAYERS_H
#define DDP_MODEL_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "model/nn_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Convolution, bias, ReLU and 2 x 2 max pool of stride 2 as one layer: pooling first lets bias and
 * ReLU touch a quarter of the values (max and ReLU commute with adding a constant). The batch is
 * worked off in chunks of `chunk` images, so that the unfolded images stay in the L2 cache. The way
 * back multiplies only what a gradient has passed the pool to (nn_pool_grad.inc.h). w
 * [out_c][in_c][k][k], b [out_c]. */
struct ddp_conv_pool {
    struct ddp_conv_shape shape;
    int chunk;
    const struct ddp_nn_kernels *kernels;
};
/* Elements of scratch its calls need. */
size_t ddp_conv_pool_scratch(const struct ddp_conv_pool *layer);
/* out: [out_c] x [n] images of [out_h/2][out_w/2]; which: one byte for each, for backward, chunk by
 * chunk. */
void ddp_conv_pool_forward(const struct ddp_conv_pool *layer, int n, const float *x,
                           struct ddp_view xv, const float *w, const float *b, float *out,
                           struct ddp_view outv, uint8_t *which, float *scratch);
/* dw, db written. dx: as x, written, or NULL for a first layer. */
void ddp_conv_pool_backward(const struct ddp_conv_pool *layer, int n, const float *x,
                            struct ddp_view xv, const float *w, const float *dout,
                            struct ddp_view doutv, const uint8_t *which, float *dw, float *db,
                            float *dx, struct ddp_view dxv, float *scratch);

/* Convolution and bias, any stride and padding. w [out_c][in_c][k][k], b [out_c]; the output lies
 * channel by channel, [out_c][n][out_h][out_w], as batch normalisation and the next convolution
 * want it. Chunks: as above. */
struct ddp_conv {
    struct ddp_conv_shape shape;
    int chunk;
    const struct ddp_nn_kernels *kernels;
};
int ddp_conv_out_h(const struct ddp_conv_shape *s);
int ddp_conv_out_w(const struct ddp_conv_shape *s);
/* Elements of scratch its calls need. */
size_t ddp_conv_scratch(const struct ddp_conv *layer);
void ddp_conv_forward(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                      const float *w, const float *b, float *y, float *scratch);
/* dw, db written. dx: as x, written, or NULL for a first layer. */
void ddp_conv_backward(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                       const float *w, const float *dy, float *dw, float *db, float *dx,
                       struct ddp_view dxv, float *scratch);

/* Batch normalisation, with relu also max(0, .), of x [channels][count]: count is images times
 * positions. Epsilon 1e-5. gamma, beta [channels]. */
struct ddp_batch_norm {
    int channels;
    int relu;
    const struct ddp_nn_kernels *kernels;
};
/* Of what a forward pass leaves for its backward pass: floats a channel. */
#define DDP_BATCH_NORM_SAVED 5
/* By the batch's own mean and (biased) variance. running [2 * channels], means then variances: each
 * becomes 0.9 of itself and 0.1 of the batch's, the variance biased too (needle's rule; PyTorch's
 * is unbiased). saved: DDP_BATCH_NORM_SAVED * channels. count 0: nothing happens. */
void ddp_batch_norm_forward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                            const float *gamma, const float *beta, float *running, float *saved,
                            float *y);
/* By the running statistics. saved: overwritten. */
void ddp_batch_norm_evaluate(const struct ddp_batch_norm *layer, size_t count, const float *x,
                             const float *gamma, const float *beta, const float *running,
                             float *saved, float *y);
/* Of a forward pass. dy [channels][count] is changed (cut where ReLU was). */
void ddp_batch_norm_backward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                             const float *y, float *dy, float *saved, float *dgamma, float *dbeta,
                             float *dx);

/* Fully connected: y [n][out] = x [n][in] w^T + b, w [out][in]; with relu: max(0, .). */
struct ddp_linear {
    int in, out;
    int relu;
    const struct ddp_nn_kernels *kernels;
};
void ddp_linear_forward(const struct ddp_linear *layer, int n, const float *x, const float *w,
                        const float *b, float *y);
/* y: what forward gave. dy [n][out] is changed (cut where ReLU was). db before dw before dx; dx
 * [n][in] or NULL. */
void ddp_linear_backward(const struct ddp_linear *layer, int n, const float *x, const float *w,
                         const float *y, float *dy, float *dw, float *db, float *dx);

/* Softmax and cross entropy of logits [n][classes] against labels [n]. *loss_sum: sum of the n
 * losses, in double; *correct: how often the first largest logit is the label. d [n][classes] =
 * scale * d loss_sum / d logits, or NULL; may be the same array as logits. */
void ddp_softmax_loss(int n, int classes, const float *logits, const uint8_t *labels, float scale,
                      double *loss_sum, int *correct, float *d);

#ifdef __cplusplus
}
#endif
#endif
