#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

void ddp_clock_iso8601(char *out, unsigned long out_bytes)
{
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || strftime(out, out_bytes, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        if (out_bytes > 0)
            out[0] = '\0';
}

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void ddp_clock_measure(double *cost_ns, double *resolution_ns)
{
    enum { BATCHES = 101, CALLS = 32 };
    int64_t batch_ns[BATCHES], smallest_ns = INT64_MAX;
    for (int b = 0; b < BATCHES; b++) {
        int64_t first = ddp_now_ns(), last = first;
        for (int c = 0; c < CALLS; c++) {
            int64_t now = ddp_now_ns();
            if (now > last && now - last < smallest_ns)
                smallest_ns = now - last;
            last = now;
        }
        batch_ns[b] = last - first;
    }
    qsort(batch_ns, BATCHES, sizeof batch_ns[0], compare_ns);
    const int64_t median_ns = batch_ns[BATCHES / 2];
    *cost_ns = (double)median_ns / CALLS;
    *resolution_ns = smallest_ns == INT64_MAX ? NAN : (double)smallest_ns;
}

void ddp_sleep_ns(int64_t ns)
{
    if (ns <= 0)
        return;
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&t, NULL);
}
