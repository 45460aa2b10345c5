/* The layers' kernels of device cuda in a build without CUDA: there are none, and nobody asks. */
#include "model/nn_stream.h"

const struct ddp_nn_stream ddp_nn_stream_cuda = {.tally = NULL};
