#include "base/core_time.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"

/* If sched_yield returns in less time than this, the core is assumed to have had no other user. */
#define YIELDED_NS 20000

static _Thread_local int64_t yielded_ns;

void ddp_core_yield(void)
{
    const int64_t begin = ddp_now_ns();
    sched_yield();
    const int64_t took = ddp_now_ns() - begin;
    if (took >= YIELDED_NS)
        yielded_ns += took;
}

void ddp_core_time_read(struct ddp_core_time *out)
{
    struct rusage usage;
    struct timespec t;
    out->waits = getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : -1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    out->cpu_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    out->yielded_ns = yielded_ns;
    out->wall_ns = ddp_now_ns();
}

int64_t ddp_core_time_stolen(const struct ddp_core_time *before, const struct ddp_core_time *after)
{
    const int64_t stolen = after->wall_ns - before->wall_ns - (after->cpu_ns - before->cpu_ns) -
                           (after->yielded_ns - before->yielded_ns);
    return stolen > 0 && before->waits >= 0 && before->waits == after->waits ? stolen : 0;
}
