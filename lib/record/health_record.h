/* The result of `ddpbench health` and `ddpbench isolate`: a verdict about the hosts of a job, and
 * findings that name the hosts, ranks and links that are slow. */
#ifndef DDP_RECORD_HEALTH_RECORD_H
#define DDP_RECORD_HEALTH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "stats/peers.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_record;

/* The verdict of the run. NONE: nothing was judged. */
enum ddp_health_verdict {
    DDP_HEALTH_NONE,
    DDP_HEALTH_HEALTHY,
    DDP_HEALTH_DEGRADED,
    DDP_HEALTH_CANNOT_TELL,
    DDP_HEALTH_VERDICTS
};
/* The figures that are judged. Bandwidth, latency and resent belong to pairs of ends (of hosts or,
 * on one host, of ranks). Compute and copy belong to ranks. */
enum ddp_health_figure {
    DDP_HEALTH_BANDWIDTH, /* GB/s of one direction */
    DDP_HEALTH_LATENCY,   /* half a round trip, in us */
    DDP_HEALTH_RESENT,    /* TCP segments that the sender sent again, in percent */
    DDP_HEALTH_COMPUTE,   /* time of a fixed computation, in ms */
    DDP_HEALTH_COPY,      /* speed of a memory copy, in GB/s */
    /* Time of a collective in a group that contains the place of the finding, in ms. `isolate` has
     * only this figure. */
    DDP_HEALTH_COLLECTIVE,
    DDP_HEALTH_FIGURES
};
#define DDP_HEALTH_PEER_FIGURES DDP_HEALTH_COLLECTIVE /* the number of figures of `health` */
/* The largest detectable factor that texts show. For the figure `resent`, it is a percentage. Above
 * this limit, texts say that no slow host, link or rank would be found. */
#define DDP_HEALTH_SHOWN_MOST 100
/* The names of the values of the enums, such as "HEALTHY", "bandwidth" and "unit". Each array ends
 * with NULL. The name of DDP_HEALTH_NONE is "none". */
extern const char *const ddp_health_verdict_names[], *const ddp_health_figure_names[],
                                                         *const ddp_peer_place_names[];

/* The figures of a rank. In the record they are medians over the passes. */
struct ddp_health_rank {
    double compute_ms, copy_GBps;
    double core_percent; /* processor time of the computation, in percent of its duration */
};

/* A figure that is worse than it should be. */
struct ddp_health_finding {
    enum ddp_health_figure figure;
    /* The units of stats/peers.h are hosts, or the ranks of one host. */
    enum ddp_peer_place place;
    bool of_host; /* the place is a host, and not only the rank `rank` */
    /* World ranks. rank: the rank, or the lowest rank of the host. to: the other end of a link or
     * direction. -1: none. */
    int32_t rank, to;
    bool from_reference; /* compared with the reference and not with the peers */
    /* There are only two ends, so the run cannot tell which of them is at fault. */
    bool either;
    /* The slow-down factor and its interval. For the figure `resent`, these are the percentage of
     * resent segments and its interval. */
    double factor, lower, upper;
    double value, usual; /* the figure, and the figure that was expected */
    /* For a finding on bandwidth: the figure `resent` if it is a finding at the same place, too.
     * Otherwise NaN. */
    double resent;
};
#define DDP_HEALTH_FINDINGS 16

/* How well a figure could be judged. */
struct ddp_health_power {
    enum ddp_health_figure figure;
    double scatter; /* standard deviation of a value, as a fraction; NaN: the figure is unknown */
    /* The smallest slow-down factors that would be found with a probability of 90 %: of a host, and
     * of one link or rank. For the figure `resent`, these are percentages. NaN: there is nothing to
     * compare with. */
    double host_factor, link_factor;
};

struct ddp_health {
    enum ddp_health_verdict verdict;
    char reason[400];      /* the reason for the verdict, as a text for the user */
    double level;          /* probability that a healthy run is DEGRADED; NaN: unknown */
    double min_effect;     /* the smallest slow-down that counts, as a fraction */
    double min_latency_us; /* the smallest extra latency that counts */
    double must_find;      /* HEALTHY means that a slow-down by this fraction would be found */
    int32_t passes;        /* of `isolate`: repetitions in the last round; -1: none */
    /* Only of `isolate`: the number of rounds (-1: this is not isolate), the ends of a group, and
     * the collective. */
    int32_t rounds, group_ends;
    char collective[16];
    char reference[256]; /* file of the reference, or "" */
    struct ddp_health_power power[DDP_HEALTH_FIGURES];
    int32_t finding_count;
    struct ddp_health_finding finding[DDP_HEALTH_FINDINGS]; /* [finding_count] */
    int32_t ranks;
    struct ddp_health_rank *rank; /* [ranks], owned by the record */
};

struct ddp_fields;
extern const struct ddp_fields ddp_health_fields, ddp_health_finding_fields, ddp_health_rank_fields,
    ddp_health_power_fields;

/* Sets every value to unknown. */
void ddp_health_init(struct ddp_health *h);
void ddp_health_release(struct ddp_health *h);
/* Packs the result into one message, which the caller frees. Returns 0 or DDP_ENOMEM. */
int ddp_health_pack(const struct ddp_health *h, void **out, size_t *bytes,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Makes *h from a message. Returns DDP_EINTERNAL if the length of the message does not fit its
 * contents, or if it has too many findings. Returns DDP_ENOMEM if memory runs out. */
int ddp_health_unpack(const void *message, size_t bytes, struct ddp_health *h,
                      struct ddp_err *err) DDP_MUST_CHECK;

/* Returns DDP_EREGRESSION for DEGRADED, DDP_EINCONCLUSIVE for CANNOT TELL, and otherwise 0. */
int ddp_health_code(const struct ddp_health *h);
/* Writes the i-th finding as a sentence without a full stop. The sentence has the place, the
 * interval of the factor, the figures and the next step. */
void ddp_health_sentence(const struct ddp_record *r, int i, char *out, size_t out_bytes);
/* Writes the i-th fact in which a host differs from most hosts of the record. Returns false past
 * the last one. */
bool ddp_health_difference(const struct ddp_record *r, int i, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
