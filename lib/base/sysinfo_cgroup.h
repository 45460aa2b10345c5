/* Reads the memory and processor limits of this process's control groups (versions 1 and 2), for
 * sysinfo.c. The paths are parameters so that tests can provide their own files. */
#ifndef DDP_BASE_SYSINFO_CGROUP_H
#define DDP_BASE_SYSINFO_CGROUP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_cgroup {
    /* The lowest memory limit between this process's group and the root; -1: none known. */
    int64_t memory_bytes;
    /* The smallest amount of memory that is still free below one of these limits. Page cache that
     * can be dropped counts as free. -1: no limit, or unknown. */
    int64_t available_bytes;
    double cpu_quota; /* in cores; NaN: no limit, or unknown */
};

/* Reads the limits. Except in tests, `membership` is /proc/self/cgroup and `mount` is
 * /sys/fs/cgroup. */
void ddp_cgroup_read(const char *membership, const char *mount, struct ddp_cgroup *out);

#ifdef __cplusplus
}
#endif
#endif
