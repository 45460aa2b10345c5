/* The table that ddpbench-cuda.so exports. */
#include "build_facts.h"
#include "device/cuda/cuda_module.h"
#include "device/cuda/dev_cuda.h"

extern const struct ddp_cuda_module ddp_cuda_module;
const struct ddp_cuda_module ddp_cuda_module = {
    .abi = DDP_CUDA_MODULE_ABI,
    .commit = DDP_COMMIT,
    .device = &ddp_dev_cuda,
    .layers = &ddp_nn_stream_cuda,
    .note = ddp_cuda_note,
};
