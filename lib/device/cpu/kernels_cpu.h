/* The CPU's reduce and copy kernels: one template (kernels_cpu.inc.h), compiled once per SIMD
 * level.
 *
 * Every level gives the same bits. Functions of a level other than scalar may only be called on a
 * processor that supports the level (ddp_cpu_best_simd). */
#ifndef DDP_DEVICE_CPU_KERNELS_CPU_H
#define DDP_DEVICE_CPU_KERNELS_CPU_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions `reduce` and `copy_nt` of struct ddp_device. */
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
