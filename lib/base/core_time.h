/* Measures the stolen time of a thread: for how long other programs, or a quota of its control
 * group, kept the thread from running. The stolen time is the time that has passed, minus the
 * processor time of the thread, minus the time for which ddp_core_yield left the core to others. A
 * thread that sleeps also uses no processor time, so the stolen time of an interval with a
 * voluntary context switch is 0. It depends on the configuration of Linux whether the processor
 * time of a thread includes time that a hypervisor takes. */
#ifndef DDP_BASE_CORE_TIME_H
#define DDP_BASE_CORE_TIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The counters of a thread at one moment. */
struct ddp_core_time {
    int64_t wall_ns, cpu_ns;
    int64_t yielded_ns; /* time for which ddp_core_yield left the core to others */
    int64_t waits;      /* voluntary context switches; -1: unknown */
};

/* Calls sched_yield, and counts the time for which other threads used the core. If a rank waits
 * with this function, that time does not count as stolen. */
void ddp_core_yield(void);
/* Reads the counters of this thread, with two system calls. */
void ddp_core_time_read(struct ddp_core_time *out);
/* Returns the stolen time between two readings in ns. Returns 0 if the thread slept between them,
 * or if `waits` is unknown. */
int64_t ddp_core_time_stolen(const struct ddp_core_time *before, const struct ddp_core_time *after);

#ifdef __cplusplus
}
#endif
#endif
