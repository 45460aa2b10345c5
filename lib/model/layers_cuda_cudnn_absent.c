/* cuDNN's convolutions in a build without cuDNN's header. Opening them fails with the reason. */
#include "model/layers_cuda_cudnn.h"

int ddp_cuda_cudnn_open(struct ddp_layers_context *c, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUNAVAIL, "not built in: this ddpbench was built without cuDNN's header");
    return ddp_hint(err, "install cuDNN's headers and build again, or use --conv im2col");
}
