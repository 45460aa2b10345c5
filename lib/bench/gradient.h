/* Gradients for exchanges without a model: drawn from a distribution, or recorded ones replayed.
 *
 * The cost and the loss of compression depend on the distribution of the values, so the benchmark
 * does not use uniform noise. Element i of rank r in step s is a function of (seed, r, s, i) alone;
 * there is no state, and any rank can draw the values of any other. Drawing is untimed but precedes
 * every iteration, so it is a table lookup (results/notes/bench.md).
 *
 *   normal      standard normal
 *   heavy-tail  Student's t with 3 degrees of freedom: variance 3, infinite fourth moment.
 * Gradients late in training look like this: few values hold most of the energy. FILE.npy    rows
 * recorded by `train --dump-gradients` (base/npy.h). Several files are assigned to the ranks in
 * turn. A row is repeated if it is shorter than the measured size. */
#ifndef DDP_BENCH_GRADIENT_H
#define DDP_BENCH_GRADIENT_H

#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_gradient;

/* Checks the names without opening a file; an empty list means `normal`. Returns DDP_EUSAGE with
 * the legal names and the nearest one. */
int ddp_gradient_check(const struct ddp_string_list *source, struct ddp_err *err) DDP_MUST_CHECK;
/* Opens a source that ddp_gradient_check accepts; copies the list. Files stay open until destroy.
 * Not collective. Returns DDP_EINPUT also for a file without rows. */
int ddp_gradient_create(const struct ddp_string_list *source, uint64_t seed,
                        struct ddp_gradient **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_gradient_destroy(struct ddp_gradient *g);
/* Writes the elements [first, first + n) of a rank's gradient in a step to out [n]. ranks: number
 * of ranks, which determines the assignment of recorded rows. Fails only if a file cannot be
 * read. */
int ddp_gradient_draw(struct ddp_gradient *g, int rank, int ranks, uint64_t step, size_t first,
                      float *out, size_t n, struct ddp_err *err) DDP_MUST_CHECK;
/* Rounds x[n] to multiples of one power of two: at most a 64th of the source's standard deviation,
 * and at most 4096 multiples. So few bits keep sums over ranks and steps exact in any order, and a
 * wrong sum cannot be mistaken for rounding. NaN becomes 0. */
void ddp_gradient_round(const struct ddp_gradient *g, float *x, size_t n);
/* Returns that power of two. */
float ddp_gradient_step(const struct ddp_gradient *g);

#ifdef __cplusplus
}
#endif
#endif
