#include "base/sysinfo.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpuinfo.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/unit.h"

/* A limit of at least this size means "no limit". Version 1 of control groups writes a huge limit
 * instead of "max". */
#define NO_LIMIT ((int64_t)1 << 60)

/* The names that one version of control groups uses: two files, and the field of memory.stat that
 * counts the reclaimable page cache. */
struct version {
    const char *limit, *usage, *reclaimable;
};
static const struct version memory_v2 = {"memory.max", "memory.current", "inactive_file"};
static const struct version memory_v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                         "total_inactive_file"};

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

/* Reads a file whose lines are "NAME NUMBER" or "NAME NUMBER UNIT". Returns the number on the line
 * of `field`, or -1 if there is no such line. */
static int64_t read_field(const char *folder, const char *file, const char *field)
{
    char name[64];
    long long v;
    int64_t found = -1;
    FILE *f = open_in(folder, file);
    while (f && found < 0 && fscanf(f, "%63s %lld%*[^\n]", name, &v) == 2)
        if (strcmp(name, field) == 0)
            found = v;
    if (f)
        fclose(f);
    return found;
}

/* Returns the smaller of two amounts; -1 means unknown. */
static int64_t lower(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Lowers out->memory_bytes to the limit of this folder, and out->available_bytes to the memory that
 * this limit leaves. Values that are already lower do not change. */
static void apply_memory(const struct version *v, const char *folder, struct ddp_cgroup *out)
{
    int64_t limit = read_number(folder, v->limit);
    if (limit < 0 || limit >= NO_LIMIT)
        return;
    out->memory_bytes = lower(out->memory_bytes, limit);
    int64_t usage = read_number(folder, v->usage);
    if (usage < 0)
        return;
    int64_t reclaimable = read_field(folder, "memory.stat", v->reclaimable);
    int64_t held = DDP_MAX(usage - DDP_MAX(reclaimable, 0), 0);
    out->available_bytes = lower(out->available_bytes, DDP_MAX(limit - held, 0));
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
    if (fscanf(f, "%lld %lld", &quota, &period) == 2) /* "max 100000": no limit */
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

/* Applies the limits of every folder from the group up to the mount, because all of them apply to
 * the process. Skips missing folders, because in a container the path of the group may be
 * missing. */
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

/* Returns whether `name` is an item of the comma-separated list [n]. */
static bool list_has(const char *list, size_t n, const char *name)
{
    size_t length = strlen(name);
    for (const char *s = list; s < list + n;) {
        size_t step = 0;
        while (s + step < list + n && s[step] != ',')
            step++;
        if (step == length && strncmp(s, name, length) == 0)
            return true;
        s += step + 1;
    }
    return false;
}

/* A line "ID:controllers:/path" of the membership file. In version 2 the list of controllers is
 * empty. */
struct group {
    char line[PATH_MAX];
    const char *list, *path; /* path: "" for the root */
    size_t list_bytes;
    bool v2;
};

/* Reads the next line. Returns false if there is no further line or f is NULL. */
static bool next_group(FILE *f, struct group *g)
{
    while (f && fgets(g->line, sizeof g->line, f)) {
        g->line[strcspn(g->line, "\n")] = '\0';
        const char *list = strchr(g->line, ':');
        const char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        g->list = list + 1;
        g->list_bytes = (size_t)(path - g->list);
        g->v2 = g->list_bytes == 0;
        g->path = strcmp(path, ":/") == 0 ? "" : path + 1;
        return true;
    }
    return false;
}

static bool controls(const struct group *g, const char *controller)
{
    return g->v2 || list_has(g->list, g->list_bytes, controller);
}

void ddp_cgroup_read(const char *membership, const char *mount, struct ddp_cgroup *out)
{
    struct group g;
    *out = (struct ddp_cgroup){.memory_bytes = -1, .available_bytes = -1, .cpu_quota = NAN};
    FILE *f = fopen(membership, "re");
    while (next_group(f, &g)) {
        if (controls(&g, "memory"))
            apply_folders(g.v2, true, mount, g.v2 ? "" : "/memory", g.path, out);
        if (controls(&g, "cpu"))
            apply_folders(g.v2, false, mount, g.v2 ? "" : "/cpu", g.path, out);
    }
    if (f)
        fclose(f);
}

int64_t ddp_cgroup_oom_kills(const char *membership, const char *mount)
{
    struct group g;
    int64_t kills = -1;
    FILE *f = fopen(membership, "re");
    while (kills < 0 && next_group(f, &g)) {
        /* In a container the path of the group may be missing under the mount. In this case, the
         * mount itself is tried. */
        const char *const paths[] = {g.path, ""};
        for (size_t i = 0; i < DDP_COUNT_OF(paths) && kills < 0 && controls(&g, "memory"); i++) {
            char folder[PATH_MAX];
            int n =
                snprintf(folder, sizeof folder, "%s%s%s", mount, g.v2 ? "" : "/memory", paths[i]);
            if (n > 0 && (size_t)n < sizeof folder)
                kills =
                    read_field(folder, g.v2 ? "memory.events" : "memory.oom_control", "oom_kill");
        }
    }
    if (f)
        fclose(f);
    return kills;
}

/* Returns the steal time, which is the eighth number in the first line of /proc/stat, in clock
 * ticks (proc(5)). */
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
    const int64_t us = read_field(folder, "cpu.stat", "throttled_usec");
    const int64_t ns = us < 0 ? read_field(folder, "cpu.stat", "throttled_time") : us * 1000;
    return ns < 0 ? NAN : (double)ns / 1e6;
}

/* Returns the throttled time of a group. In a container the path of the group may be missing under
 * the mount. In this case, returns the throttled time of the mount itself (version 1: of its folder
 * cpu). */
static double throttled_by(const struct group *g, const char *mount)
{
    char folder[PATH_MAX];
    const char *const paths[] = {g->path, ""};
    double ms = NAN;
    for (size_t i = 0; i < DDP_COUNT_OF(paths) && isnan(ms); i++) {
        int n = snprintf(folder, sizeof folder, "%s%s%s", mount, g->v2 ? "" : "/cpu", paths[i]);
        if (n > 0 && (size_t)n < sizeof folder)
            ms = read_throttled_ms(folder);
    }
    return ms;
}

/* Returns the clock of the processor that runs this thread, or NaN. scaling_cur_freq contains the
 * clock in kHz. */
static double read_clock_MHz(const char *cpus)
{
    char folder[PATH_MAX];
    const int n = snprintf(folder, sizeof folder, "%s/cpu%d/cpufreq", cpus, sched_getcpu());
    const int64_t kHz =
        n > 0 && (size_t)n < sizeof folder ? read_number(folder, "scaling_cur_freq") : -1;
    return kHz > 0 ? (double)kHz / 1e3 : NAN;
}

void ddp_interference_read_from(const struct ddp_interference_files *files,
                                struct ddp_interference *out)
{
    struct group g;
    struct rusage usage;
    *out = (struct ddp_interference){.throttled_ms = NAN, .involuntary_switches = -1};
    out->steal_ms = read_steal_ms(files->stat);
    out->clock_MHz = read_clock_MHz(files->cpus);
    FILE *f = fopen(files->membership, "re");
    while (isnan(out->throttled_ms) && next_group(f, &g))
        if (controls(&g, "cpu"))
            out->throttled_ms = throttled_by(&g, files->mount);
    if (f)
        fclose(f);
    if (getrusage(RUSAGE_THREAD, &usage) == 0)
        out->involuntary_switches = usage.ru_nivcsw;
}

void ddp_interference_read(struct ddp_interference *out)
{
    static const struct ddp_interference_files files = {
        .stat = "/proc/stat",
        .membership = "/proc/self/cgroup",
        .mount = "/sys/fs/cgroup",
        .cpus = "/sys/devices/system/cpu",
    };
    ddp_interference_read_from(&files, out);
}

void ddp_interference_since(const struct ddp_interference *before, struct ddp_interference *after)
{
    /* On some hypervisors the steal time can run backwards. The difference is then 0. */
    after->steal_ms = isnan(before->steal_ms) || isnan(after->steal_ms)
                          ? NAN
                          : fmax(0, after->steal_ms - before->steal_ms);
    after->throttled_ms -= before->throttled_ms;
    after->involuntary_switches =
        before->involuntary_switches < 0 || after->involuntary_switches < 0
            ? -1
            : after->involuntary_switches - before->involuntary_switches;
    after->clock_MHz = isnan(before->clock_MHz) || isnan(after->clock_MHz)
                           ? NAN
                           : fmin(before->clock_MHz, after->clock_MHz);
}

/* Stores the first line of a small file in `out`, without the newline. Stores "" if the file cannot
 * be read. */
static void read_line(const char *path, char *out, size_t out_bytes)
{
    out[0] = '\0';
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    if (!fgets(out, (int)out_bytes, f))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(f);
}

static void copy_printable(const char *text, char *out, size_t out_bytes)
{
    while (isspace((unsigned char)*text))
        text++;
    ddp_printable(text, out, out_bytes);
}

static void read_cpu(char *out, size_t out_bytes)
{
    char line[256];
    out[0] = '\0';
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f)
        return;
    while (!out[0] && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        copy_printable(colon + 1, out, out_bytes);
    }
    fclose(f);
}

/* Returns a field of /proc/meminfo in bytes, or -1 if it is missing. */
static int64_t meminfo_bytes(const char *field)
{
    const int64_t kib = read_field("/proc", "meminfo", field);
    return kib < 0 ? -1 : kib * 1024;
}

/* Stores the choice in brackets in `out`, for example "madvise" from "always [madvise] never". */
static void read_choice(const char *path, char *out, size_t out_bytes)
{
    char line[128];
    read_line(path, line, sizeof line);
    const char *open = strchr(line, '[');
    size_t n = open ? strcspn(open + 1, "]") : 0;
    snprintf(out, out_bytes, "%.*s", (int)n, open ? open + 1 : "");
}

bool ddp_own_path(char *out, size_t out_bytes)
{
    const ssize_t n = readlink("/proc/self/exe", out, out_bytes - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool ddp_own_folder(char *out, size_t out_bytes)
{
    char *slash = ddp_own_path(out, out_bytes) ? strrchr(out, '/') : NULL;
    if (slash == NULL)
        out[0] = '\0';
    else
        *slash = '\0';
    return slash != NULL;
}

void ddp_sysinfo_read(struct ddp_sysinfo *out)
{
    *out = (struct ddp_sysinfo){.memory_bytes = -1, .available_bytes = -1, .load = NAN};
    char host[256] = "";
    struct utsname uts;
    if (gethostname(host, sizeof host - 1) == 0)
        copy_printable(host, out->host, sizeof out->host);
    if (uname(&uts) == 0)
        copy_printable(uts.release, out->kernel, sizeof out->kernel);
    read_cpu(out->cpu, sizeof out->cpu);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", out->governor,
              sizeof out->governor);
    out->cores = ddp_cpu_usable_cores();
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    out->machine_cores = online > out->cores ? (int)online : out->cores;
    double loads[1];
    if (getloadavg(loads, 1) == 1)
        out->load = loads[0];

    struct ddp_cgroup group;
    ddp_cgroup_read("/proc/self/cgroup", "/sys/fs/cgroup", &group);
    out->cpu_quota = group.cpu_quota;
    out->memory_bytes = lower(meminfo_bytes("MemTotal:"), group.memory_bytes);
    out->available_bytes = lower(meminfo_bytes("MemAvailable:"), group.available_bytes);

    read_choice("/sys/kernel/mm/transparent_hugepage/enabled", out->thp, sizeof out->thp);
    read_choice("/sys/kernel/mm/transparent_hugepage/shmem_enabled", out->shmem_thp,
                sizeof out->shmem_thp);
}

/* Size of a huge page on x86-64, and on arm64 with 4 KiB pages. */
#define HUGE_BYTES_DEFAULT (2 << 20)

int64_t ddp_page_bytes(const void *ptr)
{
    char line[512], key[64];
    uint64_t begin, end, at = (uint64_t)(uintptr_t)ptr;
    int64_t kb, page_kb = -1, resident_kb = 0, huge_kb = 0;
    bool inside = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f)
        return -1;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
            if (inside)
                break;
            inside = at >= begin && at < end;
        } else if (inside && sscanf(line, "%63[^:]: %" SCNd64 " kB", key, &kb) == 2) {
            if (strcmp(key, "KernelPageSize") == 0)
                page_kb = kb;
            else if (strcmp(key, "Rss") == 0)
                resident_kb = kb;
            else if (strcmp(key, "AnonHugePages") == 0 || strcmp(key, "ShmemPmdMapped") == 0 ||
                     strcmp(key, "FilePmdMapped") == 0)
                huge_kb += kb;
        }
    }
    fclose(f);
    if (page_kb < 0)
        return -1;
    if (huge_kb == 0 || huge_kb * 2 < resident_kb)
        return page_kb * 1024;
    const int64_t huge = read_number("/sys/kernel/mm/transparent_hugepage", "hpage_pmd_size");
    return huge > 0 ? huge : HUGE_BYTES_DEFAULT;
}

const char *ddp_sysinfo_environment(size_t i)
{
    return environ ? environ[i] : NULL;
}

const char *ddp_search_path(void)
{
    const char *path = getenv("PATH");
    return path ? path : "/bin:/usr/bin";
}

bool ddp_search_next(const char **path, const char *name, char *out, size_t out_bytes)
{
    while (**path != '\0') {
        const int n = (int)strcspn(*path, ":");
        const int length = snprintf(out, out_bytes, "%.*s%s%s", n, *path, n > 0 ? "/" : "", name);
        *path += n + ((*path)[n] == ':');
        if (length >= 0 && (size_t)length < out_bytes)
            return true;
    }
    return false;
}

bool ddp_find_program(const char *name, char *out, size_t out_bytes)
{
    const char *path = ddp_search_path();
    struct stat file;
    while (ddp_search_next(&path, name, out, out_bytes))
        if (access(out, X_OK) == 0 && stat(out, &file) == 0 && S_ISREG(file.st_mode))
            return true;
    return false;
}

void ddp_memory_text(int64_t available_bytes, char *out, size_t out_bytes)
{
    if (available_bytes >= 0)
        ddp_format_size((uint64_t)available_bytes, out, out_bytes);
    else
        snprintf(out, out_bytes, "unknown");
}

int ddp_memory_check(uint64_t needed_bytes, int64_t available_bytes, struct ddp_err *err,
                     const char *fmt, ...)
{
    char text[400], available[24];
    va_list args;
    if (available_bytes < 0 || needed_bytes <= (uint64_t)available_bytes)
        return 0;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ddp_memory_text(available_bytes, available, sizeof available);
    return ddp_fail(err, DDP_ENOMEM, "%s, but %s are available", text, available);
}
