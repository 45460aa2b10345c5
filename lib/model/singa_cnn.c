/* SINGA's CNN: conv 1->20 5x5, ReLU, pool 2, conv 20->50 5x5, ReLU, pool 2, FC 800->500, ReLU, FC
 * 500->10; 431,080 parameters. Source: Apache SINGA, examples/cnn/model/cnn.py, with the second
 * pooling layer that SINGA's MNIST results use. */
#include "base/mem.h"
#include "model/net.h"

enum { CLASSES = 10, SIDE = 28, HIDDEN = 500, FLAT = 50 * 4 * 4 };

/* A chunk of 8 unfolded images of conv 2 takes 1 MB. conv 1 uses chunks of one image. OpenBLAS
 * computes a product of this size without packing, which is faster (results/notes/model_chunks.md).
 */
static const struct ddp_layer layers[] = {
    {.kind = DDP_LAYER_CONV_POOL, .out = 20, .k = 5, .chunk = 1},
    {.kind = DDP_LAYER_CONV_POOL, .out = 50, .k = 5, .chunk = 8},
    {.kind = DDP_LAYER_LINEAR, .out = HIDDEN, .relu = 1},
    {.kind = DDP_LAYER_LINEAR, .out = CLASSES},
    {.kind = DDP_LAYER_END},
};

#define PARAMS(P)                                                                                  \
    DDP_CONV_PARAMS(P, CONV1, "conv1", 1, 20, 5)                                                   \
    DDP_CONV_PARAMS(P, CONV2, "conv2", 20, 50, 5)                                                  \
    DDP_LINEAR_PARAMS(P, FC1, "fc1", FLAT, HIDDEN)                                                 \
    DDP_LINEAR_PARAMS(P, FC2, "fc2", HIDDEN, CLASSES)

enum { PARAMS(DDP_PARAM_OFFSET) TOTAL };
static const struct ddp_param params[] = {PARAMS(DDP_PARAM_ROW)};

extern const struct ddp_model_class ddp_model_singa_cnn;
const struct ddp_model_class ddp_model_singa_cnn = {
    .name = "singa-cnn",
    .summary = "SINGA's CNN: 2 convolutions, 2 fully connected, 431,080 parameters, 28 x 28 grey",
    .channels = 1,
    .height = SIDE,
    .width = SIDE,
    .classes = CLASSES,
    .layers = layers,
    .defaults = {.dataset = "fashion-mnist",
                 .optimizer = "sgd",
                 .lr = 0.005,
                 .momentum = 0.9,
                 .weight_decay = 1e-5,
                 .init = DDP_INIT_HE,
                 .batch = 64},
    .parameter_count = TOTAL,
    .params = params,
    .param_count = DDP_COUNT_OF(params),
    DDP_NET_FUNCTIONS,
};
