/* The functions that launch the kernels of device cuda. dev_cuda_kernels.c builds the table of
 * stream kernels from them.
 *
 * Each function except ddp_cuda_accumulate implements the member of the same name
 * (device/stream_kernels.h). A failed launch is recorded in the stream. Only dev_cuda*.c and
 * kernels_*.cu include this header. */
#ifndef DDP_DEVICE_CUDA_KERNELS_CUDA_H
#define DDP_DEVICE_CUDA_KERNELS_CUDA_H

#include "device/cuda/dev_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Defined in kernels_map.cu, except ddp_cuda_reduce (kernels_reduce.cu). */
void ddp_cuda_reduce(struct ddp_stream *s, const struct ddp_reduce *r);
void ddp_cuda_narrow(struct ddp_stream *s, void *dst, const float *src, size_t n, enum ddp_dtype to,
                     float scale, float clip, uint64_t *overflows);
void ddp_cuda_widen(struct ddp_stream *s, float *dst, const void *src, size_t n,
                    enum ddp_dtype from);
void ddp_cuda_widen_add(struct ddp_stream *s, float *dst, const void *src, size_t n,
                        enum ddp_dtype from);
void ddp_cuda_narrow_residual(struct ddp_stream *s, float *residual, const float *in,
                              const void *wire, size_t n, enum ddp_dtype type);
void ddp_cuda_sgd(struct ddp_stream *s, float *p, float *v, const float *grad, size_t n, float lr,
                  float momentum, float weight_decay);
void ddp_cuda_adam(struct ddp_stream *s, float *p, float *m, float *v, const float *grad, size_t n,
                   const struct ddp_adam *a);
/* Used by top-K. Adds in[i] to residual[i]. If `in` is NULL, adds nothing. In both cases every NaN
 * in the residual becomes canonical. */
void ddp_cuda_accumulate(struct ddp_stream *s, float *residual, const float *in, size_t n);

/* kernels_scale.cu */
void ddp_cuda_scale(struct ddp_stream *s, float *a, size_t n, double factor);
void ddp_cuda_widen_back(struct ddp_stream *s, float *dst, const void *src, size_t n,
                         enum ddp_dtype from, uint64_t *overflows);
void ddp_cuda_add_count(struct ddp_stream *s, uint64_t *sum, const uint32_t *count);

/* kernels_input.cu */
void ddp_cuda_write_expected(struct ddp_stream *s, void *dst, const struct ddp_expected *e,
                             size_t first, size_t count);
void ddp_cuda_count_wrong(struct ddp_stream *s, const void *data, const struct ddp_expected *e,
                          size_t first, size_t count, uint64_t *wrong);

/* kernels_select.cu */
size_t ddp_cuda_select_scratch(size_t n, size_t k);
void ddp_cuda_select_threshold(struct ddp_stream *s, const struct ddp_stream_select *x,
                               float threshold);
void ddp_cuda_select_topk(struct ddp_stream *s, const struct ddp_stream_select *x, size_t k);

/* kernels_list.cu */
void ddp_cuda_scatter_add(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
void ddp_cuda_scatter(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
void ddp_cuda_scatter_zero(struct ddp_stream *s, float *dst, const struct ddp_stream_list *list);
size_t ddp_cuda_merge_scratch(size_t b_capacity);
void ddp_cuda_merge(struct ddp_stream *s, const struct ddp_stream_list *out,
                    const struct ddp_stream_list *a, const struct ddp_stream_list *b,
                    void *scratch);
void ddp_cuda_split(struct ddp_stream *s, const struct ddp_stream_list *list, const uint32_t *bound,
                    size_t bounds, uint32_t *before);
void ddp_cuda_count_digits(struct ddp_stream *s, const float *value, size_t n, uint32_t prefix,
                           int shift, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
