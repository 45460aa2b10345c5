/* What the files of device cuda share. Private to dev_cuda*.c and kernels_*.cu. */
#ifndef DDP_DEVICE_DEV_CUDA_IMPL_H
#define DDP_DEVICE_DEV_CUDA_IMPL_H

#include "device/stream.h"
#include "device/stream_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* handle: a cudaStream_t. failed: the first error that work put on the stream gave, a cudaError_t;
 * 0: none. place: what gave it. device: which one; processors: how many it has, for the size of
 * grids. */
struct ddp_stream {
    struct CUstream_st *handle;
    int failed;
    const char *place;
    int device, processors;
};

extern const struct ddp_stream_ops ddp_cuda_streams;
extern const struct ddp_stream_kernels ddp_cuda_kernels;

/* Keeps the first error of a stream. code: a cudaError_t. */
void ddp_cuda_note(struct ddp_stream *s, int code, const char *place);
/* A failure of the CUDA runtime: "cudaMalloc: out of memory (CUDA error 2)". */
int ddp_cuda_fail(struct ddp_err *err, int code, const char *place);

#ifdef __cplusplus
}
#endif
#endif
