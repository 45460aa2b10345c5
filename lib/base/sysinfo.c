#include "base/sysinfo.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpuinfo.h"
#include "base/mem.h"
#include "base/strbuf.h"

/* First line of a file without its newline; "" when unreadable. */
static void read_line(const char *path, char *out, size_t out_bytes)
{
    FILE *f = fopen(path, "re");
    out[0] = '\0';
    if (!f)
        return;
    if (!fgets(out, (int)out_bytes, f))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(f);
}

/* The text after `key` and its separator in the first line of a file that begins with it. */
static void find_value(const char *path, const char *key, char *out, size_t out_bytes)
{
    char line[512];
    FILE *f = fopen(path, "re");
    out[0] = '\0';
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *p = line + strlen(key);
        p += strspn(p, " \t:");
        line[strcspn(line, "\n")] = '\0';
        ddp_printable(p, out, out_bytes);
        break;
    }
    if (f)
        fclose(f);
}

static int64_t read_int(const char *path)
{
    char text[64];
    char *end;
    read_line(path, text, sizeof text);
    long long v = strtoll(text, &end, 10);
    return end == text || *end ? -1 : v;
}

static int64_t meminfo_bytes(const char *key)
{
    char text[64];
    find_value("/proc/meminfo", key, text, sizeof text);
    long long kib = text[0] ? strtoll(text, NULL, 10) : -1;
    return kib < 0 ? -1 : kib * 1024;
}

/* Our cgroup's folder under v2 ("0::/path"), or "" . */
static void cgroup_dir(char *out, size_t out_bytes)
{
    char path[256];
    find_value("/proc/self/cgroup", "0:", path, sizeof path);
    snprintf(out, out_bytes, "/sys/fs/cgroup%s", path);
}

/* Lowers total and available to what the cgroup (v2, else v1) allows. */
static void apply_cgroup(struct ddp_sysinfo *s)
{
    char dir[320], path[400];
    cgroup_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/memory.max", dir);
    int64_t limit = read_int(path);
    snprintf(path, sizeof path, "%s/memory.current", dir);
    int64_t used = read_int(path);
    if (limit < 0) {
        limit = read_int("/sys/fs/cgroup/memory/memory.limit_in_bytes");
        used = read_int("/sys/fs/cgroup/memory/memory.usage_in_bytes");
    }
    if (limit <= 0)
        return;
    if (s->memory_bytes < 0 || limit < s->memory_bytes)
        s->memory_bytes = limit;
    if (used >= 0 && limit - used < s->available_bytes)
        s->available_bytes = DDP_MAX(limit - used, 0);
}

/* The word in brackets of "always [madvise] never". */
static void bracketed(const char *path, char *out, size_t out_bytes)
{
    char line[128];
    read_line(path, line, sizeof line);
    char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    out[0] = '\0';
    if (close)
        snprintf(out, out_bytes, "%.*s", (int)(close - open - 1), open + 1);
}

void ddp_sysinfo_read(struct ddp_sysinfo *s)
{
    char host[HOST_NAME_MAX + 1] = "", governor[64];
    struct utsname u;
    memset(s, 0, sizeof *s);
    gethostname(host, sizeof host - 1);
    ddp_printable(host, s->host, sizeof s->host);
    find_value("/proc/cpuinfo", "model name", s->cpu, sizeof s->cpu);
    if (uname(&u) == 0)
        ddp_printable(u.release, s->kernel, sizeof s->kernel);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof governor);
    ddp_printable(governor, s->governor, sizeof s->governor);
    s->cores = ddp_cpu_usable_cores();
    s->memory_bytes = meminfo_bytes("MemTotal");
    s->available_bytes = meminfo_bytes("MemAvailable");
    apply_cgroup(s);
    if (getloadavg(&s->load, 1) != 1)
        s->load = NAN;
    bracketed("/sys/kernel/mm/transparent_hugepage/enabled", s->thp, sizeof s->thp);
    bracketed("/sys/kernel/mm/transparent_hugepage/shmem_enabled", s->shmem_thp,
              sizeof s->shmem_thp);
}
