/* Functions shared by several compressors. For lib/compress only. */
#ifndef DDP_COMPRESS_COMP_IMPL_H
#define DDP_COMPRESS_COMP_IMPL_H

#include "compress/compress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The `bound` of a compressor that keeps every element. */
size_t ddp_comp_bound_all(const struct ddp_compress_spec *spec, size_t n);

/* For compressors with a density in (0, 1]: `check`, `bound` (k entries), and `state_bytes` and
 * `encode` of top-K. */
int ddp_comp_density_check(double argument, struct ddp_err *err);
size_t ddp_comp_density_bound(const struct ddp_compress_spec *spec, size_t n);
size_t ddp_comp_topk_state_bytes(const struct ddp_compress_spec *spec, size_t n);
void ddp_comp_topk_encode(struct ddp_encode *e);

/* Multiplies the values of e->list by e->scale. */
void ddp_comp_scale_list(struct ddp_encode *e);

#ifdef __cplusplus
}
#endif
#endif
