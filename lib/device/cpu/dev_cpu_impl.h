/* Declarations shared by the files of device cpu. Private to dev_cpu*.c. */
#ifndef DDP_DEVICE_CPU_DEV_CPU_IMPL_H
#define DDP_DEVICE_CPU_DEV_CPU_IMPL_H

#include "device/stream.h"
#include "device/stream_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ddp_stream_ops ddp_cpu_streams;
extern const struct ddp_stream_kernels ddp_cpu_kernels; /* kernels of the best SIMD level */

/* Defined in dev_cpu_scale.c. */
void ddp_cpu_scale(struct ddp_stream *s, float *a, size_t n, double factor);
void ddp_cpu_widen_back(struct ddp_stream *s, float *dst, const void *src, size_t n,
                        enum ddp_dtype from, uint64_t *overflows);
void ddp_cpu_add_count(struct ddp_stream *s, uint64_t *sum, const uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
