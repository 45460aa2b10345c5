/* Computes break-even densities. A sparse exchange is faster than a dense one below its break-even
 * density. record.h explains the three figures: predicted, estimated and measured. The functions do
 * not communicate. */
#ifndef DDP_BENCH_BREAK_EVEN_H
#define DDP_BENCH_BREAK_EVEN_H

#include "coll/sparse/sparse_coll.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the predicted figure: the largest density k/n at which no rank sends more than
 * dense_bytes according to alg->cost(). Returns 0 if a rank sends more even with one entry, and NaN
 * if n is 0 or there is only one rank. */
double ddp_break_even_predicted(const struct ddp_sparse_alg *alg, int ranks, size_t n,
                                double dense_bytes);
/* Returns the estimated figure: the density at which the exchange takes dense_ns. phase_ns [3]:
 * times of encoding, exchange and decoding at `density`. The time of encoding is assumed to be
 * constant, the other two to be proportional to the density. The result is limited to 0..1. Returns
 * NaN if a time is NaN or density is not positive. */
double ddp_break_even_estimated(const double *phase_ns, double density, double dense_ns);

/* Times measured at some densities, in ascending order of density. */
struct ddp_density_times {
    int n;
    double density[16], ns[16];
};
/* Inserts a measured time. At most 16 times fit. */
void ddp_density_times_add(struct ddp_density_times *t, double density, double ns);
/* Returns the measured figure: the lowest density at which the exchange takes at least dense_ns.
 * Interpolates between two measured densities on logarithmic axes. Returns 0 if the exchange takes
 * that long even at the lowest measured density, and 1 if it takes less time even at the highest.
 * Returns NaN if nothing was measured or dense_ns is NaN. *low, *high: the two measured densities
 * around the result, or equal values if the result is not interpolated. A caller can measure at
 * densities between them to refine the result. */
double ddp_break_even_measured(const struct ddp_density_times *t, double dense_ns, double *low,
                               double *high);

#ifdef __cplusplus
}
#endif
#endif
