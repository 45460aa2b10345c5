/* The launchers of device cuda's kernels: what its table of stream kernels points to.
 *
 * Each puts its kernels on the stream and returns; a failed launch is noted in the stream. Private
 * to dev_cuda*.c and kernels_*.cu. */
#ifndef DDP_DEVICE_KERNELS_CUDA_H
#define DDP_DEVICE_KERNELS_CUDA_H

#include "device/dev_cuda_impl.h"

#ifdef __cplusplus
extern "C" {
#endif

void ddp_cuda_reduce(struct ddp_stream *s, const struct ddp_reduce *r);

#ifdef __cplusplus
}
#endif
#endif
