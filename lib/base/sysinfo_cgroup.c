#include "base/sysinfo_cgroup.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* A limit of at least this size means "no limit". Version 1 of control groups writes a huge limit
 * instead of "max". */
#define NO_LIMIT ((int64_t)1 << 60)

/* The file names of one version of control groups. */
struct version {
    const char *controller, *limit, *usage, *reclaimable; /* controller: folder below the mount */
};
static const struct version memory_v2 = {"", "memory.max", "memory.current", "inactive_file"};
static const struct version memory_v1 = {"/memory", "memory.limit_in_bytes",
                                         "memory.usage_in_bytes", "total_inactive_file"};

static FILE *open_in(const char *folder, const char *file)
{
    char path[PATH_MAX + 64];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

/* Returns the number in a file, or -1 if the file has none ("max") or cannot be read. */
static int64_t read_number(const char *folder, const char *file)
{
    long long v = -1;
    FILE *f = open_in(folder, file);
    if (!f)
        return -1;
    if (fscanf(f, "%lld", &v) != 1)
        v = -1;
    fclose(f);
    return v;
}

/* Returns a field of memory.stat, or 0 if it is missing. */
static int64_t read_stat(const char *folder, const char *field)
{
    char name[64];
    long long v;
    int64_t found = 0;
    FILE *f = open_in(folder, "memory.stat");
    if (!f)
        return 0;
    while (fscanf(f, "%63s %lld", name, &v) == 2) {
        if (strcmp(name, field) == 0) {
            found = v;
            break;
        }
    }
    fclose(f);
    return found;
}

/* Lowers the memory limits in *out to the limits of this folder. */
static void apply_memory(const struct version *v, const char *folder, struct ddp_cgroup *out)
{
    int64_t limit = read_number(folder, v->limit);
    if (limit < 0 || limit >= NO_LIMIT)
        return;
    if (out->memory_bytes < 0 || limit < out->memory_bytes)
        out->memory_bytes = limit;
    int64_t usage = read_number(folder, v->usage);
    if (usage < 0)
        return;
    int64_t held = DDP_MAX(usage - read_stat(folder, v->reclaimable), 0);
    int64_t left = DDP_MAX(limit - held, 0);
    if (out->available_bytes < 0 || left < out->available_bytes)
        out->available_bytes = left;
}

static void apply_quota(int64_t quota, int64_t period, struct ddp_cgroup *out)
{
    if (quota > 0 && period > 0)
        out->cpu_quota = fmin(out->cpu_quota, (double)quota / (double)period);
}

static void apply_cpu_v2(const char *folder, struct ddp_cgroup *out)
{
    long long quota, period;
    FILE *f = open_in(folder, "cpu.max");
    if (!f)
        return;
    if (fscanf(f, "%lld %lld", &quota, &period) == 2) /* "max 100000" is no limit */
        apply_quota(quota, period, out);
    fclose(f);
}

static void apply_cpu_v1(const char *folder, struct ddp_cgroup *out)
{
    apply_quota(read_number(folder, "cpu.cfs_quota_us"), read_number(folder, "cpu.cfs_period_us"),
                out);
}

static void apply(bool v2, bool memory, const char *folder, struct ddp_cgroup *out)
{
    if (memory)
        apply_memory(v2 ? &memory_v2 : &memory_v1, folder, out);
    else if (v2)
        apply_cpu_v2(folder, out);
    else
        apply_cpu_v1(folder, out);
}

/* Applies the limits of every folder from the group up to the mount, because the process must obey
 * all of them. Skips missing folders. In a container the path of the group may be missing. */
static void apply_folders(bool v2, bool memory, const char *mount, const char *controller,
                          const char *group, struct ddp_cgroup *out)
{
    char folder[PATH_MAX];
    int n = snprintf(folder, sizeof folder, "%s%s%s", mount, controller, group);
    if (n < 0 || (size_t)n >= sizeof folder)
        return;
    size_t top = strlen(mount) + strlen(controller);
    while (strlen(folder) > top) {
        apply(v2, memory, folder, out);
        *strrchr(folder, '/') = '\0';
    }
    apply(v2, memory, folder, out);
}

/* Returns whether `word` is in the comma-separated list [n]. */
static bool list_has(const char *list, size_t n, const char *word)
{
    size_t length = strlen(word);
    for (const char *s = list; s < list + n;) {
        size_t step = 0;
        while (s + step < list + n && s[step] != ',')
            step++;
        if (step == length && strncmp(s, word, length) == 0)
            return true;
        s += step + 1;
    }
    return false;
}

/* Reads a line "ID:controllers:/path" of the membership file and applies the limits of this group
 * and of the groups above it. In lines of version 2 the list of controllers is empty. */
static void read_membership(const char *line, const char *mount, struct ddp_cgroup *out)
{
    const char *list = strchr(line, ':');
    const char *path = list ? strchr(list + 1, ':') : NULL;
    if (!path || path[1] != '/')
        return;
    const char *group = strcmp(path + 1, "/") == 0 ? "" : path + 1;
    size_t n = (size_t)(path - list - 1);
    if (n == 0) {
        apply_folders(true, true, mount, "", group, out);
        apply_folders(true, false, mount, "", group, out);
        return;
    }
    if (list_has(list + 1, n, "memory"))
        apply_folders(false, true, mount, memory_v1.controller, group, out);
    if (list_has(list + 1, n, "cpu"))
        apply_folders(false, false, mount, "/cpu", group, out);
}

void ddp_cgroup_read(const char *membership, const char *mount, struct ddp_cgroup *out)
{
    *out = (struct ddp_cgroup){.memory_bytes = -1, .available_bytes = -1, .cpu_quota = NAN};
    char line[PATH_MAX];
    FILE *f = fopen(membership, "re");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        read_membership(line, mount, out);
    }
    fclose(f);
}
