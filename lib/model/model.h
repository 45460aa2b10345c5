/* Models: reference networks, each one file: a list of layers (net.h), parameters, defaults.
 *
 * All parameters lie in one array, all gradients in another of the same layout, so that an exchange
 * sees plain memory. The caller owns both (registered memory in training). Values are f32, images
 * NCHW. step() reports each parameter as soon as its gradient is final, last layer first, which is
 * what lets exchange overlap with compute. Deterministic: same inputs, same bits. What batch
 * normalisation remembers (running means and variances) is no parameter: it is the model's state,
 * which each rank has its own of. */
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

/* Where a model computes, NULL for the processor: on a stream of a device, which the caller has
 * selected. layers: NULL: the device's (layers.h). Members of struct ddp_layers_setup are as there.
 */
struct ddp_model_place {
    const struct ddp_device *device;
    struct ddp_stream *stream;
    const struct ddp_layers *layers;
    bool tf32;
    int conv; /* enum ddp_conv_way */
};

/* One tensor of the flat arrays: elements [offset, offset + count). fan_in/fan_out for
 * initialisation; 0: no weight, every element begins as fill. */
struct ddp_param {
    char name[24];
    size_t offset, count;
    int fan_in, fan_out;
    float fill;
};

enum ddp_init { DDP_INIT_HE, DDP_INIT_GLOROT };

/* How the model is trained where it comes from; used where the user says nothing else. batch: per
 * rank; global_batch: of all ranks together. One of the two is 0. */
struct ddp_model_defaults {
    const char *dataset, *optimizer;
    double lr, momentum, weight_decay;
    enum ddp_init init;
    int batch;
    int global_batch;
};

struct ddp_layer;
struct ddp_model_class {
    const char *name, *summary;
    int channels, height, width, classes; /* of the input it takes */
    const struct ddp_layer *layers;       /* net.h */
    struct ddp_model_defaults defaults;
    /* batch: most images a call will see, >= 1. params/grads: [parameter_count] each, borrowed for
     * the model's life, may be NULL when only the layout is wanted. On the processor, call
     * ddp_blas_load() before step and evaluate. With a place all arrays that the model is given are
     * the device's, loss_sum and correct, too, and the functions return before they are written;
     * DDP_EUNAVAIL: the device has no layers, or not their libraries. */
    int (*create)(const struct ddp_model_class *cls, const struct ddp_model_place *place, int batch,
                  float *params, float *grads, struct ddp_model **out, struct ddp_err *err);
    void (*destroy)(struct ddp_model *m);
    /* Private bytes create() takes on the processor for that batch, beside params and grads. */
    size_t (*scratch_bytes)(const struct ddp_model_class *cls, int batch);
    size_t parameter_count;
    const struct ddp_param *params; /* [param_count], ascending offsets, no gaps */
    int param_count;
    /* state(m) [state_count]: what evaluate() reads beside the parameters, and step() updates. The
     * same values on all ranks if evaluation shall be. May be changed between calls. Memory of the
     * device. */
    size_t state_count;
    float *(*state)(struct ddp_model *m);
    /* Of the products, forward + backward; multiplications and additions counted separately. */
    double (*flops_per_image)(const struct ddp_model_class *cls);
    /* Training forward pass and its backward: x [n][C][H][W], labels [n]; *loss_sum: sum of the n
     * cross entropies; *correct: argmax hits. Gradients of scale * loss_sum are WRITTEN (not added)
     * to grads. ready(arg, i): param i is final, descending; may be NULL. n may be 0 (grads become
     * 0).
     */
    void (*step)(struct ddp_model *m, const float *x, const uint8_t *labels, int n, float scale,
                 double *loss_sum, int *correct, void (*ready)(void *arg, int param), void *arg);
    /* Forward only; batch normalisation by the state. */
    void (*evaluate)(struct ddp_model *m, const float *x, const uint8_t *labels, int n,
                     double *loss_sum, int *correct);
    /* As struct ddp_layers's: images of a data set in the device's memory. */
    void (*gather)(struct ddp_model *m, const uint8_t *pixels, const uint8_t *labels, size_t each,
                   const uint32_t *index, size_t first, int n, float *x, uint8_t *label);
};

const struct ddp_model_class *const *ddp_models(void); /* NULL-terminated */
const struct ddp_model_class *ddp_model_find(const char *name);
/* "he", "glorot". */
const char *ddp_init_name(enum ddp_init init);
/* He: uniform in +-sqrt(6/fan_in); Glorot: +-sqrt(6/(fan_in+fan_out)); biases 0,
 * batch normalisation's gamma 1. */
void ddp_model_init_params(const struct ddp_model_class *cls, enum ddp_init init, uint64_t seed,
                           float *params);

#ifdef __cplusplus
}
#endif
#endif
