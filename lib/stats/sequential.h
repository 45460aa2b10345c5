/* Significance levels of a sequential test. A sequential test looks at its data several times and
 * stops as soon as a look rejects. Each look is another chance of a false result, so each look uses
 * a smaller level than the whole test. The functions keep no state.
 *
 * The levels follow the alpha spending of Lan & DeMets (Biometrika 70, 1983). Look k sees n_k
 * values, and the last look sees n_K values. Up to look k, the test may spend an error probability
 * of alpha * log(1 + (e - 1) * n_k / n_K). This spending function resembles Pocock's test. For sums
 * of independent normal values, the probability that look k is the first one to reject is computed
 * by numerical integration (Armitage, McPherson & Rowe 1969). The statistic of the sign-flip test
 * (signflip.h) is not normally distributed. tests/unit/test_verdict.c therefore measures the error
 * rates of the whole gate. */
#ifndef DDP_STATS_SEQUENTIAL_H
#define DDP_STATS_SEQUENTIAL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of looks. */
#define DDP_SEQUENTIAL_MAX 20

/* Computes the one-sided level of each look. n [looks] holds the number of values that each look
 * sees, in ascending order. The last number is the largest that the test may use. 1 <= looks <=
 * DDP_SEQUENTIAL_MAX and 0 < alpha < 1. If there is one look, its level is alpha. Returns 0, or -1
 * if memory is exhausted. */
int ddp_sequential_levels(const int *n, size_t looks, double alpha, double *level);

#ifdef __cplusplus
}
#endif
#endif
