#include "stats/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Quantiles of the standard normal distribution. A value lies outside +-DRIFT_Z with probability
 * 0.02, and above AUTOCORRELATION_Z with probability 0.02. */
#define DRIFT_Z           2.3263
#define AUTOCORRELATION_Z 2.0537
#define FIRST_LOOK        20

/* Fills rank [n] with the midrank of each sample minus the mean rank. sorted [n]: the samples in
 * ascending order. index [n]: their positions in the series. Returns the sum of the squares of
 * rank [n]. */
static double centred_ranks(const double *sorted, const size_t *index, size_t n, double *rank)
{
    double squares = 0, mean = ((double)n + 1) / 2;
    for (size_t first = 0, next; first < n; first = next) {
        next = first + 1;
        while (next < n && sorted[next] == sorted[first])
            next++;
        double centred = (double)(first + 1 + next) / 2 - mean;
        for (size_t i = first; i < next; i++)
            rank[index[i]] = centred;
        squares += centred * centred * (double)(next - first);
    }
    return squares;
}

/* Returns the lag-1 correlation of rank [n] after the trend `slope` is subtracted. */
static double residual_correlation(const double *rank, size_t n, double slope)
{
    double products = 0, squares = 0, before = 0, middle = ((double)n - 1) / 2;
    for (size_t i = 0; i < n; i++) {
        double left = rank[i] - slope * ((double)i - middle);
        squares += left * left;
        if (i > 0)
            products += left * before;
        before = left;
    }
    return squares > 0 ? products / squares : 0;
}

int ddp_series_judge(const double *sample, size_t n, struct ddp_series *out)
{
    *out = (struct ddp_series){.trend = 0};
    if (n < DDP_SERIES_MIN)
        return 0;
    double *sorted = malloc(n * sizeof *sorted), *rank = malloc(n * sizeof *rank);
    size_t *index = malloc(n * sizeof *index);
    if (sorted != NULL)
        memcpy(sorted, sample, n * sizeof *sorted);
    if (!sorted || !rank || !index || ddp_sort_indexed(sorted, index, n) != 0) {
        free(index);
        free(rank);
        free(sorted);
        return -1;
    }
    double squares = centred_ranks(sorted, index, n, rank), products = 0;
    double middle = ((double)n - 1) / 2, count = (double)n;
    double time_squares = count * (count * count - 1) / 12;
    for (size_t i = 0; i < n; i++)
        products += rank[i] * ((double)i - middle);
    if (squares > 0) {
        double slope = products / time_squares;
        double r = residual_correlation(rank, n, slope);
        out->trend = products / sqrt(squares * time_squares);
        out->autocorrelation = r;
        out->autocorrelated = r * sqrt(count) > AUTOCORRELATION_Z;
        double enlarged = out->autocorrelated ? (1 + r) / fmax(1 - r, 1 / count) : 1;
        out->drifting = fabs(out->trend) * sqrt((count - 1) / enlarged) > DRIFT_Z;
    }
    free(index);
    free(rank);
    free(sorted);
    double first, last;
    if (ddp_median_of(sample, n / 3, &first) != 0 ||
        ddp_median_of(sample + n - n / 3, n / 3, &last) != 0)
        return -1;
    out->shift = first > 0 ? last / first - 1 : 0;
    return 0;
}

size_t ddp_stop_next(size_t n)
{
    size_t look = FIRST_LOOK;
    while (look <= n)
        look = look * 3 / 2;
    return look;
}

bool ddp_stop_precise(const struct ddp_summary *s, double precision)
{
    return (s->ci95_hi - s->ci95_lo) / 2 <= precision * s->median; /* false for NaN */
}
