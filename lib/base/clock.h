/* Monotonic time in integer nanoseconds. The result record contains the resolution of the clock and
 * the duration of a call of ddp_now_ns. */
#ifndef DDP_BASE_CLOCK_H
#define DDP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns CLOCK_MONOTONIC in ns. This usually needs no system call, because the C library reads the
 * clock through the vDSO. */
static inline int64_t ddp_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Writes the current UTC time as "2026-11-21T04:05:06Z". If out_bytes is less than 21, writes ""
 * instead. */
void ddp_clock_iso8601(char *out, unsigned long out_bytes);

/* Measures ddp_now_ns(). *cost_ns becomes the time per call (the median over batches of calls).
 * *resolution_ns becomes the smallest non-zero step between two calls, or NaN if there was none. */
void ddp_clock_measure(double *cost_ns, double *resolution_ns);

/* Sleeps for `ns` nanoseconds. Returns early if a signal interrupts the sleep. */
void ddp_sleep_ns(int64_t ns);

#ifdef __cplusplus
}
#endif
#endif
