/* Layers on a stream. The kernels of nn_stream.h do everything except the products. Convolutions
 * are products of unfolded images (im2col), unless a library computes the convolutions.
 *
 * Layer tables of devices (layers_cuda.c) use this code and provide the products. Images are always
 * [n][c][h][w]. Two steps use our kernels even if a library computes the convolutions. The first is
 * bias, ReLU and pooling, because a single kernel reads the result of the convolution only once and
 * stores one byte per window for the backward pass. The second is batch normalisation, because our
 * running variance is biased and cuDNN's is unbiased. */
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

/* Opens a context. The caller then sets the member gemm. Returns DDP_ENOMEM if memory runs out. */
int ddp_layers_stream_open(const struct ddp_layers_setup *setup,
                           const struct ddp_nn_stream *kernels, struct ddp_layers_context **out,
                           struct ddp_err *err) DDP_MUST_CHECK;
/* Waits for the stream, then frees the context. c may be NULL. */
void ddp_layers_stream_close(struct ddp_layers_context *c);

extern const struct ddp_layer_ops ddp_layers_stream_ops;

#ifdef __cplusplus
}
#endif
#endif
