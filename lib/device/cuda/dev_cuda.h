/* Declarations shared by the CUDA sources of lib/device/cuda and lib/model. */
#ifndef DDP_DEVICE_CUDA_DEV_CUDA_H
#define DDP_DEVICE_CUDA_DEV_CUDA_H

#include "device/stream.h"
#include "device/stream_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* A CUDA stream and the first error of the work put on it. */
struct ddp_stream {
    struct CUstream_st *handle; /* a cudaStream_t */
    int failed;                 /* the first error (a cudaError_t), or 0 */
    const char *call;           /* the call that failed */
    int device;                 /* index of the GPU */
    int processors;             /* number of multiprocessors; limits the grid of some kernels */
    int held;                   /* set by hold, cleared by release; accessed atomically */
};

struct ddp_nn_stream; /* model/nn_stream.h */

extern const struct ddp_device ddp_dev_cuda;
extern const struct ddp_stream_ops ddp_cuda_streams;
extern const struct ddp_stream_kernels ddp_cuda_kernels;
extern const struct ddp_nn_stream ddp_nn_stream_cuda; /* model/kernels_nn.cu */

/* Records the failed call and its `code` (a cudaError_t) in the stream. Does nothing if `code` is
 * cudaSuccess, or if the stream already has an error. */
void ddp_cuda_note(struct ddp_stream *s, int code, const char *call);
/* Sets err to an error of the CUDA runtime, such as "cudaMalloc: out of memory (CUDA error 2)", and
 * clears CUDA's last error. Returns DDP_ENOMEM if memory is short, else DDP_EUNAVAIL. */
int ddp_cuda_fail(struct ddp_err *err, int code, const char *call);

#ifdef __cplusplus
}
#endif
#endif
