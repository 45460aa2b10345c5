#include "base/interference.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Returns the steal time. It is the eighth number in the first line of /proc/stat, in clock ticks
 * (proc(5)). */
static double read_steal_ms(const char *path)
{
    unsigned long long v[8];
    double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    FILE *f = fopen(path, "re");
    if (!f)
        return NAN;
    int n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
                   &v[4], &v[5], &v[6], &v[7]);
    fclose(f);
    return n == 8 && ticks_per_s > 0 ? (double)v[7] * 1e3 / ticks_per_s : NAN;
}

/* Returns the throttled time from folder/cpu.stat. Version 2 of control groups counts microseconds,
 * and version 1 counts nanoseconds. */
static double read_throttled_ms(const char *folder)
{
    char path[PATH_MAX + 16], name[64];
    unsigned long long v;
    double ms = NAN;
    int n = snprintf(path, sizeof path, "%s/cpu.stat", folder);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!f)
        return NAN;
    while (isnan(ms) && fscanf(f, "%63s %llu", name, &v) == 2) {
        if (strcmp(name, "throttled_usec") == 0)
            ms = (double)v / 1e3;
        else if (strcmp(name, "throttled_time") == 0)
            ms = (double)v / 1e6;
    }
    fclose(f);
    return ms;
}

/* Returns the throttled time of the group in a line "ID:controllers:/path". If this group has no
 * file cpu.stat, returns the throttled time of the mount itself. In a container the path of the
 * group may be missing under the mount. In version 2 the list of controllers is empty. */
static double throttled_by(const char *line, const char *mount)
{
    char folder[PATH_MAX];
    const char *list = strchr(line, ':');
    const char *path = list ? strchr(list + 1, ':') : NULL;
    if (!path || path[1] != '/')
        return NAN;
    const bool v2 = path == list + 1;
    if (!v2 && strncmp(list, ":cpu:", 5) != 0 && strncmp(list, ":cpu,", 5) != 0)
        return NAN;
    int n = snprintf(folder, sizeof folder, "%s%s%s", mount, v2 ? "" : "/cpu", path + 1);
    double ms = n > 0 && (size_t)n < sizeof folder ? read_throttled_ms(folder) : NAN;
    if (!isnan(ms))
        return ms;
    n = snprintf(folder, sizeof folder, "%s%s", mount, v2 ? "" : "/cpu");
    return n > 0 && (size_t)n < sizeof folder ? read_throttled_ms(folder) : NAN;
}

void ddp_interference_read_from(const char *stat, const char *membership, const char *mount,
                                struct ddp_interference *out)
{
    char line[PATH_MAX];
    struct rusage usage;
    *out = (struct ddp_interference){.throttled_ms = NAN, .involuntary_switches = -1};
    out->steal_ms = read_steal_ms(stat);
    FILE *f = fopen(membership, "re");
    while (f && isnan(out->throttled_ms) && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        out->throttled_ms = throttled_by(line, mount);
    }
    if (f)
        fclose(f);
    if (getrusage(RUSAGE_THREAD, &usage) == 0)
        out->involuntary_switches = usage.ru_nivcsw;
}

void ddp_interference_read(struct ddp_interference *out)
{
    ddp_interference_read_from("/proc/stat", "/proc/self/cgroup", "/sys/fs/cgroup", out);
}

void ddp_interference_since(const struct ddp_interference *before, struct ddp_interference *after)
{
    /* On some hypervisors the steal time is known to run backwards. */
    after->steal_ms = isnan(before->steal_ms) || isnan(after->steal_ms)
                          ? NAN
                          : fmax(0, after->steal_ms - before->steal_ms);
    after->throttled_ms -= before->throttled_ms;
    if (before->involuntary_switches < 0 || after->involuntary_switches < 0)
        after->involuntary_switches = -1;
    else
        after->involuntary_switches -= before->involuntary_switches;
}
