/* Summary statistics of a sample of times.
 *
 * A percentile such as p25 is the ceil(0.25 n)-th smallest of n samples (nearest rank). Outliers
 * are kept. The interval of the median contains the true median with a probability of at least
 * 0.95, whatever the distribution of the times is. ddp_median_interval computes the interval from
 * the binomial distribution (Hoefler & Belli, SC15, 3.1.3; Le Boudec 2010, 2.2.2). */
#ifndef DDP_STATS_SUMMARY_H
#define DDP_STATS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All values have the unit of the samples. A value for which there are too few samples is NaN. */
struct ddp_summary {
    size_t n;
    double median;           /* for even n, the mean of the middle two samples */
    double ci95_lo, ci95_hi; /* 95 % interval of the median; needs 6 samples */
    double mean;
    double stddev; /* with divisor n-1; needs 2 samples */
    double min, p25, p75;
    double p95; /* needs 20 samples */
    double p99; /* needs 100 samples */
    double max;
};

/* Summarises sample [n]. Sorts a copy. Returns 0, or -1 if memory is exhausted. */
int ddp_summarize(const double *sample, size_t n, struct ddp_summary *out);

/* Returns the distance from the median to the farther end of the 95 % interval, divided by the
 * median. */
double ddp_summary_ci95_fraction(const struct ddp_summary *s);

/* Sorts v [n] in ascending order. */
void ddp_sort_doubles(double *v, size_t n);
/* Sorts v [n] in ascending order, and sets index [n] to the former positions of the values. Equal
 * values keep their order, and -0 precedes 0. `index` may be NULL. Returns 0, or -1 if memory is
 * exhausted. */
int ddp_sort_indexed(double *v, size_t *index, size_t n);
/* Returns the median of the sorted values v [n]. If n is even, this is the mean of the middle two
 * values. Returns NaN if n is 0. */
double ddp_sorted_median(const double *v, size_t n);
/* Sorts v [n] and returns its median. */
double ddp_median(double *v, size_t n);
/* Sets *median to the median of v [n]. Sorts a copy. Returns 0, or -1 if memory is exhausted. */
int ddp_median_of(const double *v, size_t n, double *median);
/* Sorts v [n], n > 0, and returns the median. If n is even, returns the smaller one of the middle
 * two values. */
double ddp_lower_median(double *v, size_t n);

/* Finds the interval of the median. X_(k) is the k-th smallest of n samples, and hi is n + 1 - lo.
 * Sets *lo to the largest lo for which P(X_(lo) <= median <= X_(hi)) >= level, and sets *hi. Both
 * count from 1. Returns 0, or -1 if n is too small for the level. */
int ddp_median_interval(size_t n, double level, size_t *lo, size_t *hi);

#ifdef __cplusplus
}
#endif
#endif
