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
/* The element of x[n] whose magnitude is the k-th largest, by std::nth_element on work [n], a copy,
 * comparing magnitudes: as one writes it down. */
float ddp_bench_nth_float(float *work, const float *x, size_t n, size_t k);
/* The k-th largest magnitude by std::nth_element of the floats' bits, for which comparing is
 * cheaper. */
uint32_t ddp_bench_nth_value(uint32_t *work, const float *x, size_t n, size_t k);
/* As above with the positions, which a top-K needs, ties to the lowest. The entries are work[0..k).
 */
uint32_t ddp_bench_nth_entry(uint64_t *work, const float *x, size_t n, size_t k);

#ifdef __cplusplus
}
#endif
#endif
