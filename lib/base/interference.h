/* Disturbances of a measurement: processor time taken by the hypervisor, time throttled by a
 * control group, involuntary context switches. These are counters: read them twice and subtract. */
#ifndef DDP_BASE_INTERFERENCE_H
#define DDP_BASE_INTERFERENCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values that cannot be read are NaN or -1. */
struct ddp_interference {
    double steal_ms;              /* sum over all processors, in steps of a clock tick (10 ms) */
    double throttled_ms;          /* of this process's control group */
    int64_t involuntary_switches; /* of this thread */
};

/* Reads the counters. Opens files, so do not call it in timed regions. */
void ddp_interference_read(struct ddp_interference *out);
/* The same from given files, for tests. stat: /proc/stat; membership: /proc/self/cgroup; mount:
 * /sys/fs/cgroup. */
void ddp_interference_read_from(const char *stat, const char *membership, const char *mount,
                                struct ddp_interference *out);
/* Replaces *after by the difference of the two readings. */
void ddp_interference_since(const struct ddp_interference *before, struct ddp_interference *after);

#ifdef __cplusplus
}
#endif
#endif
