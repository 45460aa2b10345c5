/* What others did to us while we measured: processor time a hypervisor took, time a control group
 * held us back, switches away from this thread that it did not ask for. Counters since some past
 * moment: read twice and subtract. */
#ifndef DDP_BASE_INTERFERENCE_H
#define DDP_BASE_INTERFERENCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* steal_ms: of all processors of the machine together, in steps of a clock tick (10 ms).
 * throttled_ms: of our control group. involuntary_switches: of this thread. NaN and -1: cannot be
 * read. */
struct ddp_interference {
    double steal_ms, throttled_ms;
    int64_t involuntary_switches;
};

/* Reads files: not for timed regions. */
void ddp_interference_read(struct ddp_interference *out);
/* The same from given files, for tests. stat: /proc/stat; membership: /proc/self/cgroup; mount:
 * /sys/fs/cgroup. */
void ddp_interference_read_from(const char *stat, const char *membership, const char *mount,
                                struct ddp_interference *out);
/* *after becomes what happened between the two readings. */
void ddp_interference_since(const struct ddp_interference *before, struct ddp_interference *after);

#ifdef __cplusplus
}
#endif
#endif
