/* The CPU kernels: one template (kernels_cpu.inc.h), built once a SIMD level.
 *
 * Only dev_cpu.c includes this from outside. Every level gives the same bits; a level other than
 * scalar may only be entered on a processor that has it (ddp_cpu_best_simd). */
#ifndef DDP_DEVICE_KERNELS_CPU_H
#define DDP_DEVICE_KERNELS_CPU_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in struct ddp_device. */
void ddp_reduce_scalar(const struct ddp_reduce *r);
void ddp_reduce_avx2(const struct ddp_reduce *r);
void ddp_reduce_avx512(const struct ddp_reduce *r);
void ddp_copy_nt_scalar(void *dst, const void *src, size_t bytes);
void ddp_copy_nt_avx2(void *dst, const void *src, size_t bytes);
void ddp_copy_nt_avx512(void *dst, const void *src, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
