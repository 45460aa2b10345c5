/* Models: reference networks. Each model is one file with a list of layers (net.h), its parameters
 * and its training defaults.
 *
 * All parameters lie in one array, and all gradients in another array of the same layout, so that
 * an exchange can handle all gradients as one plain array. The caller owns these arrays (registered
 * memory in training). Values are f32, images are NCHW. step() reports each parameter as soon as
 * its gradient is final, last layer first, so that the exchange can overlap with the computation.
 * On one machine the same inputs give the same bits. The running means and variances of batch
 * normalisation are not parameters. They are state of the model, and ranks do not share this state.
 */
#ifndef DDP_MODEL_MODEL_H
#define DDP_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"
#include "device/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_model;
struct ddp_layers;

/* The device that a model computes on. If create() gets NULL instead, the model uses the CPU. */
struct ddp_model_target {
    const struct ddp_device *device; /* the caller has selected it (select()) */
    struct ddp_stream *stream;
    const struct ddp_layers *layers; /* NULL: the device's layers (layers.h) */
    bool tf32;                       /* see struct ddp_layers_setup */
    int conv;                        /* enum ddp_conv_way */
};

/* One parameter tensor: elements [offset, offset + count) of params and of grads. */
struct ddp_param {
    char name[24];
    size_t offset, count;
    /* For the random initialisation. fan_in is 0 if the parameter is not random. A weight has count
     * / fan_in outputs, and the elements of an output are contiguous. */
    int fan_in, fan_out;
    float fill; /* initial value of all elements if fan_in is 0 */
};

enum ddp_init { DDP_INIT_HE, DDP_INIT_GLOROT };

/* Training settings of the model's original source. The user can override these settings. */
struct ddp_model_defaults {
    const char *dataset, *optimizer;
    double lr, momentum, weight_decay;
    enum ddp_init init;
    int batch;        /* images per rank and step; 0 if global_batch is set */
    int global_batch; /* images of all ranks per step; 0 if batch is set */
};

struct ddp_layer;
struct ddp_model_class {
    const char *name, *summary;
    int channels, height, width, classes; /* shape of the input, and number of classes */
    const struct ddp_layer *layers;       /* net.h */
    struct ddp_model_defaults defaults;
    /* Creates a model for up to `batch` >= 1 images per call. params, grads [parameter_count] are
     * borrowed until destroy(). They may be NULL if step() and evaluate() are not called. On the
     * CPU, call ddp_blas_load() before step() and evaluate(). If `place` names a device, all arrays
     * that the model receives lie in memory of the device, including loss_sum and correct. The
     * functions may then return before their results are written. Returns DDP_EUNAVAIL if the
     * device has no layers or a library is missing, and DDP_ENOMEM if memory runs out. */
    int (*create)(const struct ddp_model_class *cls, const struct ddp_model_target *place,
                  int batch, float *params, float *grads, struct ddp_model **out,
                  struct ddp_err *err);
    void (*destroy)(struct ddp_model *m);
    /* Returns the bytes of all arrays that create() allocates on the CPU for this batch. */
    size_t (*scratch_bytes)(const struct ddp_model_class *cls, int batch);
    size_t parameter_count;
    const struct ddp_param *params; /* [param_count], ascending offsets, no gaps */
    int param_count;
    /* state() returns an array [state_count] in memory of the model's device. evaluate() reads
     * these values and step() updates them. If all ranks must evaluate the same model, the values
     * must be equal on all ranks. The caller may change the values between calls. */
    size_t state_count;
    float *(*state)(struct ddp_model *m);
    /* Returns the floating-point operations of all products per image, forward and backward, as if
     * multiplications by zero were not skipped. A multiplication and an addition count as two. */
    double (*flops_per_image)(const struct ddp_model_class *cls);
    /* Runs a training step without the update: forward and backward pass of x [n][C][H][W] with
     * labels [n]. If n is 0, the gradients become 0. *loss_sum receives the sum of the n cross
     * entropies, and *correct the number of images classified correctly. The gradients of scale *
     * loss_sum are written to grads, not added. If ready is not NULL, ready(arg, i) is called for
     * each parameter i, in descending order, as soon as its gradient is final. On a stream, the
     * work that computes the gradient may still be queued. */
    void (*step)(struct ddp_model *m, const float *x, const uint8_t *labels, int n, float scale,
                 double *loss_sum, int *correct, void (*ready)(void *arg, int param), void *arg);
    /* Runs the forward pass only. Batch normalisation uses the running statistics. */
    void (*evaluate)(struct ddp_model *m, const float *x, const uint8_t *labels, int n,
                     double *loss_sum, int *correct);
    /* See gather() of struct ddp_layer_ops. */
    void (*gather)(struct ddp_model *m, const uint8_t *pixels, const uint8_t *labels, size_t each,
                   const uint32_t *index, size_t first, int n, float *x, uint8_t *label);
};

const struct ddp_model_class *const *ddp_models(void); /* NULL-terminated */
const struct ddp_model_class *ddp_model_find(const char *name);
extern const char *const ddp_init_names[]; /* by enum ddp_init; "he", "glorot", NULL */
/* Initialises params [parameter_count]. He: uniform in +-sqrt(6 / fan_in). Glorot: uniform in
 * +-sqrt(6 / (fan_in + fan_out)). Biases become 0. The gamma of batch normalisation becomes 1. */
void ddp_model_init_params(const struct ddp_model_class *cls, enum ddp_init init, uint64_t seed,
                           float *params);

#ifdef __cplusplus
}
#endif
#endif
