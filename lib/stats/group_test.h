/* Finds the ends (hosts or ranks) and links (pairs of ends) that slow down a collective, by group
 * testing.
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
 * A search has passes. A pass begins with a *screen*: rounds that bring every pair of ends into a
 * group together, except the pairs that have already been in a fast group. If many pairs are left,
 * and there are at least 25 ends, the first rounds of a screen use an affine plane of order 5 or 7
 * (Bose 1939). Each end is randomly assigned to a point of the plane. Each of these rounds uses one
 * direction of the plane, and its groups are the parallel lines of this direction. Any two points
 * are on one line together in one of these rounds. The groups of all other rounds of a screen are
 * chosen greedily, in a random order of the ends.
 *
 * The *level* is the median time of the groups. It is the usual time of a healthy group, so most
 * groups must be healthy. The *scatter* is the scatter between the groups, or the median of the
 * standard errors that the caller reports, whichever is larger. A group is slow if its time exceeds
 * the level by more than four times the scatter, and by more than the smallest effect that counts.
 * Otherwise it is fast.
 *
 * Ends whose groups were all slow are suspects. If there are at least 25 ends, a suspect with many
 * groups may have been in one fast group. A slow group without a suspect must contain a faulty
 * link. The suspects together, and each slow group without a suspect, are sets that the search
 * halves again and again. A half becomes a group with the help of other ends that have been in fast
 * groups together. If both halves of a set are fast, a link between them is at fault. Several sets
 * are searched in the same rounds.
 *
 * When only one end or link of a set remains, it is checked before it is named: it takes turns with
 * healthy ends in the same two groups of partners. A fault is named if the groups with it are
 * always slow, and the groups without it are always fast. In addition, the lower end of the
 * interval of the difference must exceed the smallest effect that counts. The next pass screens the
 * pairs that have not been in a fast group yet. Named ends and named links are left out. The search
 * ends when no pair is left, or when a screen has no slow group. enum ddp_group_end lists the other
 * reasons why a search ends. */
#ifndef DDP_STATS_GROUP_TEST_H
#define DDP_STATS_GROUP_TEST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With fewer ends, a faulty end and a faulty link cannot be distinguished. */
#define DDP_GROUP_ENDS_LEAST 4
#define DDP_GROUP_ENDS_MOST  4096
#define DDP_GROUPS_MOST      32 /* groups of a round */
#define DDP_GROUP_ROUNDS     40 /* the largest round_limit */
#define DDP_GROUP_FAULTS     8

enum ddp_group_end {
    DDP_GROUP_RUNNING,
    DDP_GROUP_CLEAN,       /* no group of the last screen was slow, or no pair is left */
    DDP_GROUP_LIMIT,       /* the limit of the rounds was reached before a clean screen */
    DDP_GROUP_UNEXPLAINED, /* three passes in a row had slow groups, but confirmed no fault */
    DDP_GROUP_TOO_MANY,    /* too many suspects, slow groups or very fast groups */
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
    int groups, odd;        /* measured groups; groups that were much faster than the level */
    int fault_count;
    struct ddp_group_fault fault[DDP_GROUP_FAULTS]; /* [fault_count] */
};

struct ddp_group_test;

/* Begins a search among rule->ends >= 1 ends. Returns NULL if memory is exhausted. */
struct ddp_group_test *ddp_group_test_open(const struct ddp_group_rule *rule);
void ddp_group_test_close(struct ddp_group_test *t);
/* Plans a round. Sets group [ends] to the group of each end, or to -1 for an end that is in no
 * group. Returns the number of groups, or 0 if the search has ended. The same rule and the same
 * reports give the same rounds. */
int ddp_group_test_next(struct ddp_group_test *t, int *group);
/* Reports the logarithms of the times of the groups of the round, and their standard errors, which
 * may be 0. */
void ddp_group_test_report(struct ddp_group_test *t, const double *log_time, const double *error);
const struct ddp_group_result *ddp_group_test_result(const struct ddp_group_test *t);

#ifdef __cplusplus
}
#endif
#endif
