/* From which density on a sparse exchange is slower than a dense one: the arithmetic, without
 * communication. record.h says what the three figures mean. */
#ifndef DDP_BENCH_BREAK_EVEN_H
#define DDP_BENCH_BREAK_EVEN_H

#include "coll/sparse_coll.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By bytes: the largest density k/n at which `alg` sends no more than dense_bytes from any of
 * `ranks` ranks, by its cost(); 0 when already one entry is too much. NaN for n 0 or one rank. */
double ddp_break_even_predicted(const struct ddp_sparse_alg *alg, int ranks, size_t n,
                                double dense_bytes);
/* By the phases [3] in ns of an exchange at `density`, of which the first does not depend on it and
 * the others are proportional to it: the density that takes dense_ns. NaN for density 0. */
double ddp_break_even_estimated(const double *phase_ns, double density, double dense_ns);

/* Times measured at some densities, ascending. */
struct ddp_density_times {
    int n;
    double density[16], ns[16];
};
/* Keeps the order; at most 16. */
void ddp_density_times_add(struct ddp_density_times *t, double density, double ns);
/* Where the time first reaches dense_ns: interpolated between two measured densities, both axes
 * logarithmic. 0: already at the lowest, 1: not at the highest. NaN without times. *low, *high: the
 * densities it lies between, for who wants to measure there; equal when it lies outside. */
double ddp_break_even_measured(const struct ddp_density_times *t, double dense_ns, double *low,
                               double *high);

#ifdef __cplusplus
}
#endif
#endif
