/* Measures for how long the core of this thread was taken from it, by other programs or by a quota
 * of its control group. This is the time that has passed, minus the processor time of the thread,
 * minus the time for which ddp_core_yield left the core to others. A thread that sleeps also uses
 * no processor time, so an interval with a voluntary context switch counts as 0. Linux attributes
 * the time that a hypervisor takes to the thread or not, depending on its configuration. */
#ifndef DDP_BASE_CORE_TIME_H
#define DDP_BASE_CORE_TIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The counters of a thread at a time. */
struct ddp_core_time {
    int64_t wall_ns, cpu_ns;
    int64_t yielded_ns; /* time for which ddp_core_yield left the core to others */
    int64_t waits;      /* voluntary context switches; -1: unknown */
};

/* Yields the core, like sched_yield. A waiting loop uses this function, because the core of a rank
 * that only waits is not stolen. */
void ddp_core_yield(void);
/* Reads the counters of this thread, with two system calls. */
void ddp_core_time_read(struct ddp_core_time *out);
/* Returns for how long, in ns, the core was taken between two readings. */
int64_t ddp_core_time_stolen(const struct ddp_core_time *before, const struct ddp_core_time *after);

#ifdef __cplusplus
}
#endif
#endif
