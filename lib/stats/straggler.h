/* Finds the rank for which the other ranks wait, and the cause.
 *
 * The caller adds the times of every iteration, on one clock, for all ranks: when a rank entered
 * the operation, when it left, and for how long its core was taken from it. The times are summed
 * in at most 64 bins of successive iterations, because neighbouring iterations are not
 * independent. The memory does not grow with the number of iterations.
 *
 * A rank is named only if two conditions hold:
 *   1. Significance. In each bin, some rank is last, and by a margin over the second-last rank. If
 *      no rank differs from the others, every rank is the last one with the same probability,
 *      whatever the margins are. The p value is the Chernoff bound of the probability that a rank
 *      collects at least its sum of margins. It is multiplied by the number of tests (Bonferroni's
 *      correction; for the smallest p value it equals Holm's).
 *   2. Effect. The margins of the rank, minus those of the other ranks, must reach a fraction of
 *      the time of the iterations, and an absolute time.
 * Each test is made three times: in small and in large groups of bins with the margins up to twice
 * their third quartile, which finds a steady delay among outliers, and with the part above, which
 * finds rare long stalls.
 *
 * Causes:
 *   - compute: the rank entered late, and the time taken from its core does not explain it.
 *   - core: the core was taken from the rank, by other programs, by a quota or by a hypervisor. If
 *     the control group of one rank stopped it for longer than those of the others, that rank is
 *     named.
 *   - link: the ranks entered together, and the rank left late. This is judged only among at least
 *     3 ranks with the same role, because in a broadcast the ranks leave at different times, and a
 *     link between 2 ranks belongs to both. The rank must leave later than the others by more than
 *     twice the spread of the others, so an algorithm whose ranks leave one after the other blames
 *     no rank. */
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

/* A rank is named with probability at most LEVEL if the ranks are alike. */
#define DDP_STRAGGLER_LEVEL 0.02
/* Least effect, as a fraction of the time of the iterations. */
#define DDP_STRAGGLER_EFFECT 0.03

struct ddp_straggler {
    int32_t rank; /* -1: no rank is named */
    enum ddp_straggler_cause cause;
    double share;      /* fraction of the iterations in which the rank was last */
    double cost;       /* fraction of the time of the iterations that the rank cost */
    double late_ns[2]; /* 95 % interval of the median margin over the second-last rank */
    int32_t bucket;    /* in training: the bucket at which it was latest. -1: unknown */
    char host[64];     /* filled when the point is added to a record */
};

/* The times of a rank in one iteration, in ns on the common clock. */
struct ddp_straggler_times {
    double entry, exit;
    double stolen; /* time taken from the rank's core in `window` or the operation; NaN: unknown */
    double lost;   /* after a barrier: time without a core since the last iteration */
    double window; /* not after a barrier: duration of the computation, with the stolen time */
};

struct ddp_straggler_setup {
    double floor_ns;    /* smaller delays are not judged: the clocks have errors */
    bool same_role;     /* all ranks have the same role, so their exits can be compared */
    bool after_barrier; /* the ranks enter right after a barrier, without a computation */
    /* [ranks], or NULL: for how long the control group stopped each rank in the last `passed_ns`,
     * in ns. NaN: unknown. A quota does not act by chance, so no significance test is
     * needed. */
    const double *throttled_ns;
    double passed_ns;
    bool oversubscribed; /* ranks share cores, so late entries count only if `stolen` is known */
};

struct ddp_straggler_sums;
/* Returns 0, or -1 if memory is exhausted. ranks >= 1. */
int ddp_straggler_create(int ranks, struct ddp_straggler_sums **out);
void ddp_straggler_destroy(struct ddp_straggler_sums *s);
/* Forgets all iterations. */
void ddp_straggler_reset(struct ddp_straggler_sums *s);
/* Adds the times [ranks] of one operation to the current iteration. An iteration of training has
 * one operation per bucket. Returns the rank that entered last, and sets *margin_ns to its distance
 * from the second-last rank. */
int ddp_straggler_add(struct ddp_straggler_sums *s, const struct ddp_straggler_times *times,
                      double *margin_ns);
/* Ends the current iteration, which took this time. */
void ddp_straggler_next(struct ddp_straggler_sums *s, double took_ns);
/* Sets *out to the verdict. Does not allocate. */
void ddp_straggler_judge(const struct ddp_straggler_sums *s,
                         const struct ddp_straggler_setup *setup, struct ddp_straggler *out);

#ifdef __cplusplus
}
#endif
#endif
