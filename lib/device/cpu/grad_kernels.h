/* The CPU's tables of gradient kernels (sparse.h): one table per SIMD level, all with the same
 * results.
 *
 * Functions of a level other than scalar may only be called on a processor that supports the level
 * (ddp_cpu_best_simd). */
#ifndef DDP_DEVICE_CPU_GRAD_KERNELS_H
#define DDP_DEVICE_CPU_GRAD_KERNELS_H

#include "device/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ddp_grad_kernels ddp_grad_scalar;
extern const struct ddp_grad_kernels ddp_grad_avx2;
extern const struct ddp_grad_kernels ddp_grad_avx512;

/* The kernels on index-sorted lists, documented in struct ddp_grad_kernels. All levels share this
 * code, because these kernels are bound by memory and not by arithmetic. */
void ddp_list_scatter_add(float *dst, const struct ddp_sparse *s);
void ddp_list_scatter(float *dst, const struct ddp_sparse *s);
void ddp_list_scatter_zero(float *dst, const uint32_t *index, size_t count);
void ddp_list_merge(struct ddp_sparse *out, const struct ddp_sparse *a, const struct ddp_sparse *b);

#ifdef __cplusplus
}
#endif
#endif
