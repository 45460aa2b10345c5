/* LeNet as in MXNet's tutorial: conv 1->6 5x5, ReLU, pool 2, conv 6->16 3x3, ReLU, pool 2, FC
 * 400->120, ReLU, FC 120->84, ReLU, FC 84->10; 60,170 parameters. Source: Apache MXNet, "Train a
 * Model with Multiple GPUs" (python/tutorials). The tutorial also gives the training settings: SGD,
 * lr 0.04, no momentum, batches of 128 over all devices. */
#include "base/mem.h"
#include "model/net.h"

enum { CLASSES = 10, SIDE = 28, FLAT = 16 * 5 * 5 };

static const struct ddp_layer layers[] = {
    {.kind = DDP_LAYER_CONV_POOL, .out = 6, .k = 5},
    {.kind = DDP_LAYER_CONV_POOL, .out = 16, .k = 3},
    {.kind = DDP_LAYER_LINEAR, .out = 120, .relu = 1},
    {.kind = DDP_LAYER_LINEAR, .out = 84, .relu = 1},
    {.kind = DDP_LAYER_LINEAR, .out = CLASSES},
    {.kind = DDP_LAYER_END},
};

#define PARAMS(P)                                                                                  \
    DDP_CONV_PARAMS(P, CONV1, "conv1", 1, 6, 5)                                                    \
    DDP_CONV_PARAMS(P, CONV2, "conv2", 6, 16, 3)                                                   \
    DDP_LINEAR_PARAMS(P, FC1, "fc1", FLAT, 120)                                                    \
    DDP_LINEAR_PARAMS(P, FC2, "fc2", 120, 84)                                                      \
    DDP_LINEAR_PARAMS(P, FC3, "fc3", 84, CLASSES)

enum { PARAMS(DDP_PARAM_OFFSET) TOTAL };
static const struct ddp_param params[] = {PARAMS(DDP_PARAM_ROW)};

extern const struct ddp_model_class ddp_model_lenet;
const struct ddp_model_class ddp_model_lenet = {
    .name = "lenet",
    .summary = "MXNet's LeNet: 2 convolutions, 3 fully connected, 60,170 parameters, 28 x 28 grey",
    .channels = 1,
    .height = SIDE,
    .width = SIDE,
    .classes = CLASSES,
    .layers = layers,
    .defaults = {.dataset = "fashion-mnist",
                 .optimizer = "sgd",
                 .lr = 0.04,
                 .init = DDP_INIT_GLOROT,
                 .global_batch = 128},
    .parameter_count = TOTAL,
    .params = params,
    .param_count = DDP_COUNT_OF(params),
    DDP_NET_FUNCTIONS,
};
