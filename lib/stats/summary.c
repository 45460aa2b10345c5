#include "stats/summary.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ddp_summary_ci95_fraction(const struct ddp_summary *s)
{
    return fmax(s->ci95_hi - s->median, s->median - s->ci95_lo) / s->median;
}

void ddp_sort_doubles(double *v, size_t n)
{
    qsort(v, n, sizeof *v, compare_doubles);
}

double ddp_sorted_median(const double *v, size_t n)
{
    if (n == 0)
        return NAN;
    return n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2;
}

double ddp_median(double *v, size_t n)
{
    ddp_sort_doubles(v, n);
    return ddp_sorted_median(v, n);
}

double ddp_lower_median(double *v, size_t n)
{
    ddp_sort_doubles(v, n);
    return v[(n - 1) / 2];
}

/* Returns the percentile by nearest rank, the ceil(percent * n / 100)-th smallest value. The
 * integer division makes the ceiling exact. */
static double percentile(const double *sorted, size_t n, size_t percent)
{
    size_t rank = (size_t)(((unsigned __int128)n * percent + 99) / 100);
    return sorted[rank > 0 ? rank - 1 : 0];
}

/* Returns the log of P(B = k) for B ~ Binomial(n, 1/2). Uses lgamma because 2^-n underflows for n
 * >= 1075. */
static double log_probability(size_t n, size_t k)
{
    int sign; /* lgamma_r() is used because lgamma() writes a global variable */
    return lgamma_r((double)n + 1, &sign) - lgamma_r((double)k + 1, &sign) -
           lgamma_r((double)(n - k) + 1, &sign) - (double)n * log(2);
}

/* Let hi = n + 1 - lo. X_(k) is the k-th smallest sample. The interval from X_(lo) to X_(hi) misses
 * the median if fewer than lo of the n samples lie on one side of the median. Each sample lies on a
 * given side with probability 1/2. Samples that equal the median only raise the coverage. Therefore
 *     coverage = 1 - 2 * P(B <= lo - 1),  B ~ Binomial(n, 1/2).
 * The largest lo whose coverage is at least `level` gives the narrowest interval. The loop adds the
 * terms of P from the smallest term up. */
int ddp_median_interval(size_t n, double level, size_t *lo, size_t *hi)
{
    assert(level > 0 && level < 1);
    /* The factor 1 + 1e-9 absorbs the rounding of lgamma if the coverage equals the level
     * exactly. */
    double tail_max = (1 - level) / 2 * (1 + 1e-9), tail = 0;
    /* The terms more than 12 standard deviations (sqrt(n)/2 each) below the mean add up to less
     * than 1e-32 and are skipped. */
    double start = (double)n / 2 - 6 * sqrt((double)n);
    size_t best = 0;
    /* k is lo - 1. The loop ends before lo = k + 1 exceeds hi = n - k. */
    for (size_t k = start > 0 ? (size_t)start : 0; k < (n + 1) / 2; k++) {
        tail += exp(log_probability(n, k));
        if (tail > tail_max)
            break;
        best = k + 1;
    }
    if (best == 0)
        return -1;
    *lo = best;
    *hi = n + 1 - best;
    return 0;
}

static const struct ddp_summary unknown = {0,   NAN, NAN, NAN, NAN, NAN,
                                           NAN, NAN, NAN, NAN, NAN, NAN};

int ddp_summarize(const double *sample, size_t n, struct ddp_summary *out)
{
    if (n == 0) {
        *out = unknown;
        return 0;
    }
    if (n > SIZE_MAX / sizeof *sample)
        return -1;
    double *sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return -1;
    memcpy(sorted, sample, n * sizeof *sorted);
    ddp_sort_doubles(sorted, n);

    struct ddp_summary s = unknown;
    s.n = n;
    s.min = sorted[0];
    s.max = sorted[n - 1];
    s.median = ddp_sorted_median(sorted, n);
    size_t lo, hi;
    if (ddp_median_interval(n, 0.95, &lo, &hi) == 0) {
        s.ci95_lo = sorted[lo - 1];
        s.ci95_hi = sorted[hi - 1];
    }
    /* Compute the variance in two passes, because times are large numbers that differ little. */
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += sorted[i];
    s.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (sorted[i] - s.mean) * (sorted[i] - s.mean);
    if (n >= 2)
        s.stddev = sqrt(squares / (double)(n - 1));
    s.p25 = percentile(sorted, n, 25);
    s.p75 = percentile(sorted, n, 75);
    if (n >= 20)
        s.p95 = percentile(sorted, n, 95);
    if (n >= 100)
        s.p99 = percentile(sorted, n, 99);
    free(sorted);
    *out = s;
    return 0;
}
