/* Tests whether an accuracy became worse by more than a margin. The functions keep no state.
 *
 * Each training seed gives one sample: the accuracy with the new command minus the accuracy with
 * the base command. The test computes one-sided bounds of the mean difference from Student's t
 * distribution. The new command is not worse if the lower bound is above -margin. It is worse if
 * the upper bound is below -margin. If the differences are normally distributed, the probability of
 * a false "not worse" is at most pass_level, and that of a false "worse" is at most fail_level.
 * tests/unit/test_noninferior.c measures both probabilities. */
#ifndef DDP_STATS_NONINFERIOR_H
#define DDP_STATS_NONINFERIOR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of seeds that the test recommends (seeds_needed). */
#define DDP_NONINFERIOR_SEEDS_MAX 100

enum ddp_noninferior_state {
    DDP_NOT_WORSE,          /* the lower bound lies above -margin */
    DDP_WORSE,              /* the upper bound lies below -margin */
    DDP_ACCURACY_UNCERTAIN, /* neither of these, or there are fewer than two differences */
};
/* "not-worse", "worse" and "uncertain". */
extern const char *const ddp_noninferior_names[];

struct ddp_noninferior_rule {
    double margin; /* largest loss of accuracy that is accepted, as a fraction of 1 */
    /* pass_level: probability of DDP_NOT_WORSE if the true mean difference is -margin. fail_level:
     * probability of DDP_WORSE in this case. */
    double pass_level, fail_level;
    /* The test uses at least this standard deviation. An accuracy is a multiple of 1 / (number of
     * images), so all differences can be equal by chance, with a standard deviation of 0. */
    double least_deviation;
};

struct ddp_noninferior {
    size_t seeds;           /* number of differences */
    double mean, deviation; /* of the differences; NaN: too few (1 or 2 are needed) */
    double lower, upper;    /* one-sided bounds of the mean; NaN with fewer than 2 differences */
    enum ddp_noninferior_state state;
    /* Number of seeds with which the test would decide, estimated from the mean and the deviation.
     * 2: the deviation is not known. 0: the state is not DDP_ACCURACY_UNCERTAIN, or more than
     * DDP_NONINFERIOR_SEEDS_MAX seeds are needed. */
    size_t seeds_needed;
};

/* Returns the quantile of Student's t distribution with df >= 1 degrees of freedom. 0 < p < 1. */
double ddp_student_t(double p, size_t df);
/* Tests the differences d [n]. */
void ddp_noninferior_decide(const double *d, size_t n, const struct ddp_noninferior_rule *rule,
                            struct ddp_noninferior *out);

#ifdef __cplusplus
}
#endif
#endif
