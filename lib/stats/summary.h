/* Summary statistics of a sample of times: pure functions on arrays.
 *
 * Percentiles are by nearest rank: the ceil(p*n)-th smallest. Outliers stay. The interval of the
 * median is the exact, distribution-free one from the binomial distribution of order statistics
 * (Hoefler & Belli, SC15, 3.1.3; Le Boudec 2010, 2.2.2). */
#ifndef DDP_STATS_SUMMARY_H
#define DDP_STATS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the unit of the samples; NaN where it does not exist: ci95 below 6 samples, p95 below 20, p99
 * below 100, stddev (sample, n-1) below 2, everything for n 0. median of an even n: mean of the
 * middle two. */
struct ddp_summary {
    size_t n;
    double median;
    double ci95_lo, ci95_hi;
    double mean;
    double stddev;
    double min, p25, p75;
    double p95;
    double p99;
    double max;
};

/* Sorts a copy of sample[n]. Returns 0, or -1 when memory is exhausted. */
int ddp_summarize(const double *sample, size_t n, struct ddp_summary *out);

/* Ranks (1-based) of the order statistics that bound the median with at least `level` confidence:
 * the narrowest symmetric pair with P(X_(lo) <= median <= X_(hi)) >= level. Returns 0, or -1 when n
 * is too small for the level. */
int ddp_median_interval(size_t n, double level, size_t *lo, size_t *hi);

#ifdef __cplusplus
}
#endif
#endif
