/* Facts about the host, for the result record, `ddpbench doctor` and the memory check. A fact that
 * cannot be read is "", -1 or NaN, never a guess. */
#ifndef DDP_BASE_SYSINFO_H
#define DDP_BASE_SYSINFO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sysinfo {
    char host[64];           /* host name, printable */
    char cpu[96];            /* model name */
    char kernel[64];         /* kernel release */
    char governor[32];       /* cpufreq governor of cpu0; "" if not visible */
    int cores;               /* cores that this process may use */
    int machine_cores;       /* online cores of the machine */
    double cpu_quota;        /* CPU quota of the cgroup, in cores; NaN: no limit, or unknown */
    int64_t memory_bytes;    /* memory of the machine, or the cgroup's limit if lower */
    int64_t available_bytes; /* MemAvailable, or what is left below the cgroup's limit if lower */
    double load;             /* load average over 1 minute */
    char thp[16];            /* transparent huge pages for private memory: "always", ... */
    char shmem_thp[16];      /* the same for shared memory */
};

void ddp_sysinfo_read(struct ddp_sysinfo *out);
/* Returns the i-th entry "NAME=value" of the environment, or NULL past the end. The environment
 * owns the text. */
const char *ddp_sysinfo_environment(size_t i);

#ifdef __cplusplus
}
#endif
#endif
