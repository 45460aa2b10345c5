/* Break-even densities: the density from which a sparse exchange is slower than a dense one. This
 * file only calculates; it does not communicate. record.h explains the three figures. */
#ifndef DDP_BENCH_BREAK_EVEN_H
#define DDP_BENCH_BREAK_EVEN_H

#include "coll/sparse_coll.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prediction from bytes: the largest density k/n at which `alg` sends, by its cost(), no more than
 * dense_bytes from any of `ranks` ranks. 0 if a single entry is already too much. NaN if n is 0 or
 * there is one rank. */
double ddp_break_even_predicted(const struct ddp_sparse_alg *alg, int ranks, size_t n,
                                double dense_bytes);
/* Estimate from the three phases, in ns, of an exchange at `density`: the density at which the
 * exchange takes dense_ns. The first phase is assumed to be constant, the others proportional to
 * the density. NaN if density is 0. */
double ddp_break_even_estimated(const double *phase_ns, double density, double dense_ns);

/* Times measured at some densities, in ascending order of density. */
struct ddp_density_times {
    int n;
    double density[16], ns[16];
};
/* Inserts a time. There is room for 16. */
void ddp_density_times_add(struct ddp_density_times *t, double density, double ns);
/* Returns the density at which the time first reaches dense_ns, interpolated between two measured
 * densities with logarithmic axes. Returns 0 if even the lowest density takes that long, 1 if even
 * the highest is faster, and NaN without times. *low, *high: the two densities around the result,
 * where a caller can measure next; equal if there are none. */
double ddp_break_even_measured(const struct ddp_density_times *t, double dense_ns, double *low,
                               double *high);

#ifdef __cplusplus
}
#endif
#endif
