/* Nets: models that are lists of layers. net.c builds and runs nets. Only net.c and the files of
 * models use this header.
 *
 * The shapes of layers follow from the shape of the input. Each layer with parameters has two
 * tensors, weight and bias (gamma and beta for batch normalisation). The parameter table lists the
 * tensors in the order of the layers. */
#ifndef DDP_MODEL_NET_H
#define DDP_MODEL_NET_H

#include "model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_layer_kind {
    DDP_LAYER_END,        /* end of the list */
    DDP_LAYER_CONV_POOL,  /* convolution (stride 1, no padding) to `out` channels, ReLU, 2 x 2 max
                             pooling; the height and width before pooling must be even */
    DDP_LAYER_CONV,       /* convolution to `out` channels */
    DDP_LAYER_BATCH_NORM, /* batch normalisation, then ReLU if `relu` is set */
    DDP_LAYER_ADD, /* sum of its input and the output of layer `from`; both have the same shape */
    DDP_LAYER_FLATTEN, /* images to vectors; required between LINEAR and a CONV,
                          BATCH_NORM or ADD with several channels */
    DDP_LAYER_LINEAR   /* fully connected to `out` values, then ReLU if `relu` is set */
};

/* One layer of a model. The last layer must be LINEAR without relu and have one output per class.
 */
struct ddp_layer {
    enum ddp_layer_kind kind;
    int out;
    int k, stride, pad; /* convolutions; stride 0 means 1 */
    int relu;
    int from;  /* ADD */
    int chunk; /* convolutions on the CPU: images unfolded at once; 0: as many as chunk_floats
                  (layers.h) allows */
};
#define DDP_NET_LAYERS_MAX 32

/* A model lists its parameters in a macro PARAMS(P) of rows P(id, name, count, fan_in, fan_out,
 * fill). `enum { PARAMS(DDP_PARAM_OFFSET) TOTAL };` gives each id its offset, and
 * `{PARAMS(DDP_PARAM_ROW)}` gives the parameter table. */
#define DDP_PARAM_OFFSET(id, name, count, fan_in, fan_out, fill) id, id##_LAST = id + (count)-1,
#define DDP_PARAM_ROW(id, name, count, fan_in, fan_out, fill)                                      \
    {name, id, count, fan_in, fan_out, fill},
/* The two tensors of a layer. A convolution's fan_out is the number of output channels times k * k,
 * as in PyTorch and needle. */
#define DDP_CONV_PARAMS(P, id, name, in, out, k)                                                   \
    P(id##_W, name ".weight", (out) * (in) * (k) * (k), (in) * (k) * (k), (out) * (k) * (k), 0.0f) \
    P(id##_B, name ".bias", out, 0, 0, 0.0f)
#define DDP_NORM_PARAMS(P, id, name, channels)                                                     \
    P(id##_W, name ".weight", channels, 0, 0, 1.0f)                                                \
    P(id##_B, name ".bias", channels, 0, 0, 0.0f)
#define DDP_LINEAR_PARAMS(P, id, name, in, out)                                                    \
    P(id##_W, name ".weight", (out) * (in), in, out, 0.0f)                                         \
    P(id##_B, name ".bias", out, 0, 0, 0.0f)

/* The functions of a model class that is a list of layers. */
int ddp_net_create(const struct ddp_model_class *cls, const struct ddp_model_target *place,
                   int batch, float *params, float *grads, struct ddp_model **out,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_net_destroy(struct ddp_model *m);
size_t ddp_net_scratch_bytes(const struct ddp_model_class *cls, int batch);
float *ddp_net_state(struct ddp_model *m);
double ddp_net_flops(const struct ddp_model_class *cls);
void ddp_net_step(struct ddp_model *m, const float *x, const uint8_t *labels, int n, float scale,
                  double *loss_sum, int *correct, void (*ready)(void *arg, int param), void *arg);
void ddp_net_evaluate(struct ddp_model *m, const float *x, const uint8_t *labels, int n,
                      double *loss_sum, int *correct);
void ddp_net_gather(struct ddp_model *m, const uint8_t *pixels, const uint8_t *labels, size_t each,
                    const uint32_t *index, size_t first, int n, float *x, uint8_t *label);
#define DDP_NET_FUNCTIONS                                                                          \
    .create = ddp_net_create, .destroy = ddp_net_destroy, .scratch_bytes = ddp_net_scratch_bytes,  \
    .state = ddp_net_state, .flops_per_image = ddp_net_flops, .step = ddp_net_step,                \
    .evaluate = ddp_net_evaluate, .gather = ddp_net_gather

#ifdef __cplusplus
}
#endif
#endif
