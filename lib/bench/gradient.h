/* Gradients to exchange without a model: drawn from a distribution, or recorded ones replayed.
 *
 * What compression costs and keeps depends on how values are distributed, so the bench layer does
 * not exchange uniform noise. Element i of rank r in step s is a function of (seed, r, s, i) alone:
 * no state, any rank could draw any other's. Drawing is untimed, but happens before every
 * iteration, so it is a table lookup: about 2 ns an element.
 *
 *   normal      standard normal
 *   heavy-tail  Student's t with 3 degrees of freedom: finite variance (3), infinite fourth moment,
 *               as gradients late in training look: few values hold most of the energy
 *   FILE.npy    rows recorded by `train --dump-gradients` (base/npy.h); several files are dealt to
 *               the ranks in turn, a shorter row is repeated to fill the size that is measured
 */
#ifndef DDP_BENCH_GRADIENT_H
#define DDP_BENCH_GRADIENT_H

#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_gradient;

/* Is it one of the above, by its text? DDP_EUSAGE lists them and names the nearest. An empty list
 * is `normal`. Opens no file. */
int ddp_gradient_check(const struct ddp_string_list *source, struct ddp_err *err) DDP_MUST_CHECK;
/* Not collective. source as checked, copied; files stay open until destroy. DDP_EINPUT also for a
 * file without rows. */
int ddp_gradient_create(const struct ddp_string_list *source, uint64_t seed,
                        struct ddp_gradient **out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_gradient_destroy(struct ddp_gradient *g);
/* out [n]: elements [first, first + n) of rank's gradient in a step (of `ranks` ranks, which decide
 * who gets which recorded row). Fails only when a file cannot be read. */
int ddp_gradient_draw(struct ddp_gradient *g, int rank, int ranks, uint64_t step, size_t first,
                      float *out, size_t n, struct ddp_err *err) DDP_MUST_CHECK;
/* Rounds x[n] to whole multiples of one power of two, a 64th of the source's standard deviation or
 * less, at most 4096 multiples: so few bits that sums over ranks and steps stay exact, in any
 * order, and a wrong sum cannot hide behind rounding. What is no number becomes 0. */
void ddp_gradient_round(const struct ddp_gradient *g, float *x, size_t n);
/* That power of two. */
float ddp_gradient_step(const struct ddp_gradient *g);

#ifdef __cplusplus
}
#endif
#endif
