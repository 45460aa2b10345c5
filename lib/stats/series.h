/* Is a sequence of measurements what the interval of its median assumes, independent and steady?
 * And when has one measured enough? Pure functions on arrays. */
#ifndef DDP_STATS_SERIES_H
#define DDP_STATS_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "stats/summary.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Below this many samples nothing is said. */
#define DDP_SERIES_MIN 20

/* drifting: the rank correlation with time (Spearman) is beyond 2 % two-sided, its variance
 * enlarged by (1 + r)/(1 - r) when what is left without the trend is autocorrelated.
 * autocorrelated: the lag-1 correlation r of the ranks without their trend is beyond 2 % one-sided
 * (positive: that is what makes intervals too narrow). Ranks: neither outliers nor two modes
 * matter. So on independent series at most 4 % are called either. */
struct ddp_series {
    bool drifting;
    bool autocorrelated;
    double trend;           /* Spearman's rho with time, -1..1 */
    double autocorrelation; /* r, -1..1 */
};

/* sample [n] in the order of measurement. 0, or -1 when memory is exhausted. Constant or short
 * series are neither. */
int ddp_series_judge(const double *sample, size_t n, struct ddp_series *out);

/* Adaptive stopping looks at n = 20, 30, 45, 67, ...: few looks, so that the interval keeps its
 * coverage. The next look after n samples. */
size_t ddp_stop_next(size_t n);
/* Is half the 95 % interval within `precision` (0.02: 2 %) of the median? */
bool ddp_stop_precise(const struct ddp_summary *s, double precision);

#ifdef __cplusplus
}
#endif
#endif
