/* The quality of a point is a set of codes. Each code names a reason why the times of the point are
 * doubtful. All reporters show the codes of a point. The codes are computed once, when the point is
 * added to the record. They depend on the point without its samples, on the hosts, and on earlier
 * points. */
#ifndef DDP_RECORD_QUALITY_H
#define DDP_RECORD_QUALITY_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_quality {
    DDP_QUALITY_SLOW_PINGPONG,
    DDP_QUALITY_WIDE_INTERVAL,
    DDP_QUALITY_DRIFTING,
    DDP_QUALITY_STOLEN,
    DDP_QUALITY_THROTTLED,
    DDP_QUALITY_OVERSUBSCRIBED,
    DDP_QUALITY_BUSY,
    DDP_QUALITY_CLOCK,
    DDP_QUALITY_RETRANSMITS,
    DDP_QUALITY_COUNT
};

/* slow-pingpong: a ping-pong took more than FACTOR times the shortest one so far with the same
 * backend and number of ranks. For points without a GPU, a ping-pong above an absolute limit
 * counts, too. The limit is HOST_NS if the run has one host, else NETWORK_NS. */
#define DDP_QUALITY_PINGPONG_FACTOR     3
#define DDP_QUALITY_PINGPONG_HOST_NS    5e3
#define DDP_QUALITY_PINGPONG_NETWORK_NS 500e3
/* wide-interval: the distance from the median to the farther end of its 95 % interval exceeds this
 * fraction of the median. drifting: the times have a significant trend, and their `shift`
 * (stats/series.h) exceeds this fraction. clock: the clock of the processor was lower than at an
 * earlier point of the run, by more than this fraction, or a GPU was slowed by heat or power. */
#define DDP_QUALITY_TOLERANCE 0.1
/* throttled: the time during which the ranks were stopped exceeds this fraction of the time of the
 * iterations. stolen: the time that the hypervisor took from a host exceeds this fraction of the
 * time of the iterations, multiplied by the number of ranks on the host. */
#define DDP_QUALITY_LOST 0.05
/* stolen: Linux counts stolen time in ticks of 10 ms, so at least two ticks are required. */
#define DDP_QUALITY_STOLEN_LEAST_MS 20
/* busy: no ranks share a core, and the ranks had at least SWITCHES_LEAST involuntary context
 * switches, which are more than SWITCHES_PER_S for each rank in each second. After such a switch
 * the rank waits for the time slice of another program, typically about 3 ms. */
#define DDP_QUALITY_SWITCHES_PER_S 20
#define DDP_QUALITY_SWITCHES_LEAST 3
/* busy: at the start of the run, the load average per core of a host is above this number.
 * `ddpbench doctor` warns at the same number. The number exceeds 1, because earlier runs of
 * ddpbench alone can cause a load of up to 1 per core. */
#define DDP_QUALITY_LOAD_PER_CORE 1.5

/* Names of the codes, indexed by enum ddp_quality. The last entry is NULL. */
extern const char *const ddp_quality_names[DDP_QUALITY_COUNT + 1];
/* ddp_quality_meaning returns the definition of a code. ddp_quality_advice returns a sentence of
 * advice. */
const char *ddp_quality_meaning(enum ddp_quality code);
const char *ddp_quality_advice(enum ddp_quality code);

/* Returns the codes of a point that is about to be added to the record, as bits 1 << code. The
 * point is compared with the points that were added before. */
unsigned ddp_quality_judge(const struct ddp_record *record, const struct ddp_point *p);
/* Returns the distance from the median to the farther end of its 95 % interval, as a fraction of
 * the median. Returns NaN if there is no interval. */
double ddp_quality_interval(const struct ddp_summary *t);

/* Writes the names of the codes, for example "drifting,busy" with the separator ",". Writes "" if
 * there are none. */
void ddp_quality_list(unsigned codes, const char *separator, char *out, size_t out_bytes);
/* Writes, for example, "2 of 6 points are doubtful: busy (2), drifting (1)". Writes "" if no point
 * is doubtful. */
void ddp_quality_summary(const struct ddp_record *record, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
