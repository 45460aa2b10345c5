/* Facts about the host, for the result record, `ddpbench doctor` and the memory check. A fact that
 * cannot be read is "", -1 or NaN, never a guess. There are two exceptions: the number of cores is
 * at least 1, and the size of huge pages is taken as 2 MiB if it cannot be read. */
#ifndef DDP_BASE_SYSINFO_H
#define DDP_BASE_SYSINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

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
    int64_t available_bytes; /* MemAvailable, or what the cgroup's limit leaves if that is less */
    double load;             /* load average over 1 minute */
    char thp[16];            /* transparent huge pages for private memory: "always", ... */
    char shmem_thp[16];      /* the same for shared memory */
};

void ddp_sysinfo_read(struct ddp_sysinfo *out);
/* Returns DDP_ENOMEM if a run needs more than the available memory. available_bytes is the member
 * of struct ddp_sysinfo. If it is -1, the function returns 0. The message consists of the formatted
 * text, in which the caller gives the needed memory, and of the available memory. */
int ddp_memory_check(uint64_t needed_bytes, int64_t available_bytes, struct ddp_err *err,
                     const char *fmt, ...) DDP_PRINTF(4, 5);
/* Writes the available memory, such as "3.5 GiB", or "unknown". */
void ddp_memory_text(int64_t available_bytes, char *out, size_t out_bytes);
/* These functions write the path of this program's file, or of its folder, to `out` [out_bytes]. A
 * path that does not fit is cut. If the path is not known, they write "" and return false. */
bool ddp_own_path(char *out, size_t out_bytes);
bool ddp_own_folder(char *out, size_t out_bytes);
/* Returns the i-th entry "NAME=value" of the environment, or NULL past the end. The environment
 * owns the text. */
const char *ddp_sysinfo_environment(size_t i);
/* Returns the value of PATH, or the default search path if PATH is not set. */
const char *ddp_search_path(void);
/* Writes the path FOLDER/name for the first folder of *path, whether or not the file exists, and
 * moves *path to the next folder. Colons separate the folders. An empty name means the current
 * folder, but is ignored at the end of *path. Skips folders whose path does not fit. Returns false
 * at the end of *path. Does not allocate memory, so a forked child process may call this
 * function. */
bool ddp_search_next(const char **path, const char *name, char *out, size_t out_bytes);
/* Writes the path of the first executable file `name` in the folders of PATH. Returns false if
 * there is none. */
bool ddp_find_program(const char *name, char *out, size_t out_bytes);

/* Returns the page size of the mapping that holds ptr, from /proc/self/smaps, or -1 if it is not
 * known. Returns the size of huge pages if they hold at least half of the mapping's resident
 * memory. The caller must write to the memory first, because memory that was never written has no
 * pages. Do not call this function in timed regions, because it reads files. */
int64_t ddp_page_bytes(const void *ptr);

/* The memory and processor limits of this process's control groups (versions 1 and 2). */
struct ddp_cgroup {
    /* The lowest memory limit between this process's group and the root; -1: none known. */
    int64_t memory_bytes;
    /* The smallest difference between a limit and the memory that its group uses. Page cache that
     * can be dropped counts as free. -1: no limit, or unknown. */
    int64_t available_bytes;
    double cpu_quota; /* in cores; NaN: no limit, or unknown */
};

/* Reads the limits. Except in tests, `membership` is /proc/self/cgroup and `mount` is
 * /sys/fs/cgroup. */
void ddp_cgroup_read(const char *membership, const char *mount, struct ddp_cgroup *out);

/* Returns how many processes of this process's control group the kernel has killed because memory
 * ran out, or -1 if this is unknown. The arguments are those of ddp_cgroup_read. */
int64_t ddp_cgroup_oom_kills(const char *membership, const char *mount);

/* Counters that show whether a measurement was disturbed: the processor time that the hypervisor
 * took, the time for which the control group throttled this process, and the involuntary context
 * switches. The clock of the processor is read, too. Callers read the counters before and after a
 * measurement, and subtract (ddp_interference_since). Values that cannot be read are NaN or -1.
 * network.h has the counters of the network. */
struct ddp_interference {
    double steal_ms;              /* sum over all processors, in steps of a clock tick (10 ms) */
    double throttled_ms;          /* of this process's control group */
    int64_t involuntary_switches; /* of this thread */
    double clock_MHz;             /* of this thread's processor; NaN: a virtual machine hides it */
};

/* Reads the counters. Do not call this function in timed regions, because it opens files. */
void ddp_interference_read(struct ddp_interference *out);
/* The files that ddp_interference_read reads. Tests use other files. */
struct ddp_interference_files {
    const char *stat;       /* /proc/stat */
    const char *membership; /* /proc/self/cgroup */
    const char *mount;      /* /sys/fs/cgroup */
    const char *cpus;       /* /sys/devices/system/cpu */
};
void ddp_interference_read_from(const struct ddp_interference_files *files,
                                struct ddp_interference *out);
/* Subtracts the counters in *before from those in *after. If one of the two values of a counter is
 * unknown, the difference is unknown. after->clock_MHz becomes the lower one of the two clocks, or
 * NaN if one of them is unknown. */
void ddp_interference_since(const struct ddp_interference *before, struct ddp_interference *after);

#ifdef __cplusplus
}
#endif
#endif
