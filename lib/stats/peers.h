/* Finds the units (hosts or ranks) whose figures are worse than those of their peers.
 *
 * A value is a figure of one unit, such as the time of a computation, or of the way from one unit
 * to another, such as the time of a message. Larger is worse. Each value was measured in several
 * passes. The functions take logarithms of times, so an effect e means exp(e) times slower.
 *
 * The search explains the values by a level that healthy values share, and by as few effects as
 * possible. An effect makes all values of its place larger. Where effects overlap, the largest one
 * counts. The search adds the effect that reduces the sum of the absolute residuals most, as long
 * as the reduction pays for one more effect. With few units, it also tries all pairs of effects,
 * because two faulty units of four touch most of the values. The level is the median of the values
 * that no effect touches.
 *
 * The scatter of a value is the larger one of (1) its scatter over the passes and (2) the scatter
 * of all values about the explanation. The interval of an effect follows from the scatter, and also
 * contains the effects of all passes (for more than two values: except a fifth at each end). An
 * effect is a finding if the lower end of its interval is above the smallest effect that counts,
 * and by as much above an effect of a place that contains this one. Bonferroni's correction for all
 * effects that the search can choose from keeps the probability of a false finding at the level of
 * the rule if the scatter is normal. tests/unit/test_peers.c measures it, also with outliers. */
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
    double least; /* the smallest effect that counts */
    double level; /* probability of a false finding in one search */
    /* The scatter of a value over the passes is taken as at least this large. */
    double least_scatter;
    bool directed; /* the values of the two directions between two units differ */
    bool partial;  /* units without a value are left out on purpose */
    /* The values are differences to a reference, so healthy values are 0. reference_scatter is the
     * standard deviation of a value of the reference. */
    bool has_reference;
    double reference_scatter;
};

struct ddp_peer_finding {
    enum ddp_peer_place place;
    int from, to;  /* units; to is -1 if the place has one unit or none */
    int value;     /* index of the value if the place is DDP_PEER_VALUE, else -1 */
    double effect; /* median difference to the level */
    double lower, upper;
};

#define DDP_PEER_FINDINGS 8
struct ddp_peers {
    double level;   /* the level of the healthy values; NaN: unknown */
    double scatter; /* standard deviation of the median of a value's passes; NaN: unknown */
    /* The smallest effect that the search would find with a probability of 90 %: in one direction
     * of a unit (or in a unit, if the values are not directed), and in one value. If all values
     * belong to one unit, the first is equal to the second. INFINITY: there are too few values to
     * compare. The first is also INFINITY if a unit has no value in a direction and the rule is not
     * partial. */
    double detectable_unit, detectable_value;
    int count;
    struct ddp_peer_finding finding[DDP_PEER_FINDINGS]; /* [count] */
};

/* Searches value [count], each of which has `passes` passes. The units are numbered from 0 to units
 * - 1. Returns 0, or -1 if memory is exhausted. */
int ddp_peers_search(const struct ddp_peer_value *value, size_t count, int units, int passes,
                     const struct ddp_peer_rule *rule, struct ddp_peers *out);

#ifdef __cplusplus
}
#endif
#endif
