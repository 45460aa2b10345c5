/* Loops that `make bench-kernels` compares the kernels with: plain loops over arrays, and the
 * selection by std::nth_element. */
#ifndef DDP_BENCH_BOUNDS_H
#define DDP_BENCH_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads n floats with the widest loads of the SIMD level. Returns their sum, so that the compiler
 * keeps all loads. */
float ddp_bench_read_avx2(const float *x, size_t n);
float ddp_bench_read_avx512(const float *x, size_t n);
/* Adds from[n] to each of the arrays to[count][n]. count: 1 to 3. */
void ddp_bench_update_avx2(float *const *to, int count, const float *from, size_t n);
void ddp_bench_update_avx512(float *const *to, int count, const float *from, size_t n);
/* Copies x to work[n] and returns the element with the k-th largest magnitude, by std::nth_element
 * with a comparison of magnitudes, as one would write it first. */
float ddp_bench_nth_float(float *work, const float *x, size_t n, size_t k);
/* Returns the k-th largest magnitude by std::nth_element on the bits of the floats, which are
 * cheaper to compare. */
uint32_t ddp_bench_nth_value(uint32_t *work, const float *x, size_t n, size_t k);
/* As above, with the positions that a top-K needs; of equal magnitudes the lowest position wins.
 * The entries are work[0..k). */
uint32_t ddp_bench_nth_entry(uint64_t *work, const float *x, size_t n, size_t k);

#ifdef __cplusplus
}
#endif
#endif
