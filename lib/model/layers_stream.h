/* Layers on a stream. The kernels of nn_stream.h do everything except the products. Convolutions
 * are products of unfolded images, unless a library computes them.
 *
 * Layer tables of devices (layers_cuda.c) use this code and provide the products. Images are always
 * [n][c][h][w]. Two steps run here even if a library computes the convolutions. Bias, ReLU and
 * pooling are a single kernel, which reads the product only once and stores one byte per window for
 * the backward pass. Batch normalisation uses a biased running variance, but cuDNN computes an
 * unbiased one. */
#ifndef DDP_MODEL_LAYERS_STREAM_H
#define DDP_MODEL_LAYERS_STREAM_H

#include "model/layers.h"
#include "model/nn_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The product C [m][n] = op(A) * op(B), row-major. */
struct ddp_gemm {
    bool ta, tb; /* A, B are transposed */
    bool add;    /* add the product to C instead of overwriting it */
    int m, n, k;
    const float *a, *b;
    float *c;
    int lda, ldb, ldc;
};

/* The convolutions of a library, in NCHW and without bias: y = x * w. dw and dx are written, not
 * added. A plan belongs to one shape, for calls with at most the context's `batch` images. */
struct ddp_conv_library {
    int (*plan)(struct ddp_layers_context *c, const struct ddp_conv_shape *shape,
                struct ddp_conv_plan **out, struct ddp_err *err);
    void (*free_plan)(struct ddp_conv_plan *plan);
    void (*forward)(struct ddp_layers_context *c, struct ddp_conv_plan *plan, int n, const float *x,
                    const float *w, float *y);
    void (*backward_weights)(struct ddp_layers_context *c, struct ddp_conv_plan *plan, int n,
                             const float *x, const float *dy, float *dw);
    void (*backward_data)(struct ddp_layers_context *c, struct ddp_conv_plan *plan, int n,
                          const float *w, const float *dy, float *dx);
    void (*close)(struct ddp_layers_context *c);
};

struct ddp_layers_context {
    const struct ddp_device *device;
    struct ddp_stream *stream;
    const struct ddp_nn_stream *kernels;
    void (*gemm)(struct ddp_layers_context *c, const struct ddp_gemm *g); /* enqueues a product */
    const struct ddp_conv_library *conv; /* NULL: unfold images and multiply */
    void *library;                       /* state of the device's library of products */
    void *conv_state;                    /* state of `conv` */
    int batch;                           /* largest number of images per call */
    bool tf32;
    struct ddp_nn_pair *parts; /* scratch memory for sums, on the device */
    size_t parts_bytes;
    double *each; /* [batch], losses of the images, on the device */
    int *hit;     /* [batch], whether the images were classified correctly, on the device */
};

/* Opens a context. The caller then sets its gemm. Returns DDP_ENOMEM if memory runs out. */
int ddp_layers_stream_open(const struct ddp_layers_setup *setup,
                           const struct ddp_nn_stream *kernels, struct ddp_layers_context **out,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for the stream, then frees the context. c may be NULL. */
void ddp_layers_stream_close(struct ddp_layers_context *c);

/* The functions of struct ddp_layers except for library, open and close. */
int ddp_stream_plan_conv(struct ddp_layers_context *c, const struct ddp_conv_shape *shape,
                         struct ddp_conv_plan **out, struct ddp_err *err);
void ddp_stream_free_plan(struct ddp_layers_context *c, struct ddp_conv_plan *plan);
size_t ddp_stream_conv_pool_scratch(const struct ddp_conv_pool *layer, int batch);
size_t ddp_stream_conv_scratch(const struct ddp_conv *layer, int batch);
void ddp_stream_conv_pool_forward(const struct ddp_conv_pool *layer, int n, const float *x,
                                  struct ddp_view xv, const float *w, const float *b, float *out,
                                  struct ddp_view outv, uint8_t *which, float *scratch);
void ddp_stream_conv_pool_backward(const struct ddp_conv_pool *layer, int n, const float *x,
                                   struct ddp_view xv, const float *w, const float *dout,
                                   struct ddp_view doutv, const uint8_t *which, float *dw,
                                   float *db, float *dx, struct ddp_view dxv, float *scratch);
void ddp_stream_conv_forward(const struct ddp_conv *layer, int n, const float *x,
                             struct ddp_view xv, const float *w, const float *b, float *y,
                             float *scratch);
void ddp_stream_conv_backward(const struct ddp_conv *layer, int n, const float *x,
                              struct ddp_view xv, const float *w, const float *dy, float *dw,
                              float *db, float *dx, struct ddp_view dxv, float *scratch);
void ddp_stream_batch_norm_forward(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                   const float *gamma, const float *beta, float *running,
                                   float *saved, float *y);
void ddp_stream_batch_norm_evaluate(const struct ddp_batch_norm *layer, size_t count,
                                    const float *x, const float *gamma, const float *beta,
                                    const float *running, float *saved, float *y);
void ddp_stream_batch_norm_backward(const struct ddp_batch_norm *layer, size_t count,
                                    const float *x, const float *y, float *dy, float *saved,
                                    float *dgamma, float *dbeta, float *dx);
void ddp_stream_linear_forward(const struct ddp_linear *layer, int n, const float *x,
                               const float *w, const float *b, float *y);
void ddp_stream_linear_backward(const struct ddp_linear *layer, int n, const float *x,
                                const float *w, const float *y, float *dy, float *dw, float *db,
                                float *dx);
void ddp_stream_softmax_loss(struct ddp_layers_context *c, int n, int classes, const float *logits,
                             const uint8_t *labels, float scale, double *loss_sum, int *correct,
                             float *d);
void ddp_stream_add(struct ddp_layers_context *c, size_t count, const float *a, float *y);
void ddp_stream_copy(struct ddp_layers_context *c, size_t count, const float *from, float *to);
void ddp_stream_reorder(struct ddp_layers_context *c, int channels, int n, int plane, bool back,
                        const float *from, float *to);
void ddp_stream_gather(struct ddp_layers_context *c, const uint8_t *pixels, const uint8_t *labels,
                       size_t each, const uint32_t *index, size_t first, int n, float *x,
                       uint8_t *label);

/* A chunk is at most 16M floats of unfolded images (64 MiB), enough to keep an accelerator busy. */
#define DDP_LAYERS_STREAM_FUNCTIONS                                                                \
    .image_major = true, .chunk_floats = 16777216, .plan_conv = ddp_stream_plan_conv,              \
    .free_plan = ddp_stream_free_plan, .conv_pool_scratch = ddp_stream_conv_pool_scratch,          \
    .conv_scratch = ddp_stream_conv_scratch, .conv_pool_forward = ddp_stream_conv_pool_forward,    \
    .conv_pool_backward = ddp_stream_conv_pool_backward, .conv_forward = ddp_stream_conv_forward,  \
    .conv_backward = ddp_stream_conv_backward,                                                     \
    .batch_norm_forward = ddp_stream_batch_norm_forward,                                           \
    .batch_norm_evaluate = ddp_stream_batch_norm_evaluate,                                         \
    .batch_norm_backward = ddp_stream_batch_norm_backward,                                         \
    .linear_forward = ddp_stream_linear_forward, .linear_backward = ddp_stream_linear_backward,    \
    .softmax_loss = ddp_stream_softmax_loss, .add = ddp_stream_add, .copy = ddp_stream_copy,       \
    .reorder = ddp_stream_reorder, .gather = ddp_stream_gather

#ifdef __cplusplus
}
#endif
#endif
