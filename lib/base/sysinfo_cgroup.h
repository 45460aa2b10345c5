/* The memory and processor limits of this process's control groups, versions 1 and 2. sysinfo.c
 * calls it; the paths are parameters so that tests can provide a tree of their own. */
#ifndef DDP_BASE_SYSINFO_CGROUP_H
#define DDP_BASE_SYSINFO_CGROUP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The limits that apply to this process. */
struct ddp_cgroup {
    /* The lowest memory limit between this process's group and the root; -1: no limit. */
    int64_t memory_bytes;
    /* The smallest amount still free below any of these limits; page cache that can be dropped
     * counts as free. -1: no limit. */
    int64_t available_bytes;
    double cpu_quota; /* in cores; NaN: no limit */
};

/* Reads the limits. membership: /proc/self/cgroup. mount: /sys/fs/cgroup (version 2, or the folder
 * with version 1's controllers). */
void ddp_cgroup_read(const char *membership, const char *mount, struct ddp_cgroup *out);

#ifdef __cplusplus
}
#endif
#endif
