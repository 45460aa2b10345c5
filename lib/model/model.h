/* Models: reference networks, each one file, over the layers of layers.h.
 *
 * All parameters lie in one array, all gradients in another of the same layout, so that an exchange
 * sees plain memory. The caller owns both (registered memory in training). Values are f32, images
 * NCHW. backward() reports each parameter as soon as its gradient is final, last layer first, which
 * is what lets exchange overlap with compute. Deterministic: same inputs, same bits. */
#ifndef DDP_MODEL_MODEL_H
#define DDP_MODEL_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_model;

/* One tensor of the flat arrays: elements [offset, offset + count). fan_in/fan_out for
 * initialisation; 0: bias (zeros). */
struct ddp_param {
    char name[24];
    size_t offset, count;
    int fan_in, fan_out;
};

enum ddp_init { DDP_INIT_HE, DDP_INIT_GLOROT };

struct ddp_model_class {
    const char *name, *summary;
    int channels, height, width, classes; /* of the input it takes */
    /* batch: most images a call will see, >= 1. params/grads: [parameter_count] each, borrowed for
     * the model's life, may be NULL when only the layout is wanted. Call ddp_blas_load() before
     * step and evaluate. */
    int (*create)(int batch, float *params, float *grads, struct ddp_model **out,
                  struct ddp_err *err);
    void (*destroy)(struct ddp_model *m);
    /* Private bytes create() takes for that batch, beside params and grads. */
    size_t (*scratch_bytes)(int batch);
    size_t parameter_count;
    const struct ddp_param *params; /* [param_count], ascending offsets, no gaps */
    int param_count;
    double
        flops_per_image; /* forward + backward, multiplications and additions counted separately */
    /* Training forward pass and its backward: x [n][C][H][W], labels [n]; *loss_sum: sum of the n
     * cross entropies; *correct: argmax hits. Gradients of scale * loss_sum are WRITTEN (not added)
     * to grads. ready(arg, i): param i is final; may be NULL. n may be 0 (grads become 0). */
    void (*step)(struct ddp_model *m, const float *x, const uint8_t *labels, int n, float scale,
                 double *loss_sum, int *correct, void (*ready)(void *arg, int param), void *arg);
    /* Forward only. */
    void (*evaluate)(struct ddp_model *m, const float *x, const uint8_t *labels, int n,
                     double *loss_sum, int *correct);
};

const struct ddp_model_class *const *ddp_models(void); /* NULL-terminated */
const struct ddp_model_class *ddp_model_find(const char *name);
/* "he", "glorot". */
const char *ddp_init_name(enum ddp_init init);
/* He: uniform in +-sqrt(6/fan_in); Glorot: +-sqrt(6/(fan_in+fan_out)); biases 0. */
void ddp_model_init_params(const struct ddp_model_class *cls, enum ddp_init init, uint64_t seed,
                           float *params);

#ifdef __cplusplus
}
#endif
#endif
