/* Monotonic time in integer nanoseconds. One clock for everything that is measured.
 * Its resolution and cost are measured and recorded, never assumed. */
#ifndef DDP_BASE_CLOCK_H
#define DDP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CLOCK_MONOTONIC now, in ns. vDSO: no system call. */
static inline int64_t ddp_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Wall-clock time as "2026-11-21T04:05:06Z"; out holds at least 21 bytes. */
void ddp_clock_iso8601(char *out, unsigned long out_bytes);

/* Median cost in ns of one ddp_now_ns() call, and the smallest non-zero step seen between two. */
void ddp_clock_measure(double *cost_ns, double *resolution_ns);

/* Sleeps; interrupted sleeps return early. */
void ddp_sleep_ns(int64_t ns);

#ifdef __cplusplus
}
#endif
#endif
