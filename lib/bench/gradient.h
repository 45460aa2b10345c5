/* Gradients for exchanges without a model: drawn from a distribution, or replayed from a file.
 *
 * The time and the error of compression depend on the distribution of the values, so the benchmark
 * does not use uniform noise. A drawn element depends only on the seed, the rank, the step and its
 * index. There is no state, so any rank can draw the values of any other rank. Drawing is not
 * timed, but it precedes every iteration and must be fast. An element is therefore drawn by a table
 * lookup (results/notes/bench.md).
 *
 *   normal      standard normal
 *   heavy-tail  Student's t with 3 degrees of freedom: variance 3, infinite fourth moment.
 *               Gradients late in training resemble this distribution: a few large values dominate
 *               their norm.
 *   FILE.npy    rows recorded by `train --dump-gradients` (base/npy.h). Several files are assigned
 *               to the ranks in turn. A row that is shorter than the measured size is repeated. */
#ifndef DDP_BENCH_GRADIENT_H
#define DDP_BENCH_GRADIENT_H

#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_gradient;

/* Checks the names of a source without opening a file. An empty list means `normal`. Returns
 * DDP_EUSAGE if a name is unknown, or if a distribution is combined with another source. */
int ddp_gradient_check(const struct ddp_string_list *source, struct ddp_err *err) DDP_MUST_CHECK;
/* Opens a source. Copies the list. Files stay open until destroy. Returns DDP_EUSAGE like
 * ddp_gradient_check, DDP_EINPUT if a file has no rows, DDP_ENOMEM, or an error of ddp_npy_open or
 * ddp_npy_read (base/npy.h). Not collective. */
int ddp_gradient_create(const struct ddp_string_list *source, uint64_t seed,
                        struct ddp_gradient **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_gradient_destroy(struct ddp_gradient *g);
/* Writes elements [first, first + n) of the gradient of `rank` in `step` to the array `out` [n].
 * ranks: number of ranks. Ranks that replay the same file read different rows if it has enough rows
 * (base/npy.h). Fails only if a file cannot be read. */
int ddp_gradient_draw(struct ddp_gradient *g, int rank, int ranks, uint64_t step, size_t first,
                      float *out, size_t n, struct ddp_err *err) DDP_MUST_CHECK;
/* Rounds x[n] to multiples of the unit ddp_gradient_step(), and limits their magnitude to 4096
 * units. A sum of up to 4096 such values is exact in f32, so any difference from the exact sum is
 * an error. NaN becomes 0. */
void ddp_gradient_round(const struct ddp_gradient *g, float *x, size_t n);
/* Returns the unit of rounding. It is the largest power of two that is at most a 64th of the
 * source's standard deviation, limited to 2^-100..2^60. For files, the root mean square of the
 * first values of the first file replaces the standard deviation. If this root mean square is 0,
 * the unit is 1. */
float ddp_gradient_step(const struct ddp_gradient *g);

#ifdef __cplusplus
}
#endif
#endif
