/* Device cuda's table of stream kernels. */
#include "device/kernels_cuda.h"

const struct ddp_stream_kernels ddp_cuda_kernels = {
    .reduce = ddp_cuda_reduce,
};
