/* What `make bench-kernels` compares with: the read bandwidth, and the standard library's own
 * selection. */
#ifndef DDP_BENCH_BOUNDS_H
#define DDP_BENCH_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads n floats with the widest loads of the level; the sum, so that nothing is left out. */
float ddp_bench_read_avx2(const float *x, size_t n);
float ddp_bench_read_avx512(const float *x, size_t n);
/* The k-th largest magnitude of x[n] by std::nth_element on work [n], a copy: which are larger is
 * not known. */
uint32_t ddp_bench_nth_value(uint32_t *work, const float *x, size_t n, size_t k);
/* As above with the positions, ties to the lowest: what top-K needs. The entries are work[0..k). */
uint32_t ddp_bench_nth_entry(uint64_t *work, const float *x, size_t n, size_t k);

#ifdef __cplusplus
}
#endif
#endif
