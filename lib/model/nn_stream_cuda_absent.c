/* An empty table of device cuda's kernels for a build without CUDA. Nothing uses it. */
#include "model/nn_stream.h"

const struct ddp_nn_stream ddp_nn_stream_cuda = {.tally = NULL};
