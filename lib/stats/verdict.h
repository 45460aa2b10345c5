/* The gate's decision: pure functions on the medians of paired launches.
 *
 * A *cell* is one point of the benchmark (collective, size, ...), measured in every launch. A
 * *pair* is one launch of base and one of new, close in time, in random order. Per cell the log
 * ratios of the pairs are tested (signflip.h), the cells' p values are corrected by Holm, and the
 * ratio new/base is estimated with one-sided 95 % bounds. */
#ifndef DDP_STATS_VERDICT_H
#define DDP_STATS_VERDICT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The family-wise level of the test and of each bound. */
#define DDP_VERDICT_LEVEL 0.05

/* FASTER (the upper bound below 1 / (1 + min_effect)) and SAME both pass. UNCERTAIN: the bounds
 * allow a slow-down of min_effect, the test does not show one. MISSING: no pair has the cell on
 * both sides. */
enum ddp_verdict { DDP_VERDICT_PASS, DDP_VERDICT_FAIL, DDP_VERDICT_INCONCLUSIVE };
enum ddp_cell_state {
    DDP_CELL_SAME,
    DDP_CELL_FASTER,
    DDP_CELL_SLOWER,
    DDP_CELL_UNCERTAIN,
    DDP_CELL_MISSING
};
const char *ddp_verdict_name(enum ddp_verdict v);           /* "PASS", "FAIL", "INCONCLUSIVE" */
const char *ddp_cell_state_name(enum ddp_cell_state state); /* "same", "slower", ... */

/* ratio: Hodges-Lehmann estimate of new/base times; above 1 is slower. pairs: that were used. */
struct ddp_cell {
    size_t pairs;
    double ratio;
    double lower, upper; /* NaN when missing; 0 and inf where too few pairs bound it */
    double p, p_holm;    /* NaN when missing */
    enum ddp_cell_state state;
};

/* base, next [cells * pairs], cell-major: the median times of launches; NaN where a launch lacks
 * the cell. min_effect: 0.05 = 5 %. out [cells]. pairs at
 * most DDP_SIGNFLIP_MAX. FAIL if a cell is Holm-significant and its lower
 * bound exceeds 1 + min_effect; PASS if every upper bound is below it; else INCONCLUSIVE. 0, or -1
 * when memory is exhausted. */
int ddp_verdict_decide(const double *base, const double *next, size_t cells, size_t pairs,
                       double min_effect, struct ddp_cell *out, enum ddp_verdict *verdict);

#ifdef __cplusplus
}
#endif
#endif
