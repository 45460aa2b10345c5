/* Layers: the building blocks of models, on plain f32 arrays that the caller owns.
 *
 * The model owns the shape, arrays and scratch memory of its layers, and net.c connects the layers.
 * Each device has a table of layers (struct ddp_layers). The layers of the CPU (layers_cpu.c) use
 * CBLAS for dense matrix products and nn_kernels.h for most other loops. Call ddp_blas_load()
 * before you use the layers of the CPU. Gradients of parameters are written, not added. The
 * functions are deterministic. On the CPU, all functions except the products of CBLAS give the same
 * bits at every SIMD level. Only open() and plan_conv() allocate memory and can fail. No function
 * communicates. */
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

/* ddp_layers_context: state that the layers of a model share. ddp_conv_plan: state of one
 * convolution, on devices that need it. */
struct ddp_layers_context;
struct ddp_conv_plan;

/* A convolution with bias. w [out_c][in_c][k][k], b [out_c]. */
struct ddp_conv {
    struct ddp_conv_shape shape;
    int chunk; /* images that are unfolded and multiplied at once */
    const struct ddp_nn_kernels *kernels;
    struct ddp_layers_context *context; /* not used on the CPU */
    struct ddp_conv_plan *plan;         /* not used on the CPU */
};

/* Batch normalisation of the channels of x, followed by max(0, .) if relu is set. A channel has
 * `count` values, one for each position of each image. Epsilon is 1e-5. gamma, beta [channels]. */
struct ddp_batch_norm {
    int channels;
    int relu;
    const struct ddp_nn_kernels *kernels;
    struct ddp_layers_context *context;
    int plane; /* positions per image; not used on the CPU */
};
/* Floats per channel of the array `saved`. The training pass stores three of them, and the backward
 * pass uses the other two as scratch memory. */
#define DDP_BATCH_NORM_SAVED 5

/* Fully connected layer: y [n][out] = x [n][in] w^T + b, followed by max(0, .) if relu is set.
 * w [out][in]. */
struct ddp_linear {
    int in, out;
    int relu;
    const struct ddp_nn_kernels *kernels;
    struct ddp_layers_context *context;
};

/* How a device computes convolutions: by a library (cuDNN) or as products of unfolded images. AUTO
 * uses the library if it is available. */
enum ddp_conv_way { DDP_CONV_AUTO, DDP_CONV_LIBRARY, DDP_CONV_UNFOLD };
extern const char *const ddp_conv_names[]; /* by enum ddp_conv_way; "auto", "cudnn", "im2col" */

struct ddp_layers_setup {
    const struct ddp_device *device;
    struct ddp_stream *stream;
    int batch;    /* largest number of images per call */
    int channels; /* largest number of channels or outputs of any layer */
    bool tf32;    /* products may round their factors to 11 bits */
    enum ddp_conv_way conv;
};

/* The functions of layers. Except on the CPU, the functions put their work on the context's stream
 * and may return before the work is done. The stream records failures. */
struct ddp_layer_ops {
    bool image_major;    /* layers exchange images as [n][c][h][w]; otherwise as [c][n][h][w],
                            except before and after a LINEAR layer */
    bool fixed_chunks;   /* use the model's chunk sizes if the model gives any */
    size_t chunk_floats; /* limit for the unfolded images of a chunk, in floats */
    /* Optional. Creates the state of one convolution, such as cuDNN descriptors. *out becomes NULL
     * if the convolution needs no such state. */
    int (*plan_conv)(struct ddp_layers_context *c, const struct ddp_conv_shape *shape,
                     struct ddp_conv_plan **out, struct ddp_err *err);
    void (*free_plan)(struct ddp_layers_context *c, struct ddp_conv_plan *plan);
    /* Return the floats of scratch memory that a layer needs for calls with up to `batch` images.
     */
    size_t (*conv_pool_scratch)(const struct ddp_conv *layer, int batch);
    size_t (*conv_scratch)(const struct ddp_conv *layer, int batch);

    /* One layer that consists of a convolution (stride 1, no padding), bias, ReLU and 2 x 2 max
     * pooling (stride 2). Pooling runs before bias and ReLU, which then process a quarter of the
     * values. The result is the same, because max commutes with bias and ReLU. On the CPU images
     * are unfolded (im2col) and multiplied in chunks, so that an unfolded chunk stays in the L2
     * cache. `out` receives n images of [out_c][out_h/2][out_w/2] in the layout of outv. `which`
     * receives one byte per output value for the backward pass. */
    void (*conv_pool_forward)(const struct ddp_conv *layer, int n, const float *x,
                              struct ddp_view xv, const float *w, const float *b, float *out,
                              struct ddp_view outv, uint8_t *which, float *scratch);
    /* Writes dw and db, and dx in the layout of dxv. dx may be NULL for the first layer. The CPU
     * multiplies only values that have a gradient (nn_pool_grad.inc.h). */
    void (*conv_pool_backward)(const struct ddp_conv *layer, int n, const float *x,
                               struct ddp_view xv, const float *w, const float *dout,
                               struct ddp_view doutv, const uint8_t *which, float *dw, float *db,
                               float *dx, struct ddp_view dxv, float *scratch);
    /* Convolution and bias with any stride and padding. On the CPU the output is stored channel by
     * channel, [out_c][n][out_h][out_w], as batch normalisation and the next convolution read it.
     */
    void (*conv_forward)(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                         const float *w, const float *b, float *y, float *scratch);
    /* Writes dw and db, and dx in the layout of dxv. dx may be NULL for the first layer. */
    void (*conv_backward)(const struct ddp_conv *layer, int n, const float *x, struct ddp_view xv,
                          const float *w, const float *dy, float *dw, float *db, float *dx,
                          struct ddp_view dxv, float *scratch);
    /* Training pass: normalises by the mean and the biased variance of the batch. `running` holds
     * one running mean per channel, then one running variance per channel. Each running value
     * becomes 0.9 times its old value plus 0.1 times the value of the batch. The running variance
     * is biased too, as in needle (PyTorch's is unbiased). `saved` has DDP_BATCH_NORM_SAVED *
     * channels floats. Does nothing if count is 0. */
    void (*batch_norm_forward)(const struct ddp_batch_norm *layer, size_t count, const float *x,
                               const float *gamma, const float *beta, float *running, float *saved,
                               float *y);
    /* Evaluation pass: normalises by the running statistics. Overwrites `saved`. */
    void (*batch_norm_evaluate)(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                const float *gamma, const float *beta, const float *running,
                                float *saved, float *y);
    /* Backward pass of batch_norm_forward(). May set dy to 0 where ReLU set y to 0. */
    void (*batch_norm_backward)(const struct ddp_batch_norm *layer, size_t count, const float *x,
                                const float *y, float *dy, float *saved, float *dgamma,
                                float *dbeta, float *dx);
    void (*linear_forward)(const struct ddp_linear *layer, int n, const float *x, const float *w,
                           const float *b, float *y);
    /* y is the output of the forward pass. Sets dy [n][out] to 0 where ReLU set y to 0. Writes db,
     * then dw, then dx [n][in]. dx may be NULL. */
    void (*linear_backward)(const struct ddp_linear *layer, int n, const float *x, const float *w,
                            const float *y, float *dy, float *dw, float *db, float *dx);
    /* Softmax and cross entropy of logits [n][classes] against labels [n]. *loss_sum receives the
     * sum of the n losses. *correct receives the number of images whose largest logit is that of
     * the label. If several logits are equally large, the first of them counts. d [n][classes]
     * receives `scale` times the gradient of the loss sum with respect to the logits. d may be
     * NULL, or the same array as logits. */
    void (*softmax_loss)(struct ddp_layers_context *c, int n, int classes, const float *logits,
                         const uint8_t *labels, float scale, double *loss_sum, int *correct,
                         float *d);
    /* add: y += a. copy: to = from. */
    void (*add)(struct ddp_layers_context *c, size_t count, const float *a, float *y);
    void (*copy)(struct ddp_layers_context *c, size_t count, const float *from, float *to);
    /* Copies [channels][n][plane] to [n][channels][plane], or the other way round if `back`. */
    void (*reorder)(struct ddp_layers_context *c, int channels, int n, int plane, bool back,
                    const float *from, float *to);
    /* Copies n images of a data set, divided by 255, into x [n][each], and their labels into label
     * [n]. The set has pixels [][each] and labels []. Image i of x is image number index[first + i]
     * of the set, or number first + i if index is NULL. All arrays lie in memory of the device. */
    void (*gather)(struct ddp_layers_context *c, const uint8_t *pixels, const uint8_t *labels,
                   size_t each, const uint32_t *index, size_t first, int n, float *x,
                   uint8_t *label);
};

/* The layers of a device. */
struct ddp_layers {
    const char *device;           /* name of the ddp_device */
    const char *(*library)(void); /* such as "cuBLAS 13.1.0, cuDNN 9.19.0"; "": none */
    int (*open)(const struct ddp_layers_setup *setup, struct ddp_layers_context **out,
                struct ddp_err *err);
    void (*close)(struct ddp_layers_context *c);
    const struct ddp_layer_ops *ops; /* NULL if open() always fails */
};

const struct ddp_layers *const *ddp_layers_all(void); /* NULL-terminated */
/* Returns the layers of a device, or NULL if the device has no layers. */
const struct ddp_layers *ddp_layers_find(const char *device);
extern const struct ddp_layers ddp_layers_cpu, ddp_layers_cuda;

#ifdef __cplusplus
}
#endif
#endif
