/* The module ddpbench-cuda.so: device cuda with the CUDA runtime. The program opens the module when
 * it first uses a GPU, so the program itself contains no CUDA code. */
#ifndef DDP_DEVICE_CUDA_CUDA_MODULE_H
#define DDP_DEVICE_CUDA_CUDA_MODULE_H

#include "device/device.h"
#include "device/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raise this number when struct ddp_cuda_module or a table that it refers to changes. */
#define DDP_CUDA_MODULE_ABI 1

struct ddp_nn_stream; /* model/nn_stream.h */

/* The module exports a variable ddp_cuda_module of this type. */
struct ddp_cuda_module {
    int abi;                            /* DDP_CUDA_MODULE_ABI when the module was built */
    const char *commit;                 /* DDP_COMMIT when the module was built */
    const struct ddp_device *device;    /* every function of device cuda */
    const struct ddp_nn_stream *layers; /* kernels of the layers */
    /* Records the failed call of a library that puts work on the stream. Does nothing if `code`, a
     * cudaError_t, is cudaSuccess, or if the stream already has an error. `call` names the failed
     * call. The text of `call` must stay valid as long as the stream exists. */
    void (*note)(struct ddp_stream *s, int code, const char *call);
};

/* Device cuda, as the program sees it. Only ddp_cuda_module_load changes this struct, and only
 * once. */
extern struct ddp_device ddp_device_cuda;

/* Opens the module if this process has not opened it yet, and sets *out to the module. On failure
 * sets *out to NULL. Returns DDP_EUNAVAIL if the module is missing or cannot be opened, for example
 * because the machine has no driver. Returns DDP_EMISMATCH if the module belongs to another build.
 */
int ddp_cuda_module_load(const struct ddp_cuda_module **out, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
