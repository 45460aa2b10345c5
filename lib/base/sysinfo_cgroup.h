/* What a control group leaves us: memory and processor limits, of versions 1 and 2. Called by
 * sysinfo.c; the paths are parameters so that a test can show it a tree of its own. */
#ifndef DDP_BASE_SYSINFO_CGROUP_H
#define DDP_BASE_SYSINFO_CGROUP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* memory_bytes: the lowest limit on the way from our group to the root; available_bytes: the least
 * that is left below one, page cache that can be dropped counted as free; -1: no limit. cpu_quota:
 * cores' worth of time, NaN: no limit. */
struct ddp_cgroup {
    int64_t memory_bytes, available_bytes;
    double cpu_quota;
};

/* membership: /proc/self/cgroup. mount: /sys/fs/cgroup (version 2, or the folder that holds
 * version 1's controllers). */
void ddp_cgroup_read(const char *membership, const char *mount, struct ddp_cgroup *out);

#ifdef __cplusplus
}
#endif
#endif
