/* The layers of device cuda in a build without CUDA or cuBLAS. Opening these layers fails with a
 * message that gives the reason. */
#include "model/layers_stream.h"

static int absent(const struct ddp_layers_setup *setup, struct ddp_layers_context **out,
                  struct ddp_err *err)
{
    ddp_fail(err, DDP_EUNAVAIL,
             "not built in: this ddpbench was built without CUDA or without cuBLAS");
    return ddp_hint(err, "install the CUDA toolkit and build with `make CUDA=1`");
}

static const char *no_library(void)
{
    return "";
}

const struct ddp_layers ddp_layers_cuda = {
    .device = "cuda",
    .library = no_library,
    .open = absent,
};
