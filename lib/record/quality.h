/* The quality of a point: codes for what makes its times doubtful. All reporters show the codes.
 * The codes need no samples, only the members of struct ddp_point, so every use of them agrees. */
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

/* slow-pingpong: a ping-pong longer than FACTOR times the shortest one of the run, or longer than
 * HOST_NS inside a host or NETWORK_NS between hosts. */
#define DDP_QUALITY_PINGPONG_FACTOR     3
#define DDP_QUALITY_PINGPONG_HOST_NS    5e3
#define DDP_QUALITY_PINGPONG_NETWORK_NS 500e3
/* wide-interval: the longer side of the interval is more than this part of the median. drifting:
 * the times also moved by more than this part. clock: the clock was lower by more than this part
 * than at another point of the run. */
#define DDP_QUALITY_TOLERANCE 0.1
/* stolen, throttled: the lost time is more than this part of the time of the iterations. */
#define DDP_QUALITY_LOST 0.05
/* stolen: Linux counts in ticks, so a single tick says nothing. */
#define DDP_QUALITY_STOLEN_LEAST_MS 20
/* busy: involuntary switches per rank and second, and the least number of them. A switch costs a
 * rank about 3 ms. */
#define DDP_QUALITY_SWITCHES_PER_S 20
#define DDP_QUALITY_SWITCHES_LEAST 3
/* busy: load average per core of a host at the start of the run. Earlier runs of ddpbench alone
 * make a load of up to 1 per core. */
#define DDP_QUALITY_LOAD_PER_CORE 1.5

/* By enum ddp_quality, ending with NULL. */
extern const char *const ddp_quality_names[DDP_QUALITY_COUNT + 1];
/* Return the definition of a code, and a sentence with advice. */
const char *ddp_quality_meaning(enum ddp_quality code);
const char *ddp_quality_advice(enum ddp_quality code);

/* Returns the codes of a point that is about to be added to the record, as bits 1 << code. The
 * point is compared with the points that were added before. */
unsigned ddp_quality_judge(const struct ddp_record *record, const struct ddp_point *p);
/* Returns the longer side of the median's 95 % interval as a part of the median. NaN: there is no
 * interval. */
double ddp_quality_interval(const struct ddp_summary *t);

/* Writes the names of the codes, for example "drifting,busy" with the separator ",". Writes "" if
 * there are none. */
void ddp_quality_list(unsigned codes, const char *separator, char *out, size_t out_bytes);
/* Writes, for example, "2 of 6 points are doubtful: busy (2), drifting (1)". Writes "" if none is.
 */
void ddp_quality_summary(const struct ddp_record *record, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
