/* Layers: what models are made of, on plain f32 arrays that the caller owns.
 *
 * A layer keeps no state: the shape, the arrays and the scratch are the model's. User: net.c, which
 * strings them together. Each device has a table of them (struct ddp_layers, layers_list.h); the
 * functions named here are the processor's (layers_*.c: CBLAS for the products, nn_kernels.h for
 * the rest), after ddp_blas_load(). Gradients of parameters are written, not added.
 * Deterministic, and, except for the products, equal at every SIMD level. What they do not do:
 * allocate, fail, communicate. */
#ifndef DDP_MODEL_LAYERS_H
#define DDP_MODEL_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"
#include "device/stream.h"
#include "model/nn_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the layers of one model share, and what a convolution keeps, on a device that has such. */
struct ddp_layers_context;
struct ddp_conv_plan;

/* Convolution, bias, ReLU and 2 x 2 max pool of stride 2 as one layer: pooling first lets bias and
 * ReLU touch a quarter of the values (max and ReLU commute with adding a constant). The batch is
 * worked off in chunks of `chunk` images, so that the unfolded images stay in the L2 cache. The way
 * back multiplies only what a gradient has passed the pool to (nn_pool_grad.inc.h). w
 * [out_c][in_c][k][k], b [out_c]. */
struct ddp_conv_pool {
    struct ddp_conv_shape shape;
    int chunk;
    const struct ddp_nn_kernels *kernels;
    struct ddp_layers_context *context; /* this and the next: not the processor's */
    struct ddp_conv_plan *plan;
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
    struct ddp_layers_context *context;
    struct ddp_conv_plan *plan;
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
    struct ddp_layers_context *context;
    int plane; /* positions of an image */
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
    struct ddp_layers_context *context;
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

/* How convolutions are computed on a device: auto is the best there is. */
enum ddp_conv_way { DDP_CONV_AUTO, DDP_CONV_LIBRARY, DDP_CONV_UNFOLD };
const char *ddp_conv_way_name(enum ddp_conv_way way); /* "auto", "cudnn", "im2col" */

struct ddp_layers_setup {
    const struct ddp_device *device;
    struct ddp_stream *stream;
    int batch;    /* most images of a call */
    int channels; /* most channels or outputs of a layer */
    bool tf32;    /* products may round their factors to 11 bits */
    enum ddp_conv_way conv;
};

/* The layers on one device. Functions of the names above mean the same, on arrays of the device;
 * they put their work on the context's stream and may return before it is done; what fails then is
 * kept by the stream. image_major: images lie [n][c][h][w] between layers; else [c][n][h][w],
 * except where a LINEAR layer reads them. chunk_floats: of unfolded images at once; fixed_chunks:
 * but as the model says, where it does. */
struct ddp_layers {
    const char *device;           /* the ddp_device's name */
    const char *(*library)(void); /* "cuDNN 9.19, cuBLAS 13.1"; "" while none is loaded */
    bool image_major;
    bool fixed_chunks;
    size_t chunk_floats;
    int (*open)(const struct ddp_layers_setup *setup, struct ddp_layers_context **out,
                struct ddp_err *err);
    void (*close)(struct ddp_layers_context *c);
    /* *out may become NULL: nothing to keep. NULL: never anything. */
    int (*plan_conv)(struct ddp_layers_context *c, const struct ddp_conv_shape *shape,
                     struct ddp_conv_plan **out, struct ddp_err *err);
    void (*free_plan)(struct ddp_layers_context *c, struct ddp_conv_plan *plan);
    /* Elements of scratch that a layer's calls with up to `batch` images need. */
    size_t (*conv_pool_scratch)(const struct ddp_conv_pool *layer, int batch);
    size_t (*conv_scratch)(const struct ddp_conv *layer, int batch);

    void (*conv_pool_forward)(const struct ddp_conv_pool *layer, int n, const float *x,
                              struct ddp_view xv, const float *w, const float *b, float *out,
                              struct ddp_view outv, uint8_t *which, float *scratch);
    void (*conv_pool_backward)(const struct ddp_conv_pool *layer, int n, const float *x,
                               struct ddp_view xv, const float *w, const float *dout,
                               struct ddp_view doutv, const uint8_t *which, float *dw, float *db,
                               float *dx, struct ddp_view dxv, float *scratch);
    void (*conv_forward)(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                         const float *w, const float *b, float *y, float *scratch);
    void (*conv_backward)(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                          const float *w, const float *dy, float *dw, float *db, float *dx,
                          struct ddp_view dxv, float *scratch);
    void (*batch_norm_forward)(const struct ddp_batch_norm *layer, size_t count, const float *x,
                               const float *gamma, const float *beta, float *running, float *saved,
                               float *y);
    void (*batch_norm_evaluate)(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                const float *gamma, const float *beta, const float *running,
                                float *saved, float *y);
    void (*batch_norm_backward)(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                const float *y, float *dy, float *saved, float *dgamma,
                                float *dbeta, float *dx);
    void (*linear_forward)(const struct ddp_linear *layer, int n, const float *x, const float *w,
                           const float *b, float *y);
    void (*linear_backward)(const struct ddp_linear *layer, int n, const float *x, const float *w,
                            const float *y, float *dy, float *dw, float *db, float *dx);
    void (*softmax_loss)(struct ddp_layers_context *c, int n, int classes, const float *logits,
                         const uint8_t *labels, float scale, double *loss_sum, int *correct,
                         float *d);
    /* y += a; to = from. */
    void (*add)(struct ddp_layers_context *c, size_t count, const float *a, float *y);
    void (*copy)(struct ddp_layers_context *c, size_t count, const float *from, float *to);
    /* [channels][n][plane] to [n][channels][plane], or (back) the other way round. */
    void (*reorder)(struct ddp_layers_context *c, int channels, int n, int plane, bool back,
                    const float *from, float *to);
    /* x [n] images and label [n]: of the n images index[first + i], or first + i (index NULL), of
     * pixels [][each] and labels: all in memory of the device. x: pixels / 255. */
    void (*gather)(struct ddp_layers_context *c, const uint8_t *pixels, const uint8_t *labels,
                   size_t each, const uint32_t *index, size_t first, int n, float *x,
                   uint8_t *label);
};

const struct ddp_layers *const *ddp_layers_all(void); /* NULL-terminated */
/* Those of a device; NULL: it has none. */
const struct ddp_layers *ddp_layers_find(const char *device);
extern const struct ddp_layers ddp_layers_cpu;

#ifdef __cplusplus
}
#endif
#endif
