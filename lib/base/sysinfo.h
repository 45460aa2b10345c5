/* Facts about the host, read once, for the record, the doctor and the memory check.
 * A fact that cannot be read is an empty string, -1 or NaN; never a guess. */
#ifndef DDP_BASE_SYSINFO_H
#define DDP_BASE_SYSINFO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sysinfo {
    char host[64];           /* printable */
    char cpu[96];            /* model name */
    char kernel[64];         /* release */
    char governor[32];       /* cpufreq governor of cpu0, "" when not visible */
    int cores;               /* usable by this process */
    int machine_cores;       /* that are on line, whoever may use them */
    double cpu_quota;        /* cores' worth of time the cgroup grants, NaN: not limited */
    int64_t memory_bytes;    /* of the machine, or the cgroup's limit when lower */
    int64_t available_bytes; /* MemAvailable, or what the cgroup leaves, whichever is lower */
    double load;             /* 1-minute load average */
    char thp[16]; /* transparent huge pages for anonymous memory: "always", "madvise", "never" */
    char shmem_thp[16]; /* the same for shared memory */
};

void ddp_sysinfo_read(struct ddp_sysinfo *out);
/* The i-th line "NAME=value" of the environment, NULL past the end. Borrowed. */
const char *ddp_sysinfo_environment(size_t i);

#ifdef __cplusplus
}
#endif
#endif
