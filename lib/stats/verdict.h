/* The gate's decision, computed from the medians of paired runs.
 *
 * A *cell* is one point of the benchmark (collective, size, ...) or one step time of a training
 * run, with its measurements from all runs. A *pair* consists of runs of the base command and
 * equally many runs of the new command, close in time. For each cell, the gate applies the
 * sign-flip test (signflip.h) to the log ratios of the cell's pairs, and estimates the ratio of the
 * times, new / base, with one-sided bounds. Holm's method corrects the p values of all cells. */
#ifndef DDP_STATS_VERDICT_H
#define DDP_STATS_VERDICT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The gate as a whole gives a false FAIL with at most this probability. For each cell, the gate
 * gives a false PASS with at most this probability. If the gate looks at its pairs several times,
 * stats/sequential.h gives the level of each look. */
#define DDP_VERDICT_LEVEL 0.05

/* DDP_VERDICT_NONE: the gate has judged nothing. */
enum ddp_verdict { DDP_VERDICT_PASS, DDP_VERDICT_FAIL, DDP_VERDICT_INCONCLUSIVE, DDP_VERDICT_NONE };
enum ddp_cell_state {
    DDP_CELL_SAME,      /* the upper bound is below 1 + min_effect, and the cell is not FASTER */
    DDP_CELL_FASTER,    /* the upper bound is below 1 / (1 + min_effect); passes like SAME */
    DDP_CELL_SLOWER,    /* the test is significant and the lower bound exceeds 1 + min_effect */
    DDP_CELL_UNCERTAIN, /* the upper bound is at least 1 + min_effect, and the cell is not SLOWER */
    DDP_CELL_MISSING    /* no pair has measured the cell with both commands */
};
/* The names of the verdicts ("PASS", ..., "no verdict") and of the states ("same", "faster",
 * ...). */
extern const char *const ddp_verdict_names[], *const ddp_cell_state_names[];
/* Returns the name of a state for output to people. This is "not slower" for DDP_CELL_SAME. */
const char *ddp_cell_state_text(enum ddp_cell_state state);

struct ddp_cell {
    size_t pairs;        /* pairs in which both commands measured the cell */
    double ratio;        /* estimate of new/base times; above 1 is slower; NaN if missing */
    double lower, upper; /* bounds of ratio; 0 and inf with too few pairs; NaN if missing */
    double p, p_holm;    /* p value, and p value after Holm's correction; NaN if missing */
    enum ddp_cell_state state;
};

/* The settings of a decision. */
struct ddp_verdict_rule {
    double min_effect; /* smallest slow-down that counts: 0.05 means 5 % */
    double level; /* error probability of all corrected tests together, and of each bound alone */
};

/* Decides the verdict. `base` and `next` [pairs * cells] hold the median times, ordered by pair and
 * then by cell. A time is NaN if the command has not measured the cell in this pair. pairs <=
 * DDP_SIGNFLIP_MAX. Fills out [cells]. FAIL: at least one cell is SLOWER. PASS: there is at least
 * one cell, and the upper bound of every cell lies below 1 + min_effect. INCONCLUSIVE: everything
 * else. Returns 0, or -1 if memory is exhausted. */
int ddp_verdict_decide(const double *base, const double *next, size_t cells, size_t pairs,
                       const struct ddp_verdict_rule *rule, struct ddp_cell *out,
                       enum ddp_verdict *verdict);

#ifdef __cplusplus
}
#endif
#endif
