/* The net of nnabla's data-parallel tutorial: conv 1->1 3x3 with padding on 1 x 32 x 32 images, FC
 * 1024->2; 2,060 parameters. Source: nnabla, tutorial/python/multi_device_training. The tutorial
 * trains with Adam (alpha 1e-3). The net is so small that a step spends more time in the exchange
 * than in computation. */
#include "base/mem.h"
#include "model/net.h"

enum { CLASSES = 2, SIDE = 32 };

static const struct ddp_layer layers[] = {
    {.kind = DDP_LAYER_CONV, .out = 1, .k = 3, .pad = 1},
    {.kind = DDP_LAYER_LINEAR, .out = CLASSES},
    {.kind = DDP_LAYER_END},
};

#define PARAMS(P)                                                                                  \
    DDP_CONV_PARAMS(P, CONV, "conv", 1, 1, 3)                                                      \
    DDP_LINEAR_PARAMS(P, AFFINE, "affine", SIDE *SIDE, CLASSES)

enum { PARAMS(DDP_PARAM_OFFSET) TOTAL };
static const struct ddp_param params[] = {PARAMS(DDP_PARAM_ROW)};

extern const struct ddp_model_class ddp_model_nnabla_tiny;
const struct ddp_model_class ddp_model_nnabla_tiny = {
    .name = "nnabla-tiny",
    .summary = "nnabla's tutorial net: 1 convolution, 1 affine, 2,060 parameters, 32 x 32 grey",
    .channels = 1,
    .height = SIDE,
    .width = SIDE,
    .classes = CLASSES,
    .layers = layers,
    .defaults = {.dataset = "synthetic",
                 .optimizer = "adam",
                 .lr = 1e-3,
                 .init = DDP_INIT_GLOROT,
                 .batch = 32},
    .parameter_count = TOTAL,
    .params = params,
    .param_count = DDP_COUNT_OF(params),
    DDP_NET_FUNCTIONS,
};
