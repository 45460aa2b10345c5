/* Finds the units (hosts or ranks) whose figures are worse than those of their peers.
 *
 * A value belongs to one unit, such as the time of a computation, or to the path from one unit to
 * another, such as the time of a message. Larger values are worse. Each value was measured in
 * several passes. Values are usually logarithms of times. An effect e then means exp(e) times
 * slower.
 *
 * The search explains the values by a level that healthy values share, and by as few effects as
 * possible. An effect has a place (enum ddp_peer_place), and makes all values of this place larger.
 * If several effects cover a value, only the largest effect counts. The search adds the effect that
 * most reduces the sum of the absolute residuals. It stops when no effect reduces this sum by more
 * than a threshold. The level is the median of the values that no effect covers, or 0 with a
 * reference. If two of four units are faulty, most values are too large, and so is the level. If a
 * value lies far below the level, and there are few units, the search therefore also tries all
 * pairs of effects.
 *
 * All values are taken to have the same scatter. This is the scatter over the passes, or the
 * scatter of the values about the explanation, whichever is larger. The variance of a reference is
 * added. The interval of an effect is computed from the scatter, and is extended to contain the
 * effect in each single pass. If an effect covers more than two values, the fifth of the passes
 * with the smallest effects, and the fifth with the largest, may lie outside the interval. An
 * effect is a finding if the lower end of its interval exceeds the smallest effect that counts. If
 * another effect covers the same values, the lower end must exceed the sum of the other effect and
 * the smallest effect that counts.
 *
 * If the scatter is normally distributed, Bonferroni's correction for all possible places limits
 * the probability of a false finding to the level of the rule. tests/unit/test_peers.c measures
 * this probability, also with outliers. */
#ifndef DDP_STATS_PEERS_H
#define DDP_STATS_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The place of an effect. */
enum ddp_peer_place {
    DDP_PEER_UNIT,      /* all values from and to unit `from` */
    DDP_PEER_SENDING,   /* the values from unit `from` to other units */
    DDP_PEER_RECEIVING, /* the values from other units to unit `from` */
    DDP_PEER_LINK,      /* both directions between `from` and `to` */
    DDP_PEER_VALUE,     /* one value */
    DDP_PEER_ALL,       /* all values; only with a reference */
    DDP_PEER_PLACES
};

struct ddp_peer_value {
    int from, to;       /* units; equal if the value belongs to one unit */
    const double *pass; /* [passes] */
};

struct ddp_peer_rule {
    double least;         /* the smallest effect that counts */
    double level;         /* probability of a false finding in one search */
    double least_scatter; /* lower bound of the standard deviation of a pass */
    bool directed;        /* the two directions between two units have separate values */
    bool partial;         /* units without a value are left out on purpose */
    /* The values are differences from a reference, so healthy values are near 0. reference_scatter
     * is the standard deviation of a value of the reference. */
    bool has_reference;
    double reference_scatter;
};

struct ddp_peer_finding {
    enum ddp_peer_place place;
    int from, to;  /* units; -1: the place has no such unit */
    int value;     /* index of the value if the place is DDP_PEER_VALUE, else -1 */
    double effect; /* median difference between the values and the level */
    double lower, upper;
};

#define DDP_PEER_FINDINGS 8
struct ddp_peers {
    double level;   /* the level of the healthy values; NaN: unknown */
    double scatter; /* standard deviation of the median of a value's passes; NaN: unknown */
    /* The smallest effects that the search would find with a probability of 90 %. detectable_value
     * is for an effect on one value. detectable_unit is for an effect on one direction of a unit,
     * or on a unit if the values are not directed. If no value belongs to a path between two units,
     * detectable_unit is equal to detectable_value. INFINITY: there are too few values to compare.
     * detectable_unit is also INFINITY if the rule is not partial and a unit has no value in a
     * direction. */
    double detectable_unit, detectable_value;
    int count;
    struct ddp_peer_finding finding[DDP_PEER_FINDINGS]; /* [count] */
};

/* Searches value [count]. Every value has `passes` passes. Units have the numbers 0 to units-1. If
 * there is no value, or fewer than 2 passes, all results are unknown. Returns 0, or -1 if memory is
 * exhausted. */
int ddp_peers_search(const struct ddp_peer_value *value, size_t count, int units, int passes,
                     const struct ddp_peer_rule *rule, struct ddp_peers *out);

#ifdef __cplusplus
}
#endif
#endif
