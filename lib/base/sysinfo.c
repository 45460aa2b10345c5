#include "base/sysinfo.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpuinfo.h"
#include "base/strbuf.h"
#include "base/sysinfo_cgroup.h"

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
    char line[128];
    long long kib;
    int64_t found = -1;
    size_t n = strlen(field);
    FILE *f = fopen("/proc/meminfo", "re");
    if (!f)
        return -1;
    while (found < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, field, n) == 0 && line[n] == ':' &&
            sscanf(line + n + 1, "%lld", &kib) == 1)
            found = kib * 1024;
    fclose(f);
    return found;
}

/* Stores the word in brackets in `out`, for example "madvise" from "always [madvise] never". */
static void read_choice(const char *path, char *out, size_t out_bytes)
{
    char line[128];
    read_line(path, line, sizeof line);
    const char *open = strchr(line, '[');
    size_t n = open ? strcspn(open + 1, "]") : 0;
    snprintf(out, out_bytes, "%.*s", (int)n, open ? open + 1 : "");
}

/* Returns the smaller of two amounts; -1 means unknown. */
static int64_t lower(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
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
    out->memory_bytes = lower(meminfo_bytes("MemTotal"), group.memory_bytes);
    out->available_bytes = lower(meminfo_bytes("MemAvailable"), group.available_bytes);

    read_choice("/sys/kernel/mm/transparent_hugepage/enabled", out->thp, sizeof out->thp);
    read_choice("/sys/kernel/mm/transparent_hugepage/shmem_enabled", out->shmem_thp,
                sizeof out->shmem_thp);
}

const char *ddp_sysinfo_environment(size_t i)
{
    return environ ? environ[i] : NULL;
}
