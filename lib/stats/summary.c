#include "stats/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* log P(X = k) for X ~ Binomial(n, 1/2). */
static double log_binomial_half(size_t n, size_t k)
{
    double N = (double)n, K = (double)k;
    return lgamma(N + 1) - lgamma(K + 1) - lgamma(N - K + 1) - N * log(2);
}

int ddp_median_interval(size_t n, double level, size_t *lo, size_t *hi)
{
    /* P(X_(j) <= median <= X_(n+1-j)) = 1 - 2 P(B <= j-1). The largest j that keeps the level: walk
     * up from the tail. */
    double tail = 0;
    size_t j = 0;
    size_t k = 0;
    if (n > 1000) {
        /* Below 12 standard deviations under the mean the tail is less than 1e-32. */
        double start = 0.5 * (double)n - 6 * sqrt((double)n);
        k = start > 0 ? (size_t)start : 0;
    }
    for (; k < (n + 1) / 2; k++) {
        tail += exp(log_binomial_half(n, k));
        if (1 - 2 * tail < level)
            break;
        j = k + 1;
    }
    if (j == 0)
        return -1;
    *lo = j;
    *hi = n + 1 - j;
    return 0;
}

/* The ceil(p*n)-th smallest. */
static double nearest_rank(const double *sorted, size_t n, double p)
{
    size_t rank = (size_t)ceil(p * (double)n - 1e-9);
    return sorted[rank > 0 ? rank - 1 : 0];
}

static void fill_moments(const double *sorted, size_t n, struct ddp_summary *out)
{
    double mean = 0, m2 = 0;
    for (size_t i = 0; i < n; i++) {
        double d = sorted[i] - mean;
        mean += d / (double)(i + 1);
        m2 += d * (sorted[i] - mean);
    }
    out->mean = mean;
    if (n >= 2)
        out->stddev = sqrt(m2 / (double)(n - 1));
}

int ddp_summarize(const double *sample, size_t n, struct ddp_summary *out)
{
    size_t lo, hi;
    *out = (struct ddp_summary){.n = n,
                                .median = NAN,
                                .ci95_lo = NAN,
                                .ci95_hi = NAN,
                                .mean = NAN,
                                .stddev = NAN,
                                .min = NAN,
                                .p25 = NAN,
                                .p75 = NAN,
                                .p95 = NAN,
                                .p99 = NAN,
                                .max = NAN};
    if (n == 0)
        return 0;
    double *sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return -1;
    memcpy(sorted, sample, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_double);
    fill_moments(sorted, n, out);
    out->median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    out->min = sorted[0];
    out->p25 = nearest_rank(sorted, n, 0.25);
    out->p75 = nearest_rank(sorted, n, 0.75);
    out->max = sorted[n - 1];
    if (n >= 20)
        out->p95 = nearest_rank(sorted, n, 0.95);
    if (n >= 100)
        out->p99 = nearest_rank(sorted, n, 0.99);
    if (ddp_median_interval(n, 0.95, &lo, &hi) == 0) {
        out->ci95_lo = sorted[lo - 1];
        out->ci95_hi = sorted[hi - 1];
    }
    free(sorted);
    return 0;
}
