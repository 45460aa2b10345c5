/* A sign-flip test of paired differences. The test decides whether the centre of the differences is
 * above zero. ddp_hodges_lehmann estimates the centre and its bounds. The gate applies the test to
 * log ratios of times. The functions keep no state.
 *
 * The test assumes that each difference is as likely to be d as -d if nothing changed. This
 * assumption holds if the order of the two commands of a pair is random. The test makes no other
 * assumption about the distribution. The statistic is the sum of the differences, each limited to
 * the range from -clip to clip (Huber 1981, 1.7). *clip* is twice the third quartile of all |d|.
 * signflip.c adds only the positive differences, which gives the same p value. On normal data this
 * sum is 99 % as efficient as the mean. On data with two modes, rank statistics jump between the
 * modes, but the sum does not.
 *
 * The test is exact: it covers all 2^n sign patterns, and clip does not depend on the signs. The
 * sum of each pattern is a subset sum of one half of the differences plus a subset sum of the other
 * half (Horowitz & Sahni 1974). The bounds of the centre are the values at which the test changes
 * its result. */
#ifndef DDP_STATS_SIGNFLIP_H
#define DDP_STATS_SIGNFLIP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of differences. Each half then has 2^20 subset sums. */
#define DDP_SIGNFLIP_MAX 40

/* Sets *p to the probability that random signs give at least the observed statistic. *p is small if
 * the sum of the differences d [n], each limited by the clip, lies far above zero, and 1 if all
 * differences are zero or n is 0. n <= DDP_SIGNFLIP_MAX. Returns 0, or -1 if memory is exhausted.
 */
int ddp_signflip_p(const double *d, size_t n, double *p);

/* Returns 2^-n, the smallest p value that n pairs can reach. */
double ddp_signflip_least_p(size_t n);
/* Returns the smallest number of pairs with which a cell (verdict.h) can be significant at `level`
 * after Holm's correction over `cells` cells. This is ceil(log2(cells / level)). */
size_t ddp_signflip_least_pairs(size_t cells, double level);

/* Estimates the centre of d [n] by the median of the Walsh averages (Hodges & Lehmann). *lower is
 * the largest centre that the sign-flip test rejects as too low, and *upper is the smallest centre
 * that the test rejects as too high. Each bound is one-sided with confidence 1 - alpha. If 2^-n >
 * alpha, the bounds are -inf and inf. 1 <= n <= DDP_SIGNFLIP_MAX. Returns 0, or -1 if memory is
 * exhausted. */
int ddp_hodges_lehmann(const double *d, size_t n, double alpha, double *centre, double *lower,
                       double *upper);

/* Applies Holm's step-down correction (Holm 1979) to the p values p [n]. adjusted [n] may be the
 * same array as p. p[i] <= adjusted[i] <= 1. Returns 0, or -1 if memory is exhausted. */
int ddp_holm(const double *p, size_t n, double *adjusted);

#ifdef __cplusplus
}
#endif
#endif
