/* Finds the rank for which the other ranks wait, and the cause.
 *
 * For every iteration and rank, the caller adds the times at which the rank entered and left the
 * operation, on a common clock. It also adds the *stolen time*: for how long the core was taken
 * from the rank (base/core_time.h). The times are summed in at most 64 bins of successive
 * iterations, because neighbouring iterations are not independent. The memory does not grow with
 * the number of iterations.
 *
 * A rank is named only if two conditions hold:
 *   1. Significance. In each bin, one rank is last. Its *margin* is the distance from the
 *      second-last rank. If no rank differs from the others, every rank is last with the same
 *      probability, whatever the margins are. The p value is the Chernoff bound of the probability
 *      that the margins of a rank reach the observed sum. The p value is multiplied by the number
 *      of tests (Bonferroni's correction).
 *   2. Effect. The sum of the rank's margins, minus those of the other ranks, must reach a fraction
 *      of the time of the iterations, and an absolute time.
 * Each test is made three times. Two tests find a steady delay among outliers: they use small and
 * large groups of bins, and limit the margins to twice their third quartile. The third test finds
 * rare long stalls: it uses only the part of the margins above this limit.
 *
 * Causes:
 *   - compute: the rank entered late, and its stolen time does not explain the delay.
 *   - core: the core was taken from the rank, by other programs, by a quota or by a hypervisor. A
 * rank is also named if its control group stopped it for longer than any other rank.
 *   - link: the ranks entered together, and the rank left late. This cause needs at least 3 ranks,
 *     because a link between 2 ranks belongs to both. All ranks must have the same role: in a
 *     broadcast, for example, healthy ranks leave at different times. The rank must leave later
 *     than the others by more than twice the spread of the others. Therefore no rank is named if
 *     an algorithm lets the ranks leave one after the other. */
#ifndef DDP_STATS_STRAGGLER_H
#define DDP_STATS_STRAGGLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_straggler_cause {
    DDP_STRAGGLER_COMPUTE,
    DDP_STRAGGLER_LINK,
    DDP_STRAGGLER_CORE,
    DDP_STRAGGLER_CAUSES
};
extern const char *const ddp_straggler_cause_names[]; /* ends with NULL */

/* If the ranks do not differ, a rank is named with at most this probability. */
#define DDP_STRAGGLER_LEVEL 0.02
/* Least effect, as a fraction of the time of the iterations. */
#define DDP_STRAGGLER_EFFECT 0.03

struct ddp_straggler {
    int32_t rank; /* -1: no rank is named */
    enum ddp_straggler_cause cause;
    double share;      /* fraction of the iterations in which the rank was last */
    double cost;       /* fraction of the time of the iterations that the rank cost */
    double late_ns[2]; /* 95 % interval of the median margin over the second-last rank */
    int32_t bucket;    /* in training: the bucket at which the rank was latest; -1: unknown */
    char host[64];     /* filled when the point is added to a record */
};

/* The times of a rank in one iteration, in ns on the common clock. */
struct ddp_straggler_times {
    double entry, exit;
    double stolen; /* stolen time in `window` or in the operation; NaN: unknown */
    double lost;   /* after a barrier: time without a core since the last iteration */
    double window; /* not after a barrier: duration of the computation, including `stolen` */
};

struct ddp_straggler_setup {
    double floor_ns;    /* smaller delays are ignored, because the clocks have errors */
    bool same_role;     /* all ranks have the same role, so their exits can be compared */
    bool after_barrier; /* the ranks enter right after a barrier, without a computation */
    /* [ranks], or NULL. For how long the control group stopped each rank in the last `passed_ns`,
     * in ns; NaN: unknown. There is no significance test for these times, because a quota does not
     * act by chance. */
    const double *throttled_ns;
    double passed_ns;
    bool oversubscribed; /* ranks share cores; late entries then count only if `stolen` is known */
};

struct ddp_straggler_sums;
/* Returns 0, or -1 if memory is exhausted. ranks >= 1. */
int ddp_straggler_create(int ranks, struct ddp_straggler_sums **out);
void ddp_straggler_destroy(struct ddp_straggler_sums *s);
/* Forgets all iterations. */
void ddp_straggler_reset(struct ddp_straggler_sums *s);
/* Adds the times [ranks] of one operation to the current iteration. An iteration of training has
 * one operation per bucket. Returns the rank that entered last, and sets *margin_ns to the distance
 * of this rank from the second-last rank. */
int ddp_straggler_add(struct ddp_straggler_sums *s, const struct ddp_straggler_times *times,
                      double *margin_ns);
/* Ends the current iteration, which took took_ns. */
void ddp_straggler_next(struct ddp_straggler_sums *s, double took_ns);
/* Sets *out to the verdict. Does not allocate. */
void ddp_straggler_judge(const struct ddp_straggler_sums *s,
                         const struct ddp_straggler_setup *setup, struct ddp_straggler *out);

#ifdef __cplusplus
}
#endif
#endif
