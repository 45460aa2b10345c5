/* Counters of disturbances of a measurement: processor time taken by the hypervisor, time throttled
 * by a control group, and involuntary context switches. Read the counters before and after the
 * measurement and subtract (ddp_interference_since). */
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

/* Reads the counters. Do not call this function in timed regions, because it opens files. */
void ddp_interference_read(struct ddp_interference *out);
/* Like ddp_interference_read, but reads the given files, for tests. The usual paths are /proc/stat
 * for `stat`, /proc/self/cgroup for `membership` and /sys/fs/cgroup for `mount`. */
void ddp_interference_read_from(const char *stat, const char *membership, const char *mount,
                                struct ddp_interference *out);
/* Subtracts *before from *after. A difference of which one value is unknown is unknown. */
void ddp_interference_since(const struct ddp_interference *before, struct ddp_interference *after);

#ifdef __cplusplus
}
#endif
#endif
