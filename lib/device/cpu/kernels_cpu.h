/* The CPU's kernels: reduction and copies (kernels_cpu.inc.h), and the gradient kernels of sparse.h
 * (grad_kernels.inc.h). kernels_scalar.c, kernels_avx2.c and kernels_avx512.c compile both
 * templates for one SIMD level each.
 *
 * Every level gives the same bits. Functions of a level other than scalar may only be called on a
 * processor that supports the level (ddp_cpu_best_simd). */
#ifndef DDP_DEVICE_CPU_KERNELS_CPU_H
#define DDP_DEVICE_CPU_KERNELS_CPU_H

#include "device/device.h"
#include "device/sparse.h"

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
