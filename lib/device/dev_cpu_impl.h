/* What the files of device cpu share. Private to dev_cpu*.c. */
#ifndef DDP_DEVICE_DEV_CPU_IMPL_H
#define DDP_DEVICE_DEV_CPU_IMPL_H

#include "device/stream.h"
#include "device/stream_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ddp_stream_ops ddp_cpu_streams;
extern const struct ddp_stream_kernels
    ddp_cpu_kernels; /* the best SIMD level's, whatever the device's */

#ifdef __cplusplus
}
#endif
#endif
