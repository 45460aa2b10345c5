/* Monotonic time in integer nanoseconds. Everything that is measured uses this one clock. Its
 * resolution and cost are measured and recorded, never assumed. */
#ifndef DDP_BASE_CLOCK_H
#define DDP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns CLOCK_MONOTONIC in ns. The vDSO answers without a system call. */
static inline int64_t ddp_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Writes the wall-clock time as "2026-11-21T04:05:06Z"; out has at least 21 bytes. */
void ddp_clock_iso8601(char *out, unsigned long out_bytes);

/* Measures the median cost of a ddp_now_ns() call, and the smallest non-zero step between two calls
 * (NaN if there was none), both in ns. */
void ddp_clock_measure(double *cost_ns, double *resolution_ns);

/* Sleeps for ns; an interrupted sleep returns early. */
void ddp_sleep_ns(int64_t ns);

#ifdef __cplusplus
}
#endif
#endif
