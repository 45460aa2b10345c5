/* Finds the units (hosts or ranks) whose figures are worse than those of their peers.
 *
 * A value belongs to one unit, such as the time of a computation, or to the path from one unit to
 * another, such as the time of a message. Larger is worse. Each value was measured in several
 * passes. Values are usually logarithms, so an effect e means exp(e) times slower.
 *
 * The search explains the values by a level that healthy values share, and by as few effects as
 * possible. An effect makes all values of its place larger. Where effects overlap, the largest one
 * counts. The search adds the effect that most reduces the sum of the absolute residuals. It stops
 * when no effect reduces this sum by more than a threshold. If two of four units are faulty, most
 * values are too large, and so is the level. With few units, the search therefore also tries all
 * pairs of effects if a value lies far below the level. The level is the median of the values that
 * no effect covers, or 0 with a reference.
 *
 * All values have the same scatter. It is the larger one of (1) the scatter over the passes and (2)
 * the scatter of the values about the explanation. The scatter of a reference is added. The
 * interval of an effect follows from the scatter. It also contains the effects of the single
 * passes. If an effect covers more than two values, a fifth of the passes at each end may lie
 * outside. An effect is a finding if the lower end of its interval exceeds the smallest effect that
 * counts. If another effect covers the same values, the lower end must exceed the sum of that
 * effect and the smallest one.
 *
 * If the scatter is normal, Bonferroni's correction for all possible places keeps the probability
 * of a false finding at the level of the rule. tests/unit/test_peers.c measures this probability,
 * also with outliers. */
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
    bool directed;        /* each direction between two units has a value, and not only each pair */
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
    /* The smallest effects that the search would find with a probability of 90 %. detectable_unit:
     * an effect on one direction of a unit (on a unit, if the values are not directed). If all
     * values belong to one unit, it is equal to detectable_value. detectable_value: an effect on
     * one value. INFINITY: there are too few values to compare. detectable_unit is also INFINITY if
     * the rule is not partial and a unit has no value in a direction. */
    double detectable_unit, detectable_value;
    int count;
    struct ddp_peer_finding finding[DDP_PEER_FINDINGS]; /* [count] */
};

/* Searches value [count], each of which has `passes` passes. With fewer than 2 passes, *out says
 * that everything is unknown. The units are numbered from 0 to units - 1. Returns 0, or -1 if
 * memory is exhausted. */
int ddp_peers_search(const struct ddp_peer_value *value, size_t count, int units, int passes,
                     const struct ddp_peer_rule *rule, struct ddp_peers *out);

#ifdef __cplusplus
}
#endif
#endif
