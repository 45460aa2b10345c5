/* Functions that several compressors share. Only lib/compress uses this header. */
#ifndef DDP_COMPRESS_COMP_IMPL_H
#define DDP_COMPRESS_COMP_IMPL_H

#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Implements `bound` of compressors that may send every element. */
size_t ddp_comp_bound_all(const struct ddp_compress_spec *spec, size_t n);

/* These functions implement `check`, `bound` (k entries), `state_bytes`, `encode` and `reference`
 * of the top-K compressors. The argument of these compressors is a density in (0, 1]. */
int ddp_comp_density_check(double argument, struct ddp_err *err);
size_t ddp_comp_density_bound(const struct ddp_compress_spec *spec, size_t n);
size_t ddp_comp_topk_state_bytes(const struct ddp_compress_spec *spec, size_t n);
void ddp_comp_topk_encode(struct ddp_encode *e);
void ddp_comp_topk_reference(const struct ddp_compress_spec *spec, const float *acc, size_t n,
                             uint64_t calls, bool *sent);

/* Implements `reference` of compressors whose argument is the smallest magnitude that they send. */
void ddp_comp_threshold_reference(const struct ddp_compress_spec *spec, const float *acc, size_t n,
                                  uint64_t calls, bool *sent);

/* Implements `rounded` of the 16-bit compressors. The argument, if there is one, is a clip. */
void ddp_comp_half_rounded(const struct ddp_compress_spec *spec, float scale, uint64_t key,
                           size_t first, const float *acc, size_t n, float *sent);

/* Implements `rounded` of the compressors that quantise blocks. n is a number of whole blocks,
 * except at the end of the bucket. */
void ddp_comp_quant_rounded(const struct ddp_compress_spec *spec, float scale, uint64_t key,
                            size_t first, const float *acc, size_t n, float *sent);

/* Multiplies the values of e->list by e->scale. */
void ddp_comp_scale_list(struct ddp_encode *e);

#ifdef __cplusplus
}
#endif
#endif
