/* Finds the ends (hosts or ranks) and links that slow down a collective, by group testing.
 *
 * In each round, the ends are divided into groups of equal size, and all groups run the same
 * collective at the same time. A faulty end slows down every group that it is in. A faulty link
 * slows down the groups that contain both of its ends. The caller runs the rounds:
 *
 *   while ((groups = ddp_group_test_next(t, group)) > 0) {
 *       ... measure ...
 *       ddp_group_test_report(t, log_time, error);
 *   }
 *
 * A search has passes. A pass begins with a screen, whose rounds bring every pair of ends into a
 * group together, except the pairs that have been in a fast group. If many pairs are left, and
 * there are at least 25 ends, the first rounds of a screen are the parallel classes of an affine
 * plane of order 5 or 7 (Bose 1939): any two points of the plane, each of which stands for several
 * ends, are in one line together. The groups of all other rounds of a screen are chosen greedily.
 * The places of the ends are random.
 *
 * Healthy groups share a level, which is the median of the groups, so most groups must be healthy.
 * Their scatter is the larger one of the scatter between the groups and the standard errors that
 * the caller reports. A group is slow if it exceeds the level by more than four times the scatter,
 * and by more than the smallest effect.
 *
 * Ends whose groups were all slow are suspected. A slow group without a suspect must contain a
 * faulty link. The search halves the suspected sets, and fills the groups with ends that have been
 * in fast groups together. If both halves of a set are fast, a link between them is at fault.
 * Several sets are searched in the same rounds.
 *
 * A suspect that remains is checked before it is named. The suspect and a healthy end take turns in
 * the same two groups of partners. The suspect is named if its groups are always slow, if the
 * groups of the healthy end are always fast, and if the lower end of the interval of the difference
 * exceeds the smallest effect. The next pass screens the pairs that the fault may have hidden. The
 * search ends when all pairs have been in a fast group together, except those of named faults. */
#ifndef DDP_STATS_GROUP_TEST_H
#define DDP_STATS_GROUP_TEST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With fewer ends, a faulty end cannot be told from a faulty link. */
#define DDP_GROUP_ENDS_LEAST 4
#define DDP_GROUP_ENDS_MOST  4096
#define DDP_GROUPS_MOST      32 /* groups of a round */
#define DDP_GROUP_ROUNDS     40 /* the usual limit of the rounds */
#define DDP_GROUP_FAULTS     8

enum ddp_group_end {
    DDP_GROUP_RUNNING,
    DDP_GROUP_CLEAN,       /* no group of the last screen was slow */
    DDP_GROUP_LIMIT,       /* the limit of the rounds was reached before a clean screen */
    DDP_GROUP_UNEXPLAINED, /* three passes in a row had slow groups, but confirmed no fault */
    DDP_GROUP_TOO_MANY,    /* more slow groups than a few faults can explain, or no usual time */
    DDP_GROUP_TOO_FEW      /* fewer than DDP_GROUP_ENDS_LEAST ends */
};

struct ddp_group_rule {
    int ends;
    int round_limit; /* at most DDP_GROUP_ROUNDS */
    double least;    /* the smallest effect that counts, as a logarithm */
    uint64_t seed;
};

/* A fault that was confirmed. */
struct ddp_group_fault {
    int end, to;   /* to: the other end of a link, or -1 */
    double effect; /* difference of the logarithms of the times */
    double lower, upper;
    double time, usual; /* logarithms of the times with and without the fault */
};

struct ddp_group_result {
    enum ddp_group_end end;
    int rounds, group_ends; /* rounds that were measured, and ends of a group */
    bool screened;          /* the first screen was completed */
    double scatter;         /* standard deviation of the time of a group; NaN: unknown */
    double detectable;      /* an effect that is found with high probability; NaN: unknown */
    int groups, odd; /* groups that were measured; those that were much faster than the level */
    int fault_count;
    struct ddp_group_fault fault[DDP_GROUP_FAULTS]; /* [fault_count] */
};

struct ddp_group_test;

/* Returns NULL if memory is exhausted. `ends` is at least 1. */
struct ddp_group_test *ddp_group_test_open(const struct ddp_group_rule *rule);
void ddp_group_test_close(struct ddp_group_test *t);
/* Plans a round. Sets group [ends] to the group of each end, or to -1 for an end that rests.
 * Returns the number of groups, or 0 if the search has ended. The same rule and the same reports
 * give the same rounds. */
int ddp_group_test_next(struct ddp_group_test *t, int *group);
/* Reports the logarithms of the times of the groups of the round, and their standard errors, which
 * may be 0. */
void ddp_group_test_report(struct ddp_group_test *t, const double *log_time, const double *error);
const struct ddp_group_result *ddp_group_test_result(const struct ddp_group_test *t);

#ifdef __cplusplus
}
#endif
#endif
