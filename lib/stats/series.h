/* Diagnoses a sequence of measurements. The confidence interval of the median is valid only if the
 * samples are independent and do not drift. ddp_series_judge() tests both conditions. The ddp_stop
 * functions decide when an adaptive measurement has enough samples. The functions keep no state. */
#ifndef DDP_STATS_SERIES_H
#define DDP_STATS_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "stats/summary.h"

#ifdef __cplusplus
extern "C" {
#endif

/* If a series has fewer samples, all members of the result are 0 or false. */
#define DDP_SERIES_MIN 20

/* The results of the two tests. The tests use the position of each sample in sorted order (its
 * statistical rank), so outliers and bimodal samples do not disturb the tests. At most 4 % of the
 * series that are independent and do not drift are reported as drifting or autocorrelated. */
struct ddp_series {
    /* Spearman's correlation with time is significant at 2 % (two-sided). If the series is also
     * autocorrelated, the test multiplies the variance of the correlation by (1 + r) / max(1 - r,
     * 1/n), where r is `autocorrelation`. */
    bool drifting;
    /* The lag-1 correlation r of the detrended ranks is significantly positive at 2 % (one-sided).
     * Only positive correlation makes intervals too narrow. */
    bool autocorrelated;
    double trend;           /* Spearman's rho with time, -1..1 */
    double autocorrelation; /* r, -1..1 */
    /* The median of the last third of the samples divided by the median of the first third, minus
     * 1. */
    double shift;
};

/* Judges sample [n], given in the order of measurement. A constant or short series is neither
 * drifting nor autocorrelated. Returns 0, or -1 if memory is exhausted. */
int ddp_series_judge(const double *sample, size_t n, struct ddp_series *out);

/* Returns the number of samples at which adaptive stopping checks the precision next, if there are
 * n samples now. The checks are at 20, 30, 45, 67, ... samples. There are few checks, because each
 * check reduces the coverage of the interval. */
size_t ddp_stop_next(size_t n);
/* Returns whether half the width of the 95 % interval is at most `precision` times the median. 0.02
 * means 2 %. */
bool ddp_stop_precise(const struct ddp_summary *s, double precision);

#ifdef __cplusplus
}
#endif
#endif
