/* One-sample location by random signs: is the centre of paired log ratios above zero, where is it,
 * and how sure is that? Pure functions on arrays.
 *
 * Assumes that each difference is as likely to be d as -d when nothing changed, which randomised
 * pairs guarantee; no distribution is assumed. The statistic is the sum of the differences, each
 * limited to *clip* = twice the third quartile of all |d|: on normal data that is the mean (99 %
 * efficient), on two modes it does not jump between them as rank statistics do, and an outlier
 * counts as clip and no more. |d| does not change with signs, so the test is exact: all 2^n
 * patterns are counted, as the sorted subset sums of two halves. Bounds invert the same test; the
 * estimate is Hodges and Lehmann's (1963). Huber 1981, 1.7; Horowitz & Sahni 1974 for the halves.
 */
#ifndef DDP_STATS_SIGNFLIP_H
#define DDP_STATS_SIGNFLIP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most differences: 2^20 sums a half, milliseconds. */
#define DDP_SIGNFLIP_MAX 40

/* *p = P(T >= observed) under random signs: small when d[n] lie above zero; 1 when all are zero.
 * n at most DDP_SIGNFLIP_MAX. 0, or -1 when memory is exhausted. */
int ddp_signflip_p(const double *d, size_t n, double *p);

/* Smallest p that n pairs can reach: 2^-n. */
double ddp_signflip_least_p(size_t n);
/* Pairs below which no cell of `cells` could ever be significant at `level` after Holm's
 * correction: ceil(log2(cells / level)). */
size_t ddp_signflip_least_pairs(size_t cells, double level);

/* The Hodges-Lehmann estimate of the centre of d[n] (median of the Walsh averages), and one-sided
 * lower and upper bounds, each with confidence 1 - alpha: the centre up to which (from which) the
 * sign-flip test rejects; -inf, inf where 2^-n > alpha. 1 <= n <= DDP_SIGNFLIP_MAX. 0, or -1 when
 * memory is exhausted. */
int ddp_hodges_lehmann(const double *d, size_t n, double alpha, double *centre, double *lower,
                       double *upper);

/* Holm's step-down correction: adjusted[i] >= p[i], at most 1; p[n] may be adjusted. 0, or -1 when
 * memory is exhausted. Holm 1979. */
int ddp_holm(const double *p, size_t n, double *adjusted);

#ifdef __cplusplus
}
#endif
#endif
