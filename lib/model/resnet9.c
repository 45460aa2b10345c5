/* ResNet-9 as in needle, for 3 x 32 x 32 images; 431,946 parameters. The net has two blocks, then
 * FC 128, ReLU, FC 10. A block is two convolutions with a stride, followed by a residual pair of
 * 3x3 convolutions. The first convolution of the net is 7x7 with stride 4; the others with a stride
 * are 3x3 with stride 2. Each convolution has bias, batch normalisation and ReLU. Source: needle
 * (CMU 10-414/714), apps/models.py, ResNet9. The training settings of this source are Adam, lr
 * 1e-3, weight decay 1e-3, and batches of 128 over all ranks. The padding is (k - 1) / 2, so the
 * side of the images shrinks from 32 to 8, 4, 2 and 1. */
#include "base/mem.h"
#include "model/net.h"

enum { CLASSES = 10, SIDE = 32, WIDE = 128 };

#define CONV_BN(channels, kernel, step)                                                            \
    {.kind = DDP_LAYER_CONV,                                                                       \
     .out = (channels),                                                                            \
     .k = (kernel),                                                                                \
     .stride = (step),                                                                             \
     .pad = ((kernel)-1) / 2},                                                                     \
    {                                                                                              \
        .kind = DDP_LAYER_BATCH_NORM, .relu = 1                                                    \
    }

static const struct ddp_layer layers[] = {
    CONV_BN(16, 7, 4),
    CONV_BN(32, 3, 2), /* layers 2 and 3, counted from 0 */
    CONV_BN(32, 3, 1),
    CONV_BN(32, 3, 1),
    {.kind = DDP_LAYER_ADD, .from = 3}, /* layer 8 adds the output of layer 3 */
    CONV_BN(64, 3, 2),
    CONV_BN(WIDE, 3, 2), /* layers 11 and 12 */
    CONV_BN(WIDE, 3, 1),
    CONV_BN(WIDE, 3, 1),
    {.kind = DDP_LAYER_ADD, .from = 12},
    {.kind = DDP_LAYER_FLATTEN},
    {.kind = DDP_LAYER_LINEAR, .out = WIDE, .relu = 1},
    {.kind = DDP_LAYER_LINEAR, .out = CLASSES},
    {.kind = DDP_LAYER_END},
};

#define CONV_BN_PARAMS(P, id, name, in, out, k)                                                    \
    DDP_CONV_PARAMS(P, id, name ".conv", in, out, k)                                               \
    DDP_NORM_PARAMS(P, id##_NORM, name ".norm", out)
#define PARAMS(P)                                                                                  \
    CONV_BN_PARAMS(P, C1, "c1", 3, 16, 7)                                                          \
    CONV_BN_PARAMS(P, C2, "c2", 16, 32, 3)                                                         \
    CONV_BN_PARAMS(P, R1, "res1.a", 32, 32, 3)                                                     \
    CONV_BN_PARAMS(P, R2, "res1.b", 32, 32, 3)                                                     \
    CONV_BN_PARAMS(P, C3, "c3", 32, 64, 3)                                                         \
    CONV_BN_PARAMS(P, C4, "c4", 64, WIDE, 3)                                                       \
    CONV_BN_PARAMS(P, R3, "res2.a", WIDE, WIDE, 3)                                                 \
    CONV_BN_PARAMS(P, R4, "res2.b", WIDE, WIDE, 3)                                                 \
    DDP_LINEAR_PARAMS(P, FC1, "fc1", WIDE, WIDE)                                                   \
    DDP_LINEAR_PARAMS(P, FC2, "fc2", WIDE, CLASSES)

enum { PARAMS(DDP_PARAM_OFFSET) TOTAL };
static const struct ddp_param params[] = {PARAMS(DDP_PARAM_ROW)};

extern const struct ddp_model_class ddp_model_resnet9;
const struct ddp_model_class ddp_model_resnet9 = {
    .name = "resnet9",
    .summary = "needle's ResNet-9: batch normalisation, residuals, 431,946 parameters, 32 x 32 RGB",
    .channels = 3,
    .height = SIDE,
    .width = SIDE,
    .classes = CLASSES,
    .layers = layers,
    .defaults = {.dataset = "cifar10",
                 .optimizer = "adam",
                 .lr = 1e-3,
                 .weight_decay = 1e-3,
                 .init = DDP_INIT_HE,
                 .global_batch = 128},
    .parameter_count = TOTAL,
    .params = params,
    .param_count = DDP_COUNT_OF(params),
    .state_count = 2 * (16 + 3 * 32 + 64 + 3 * WIDE),
    DDP_NET_FUNCTIONS,
};
