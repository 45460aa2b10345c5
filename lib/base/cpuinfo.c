#include "base/cpuinfo.h"

#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"

static const char *const names[DDP_SIMD_COUNT] = {
    [DDP_SIMD_SCALAR] = "scalar",
    [DDP_SIMD_AVX2] = "avx2",
    [DDP_SIMD_AVX512] = "avx512",
};

#if defined(__x86_64__)
#include <cpuid.h>

static int has_f16c(void)
{
    unsigned eax, ebx, ecx, edx; /* the __builtin_cpu_supports of clang 14 rejects "f16c" */
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & (1u << 29));
}

static enum ddp_simd find_best_simd(void)
{
    /* __builtin_cpu_supports also checks, by XGETBV, that the operating system saves the
     * registers. */
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
        return DDP_SIMD_SCALAR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return DDP_SIMD_AVX512;
    return DDP_SIMD_AVX2;
}
#else
static enum ddp_simd find_best_simd(void)
{
    return DDP_SIMD_SCALAR;
}
#endif

enum ddp_simd ddp_cpu_best_simd(void)
{
    /* The level is stored, because a cpuid instruction may take 10 us or more in a virtual machine.
     * Several threads may find the level at the same time. This is harmless, because they all find
     * the same level. */
    static atomic_int best = -1;
    int level = atomic_load_explicit(&best, memory_order_relaxed);
    if (level < 0) {
        level = (int)find_best_simd();
        atomic_store_explicit(&best, level, memory_order_relaxed);
    }
    return (enum ddp_simd)level;
}

const char *ddp_simd_name(enum ddp_simd level)
{
    return (unsigned)level < DDP_SIMD_COUNT ? names[level] : "unknown";
}

int ddp_simd_parse(const char *name)
{
    for (int i = 0; i < DDP_SIMD_COUNT; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

int ddp_cpu_usable_cores(void)
{
    /* Linux refuses a mask with fewer bits than the kernel's own mask, so the mask grows until
     * Linux accepts it. */
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            break;
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        int n = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (n > 0)
            return n;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* Reads a range such as "8" or "0-3" at *at, and moves *at past the range. Returns false if there
 * is no range, or if the range is malformed. */
static bool read_range(const char **at, unsigned long *first, unsigned long *last)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    *first = *last = strtoul(*at, &end, 10);
    if (*end == '-' && isdigit((unsigned char)end[1]))
        *last = strtoul(end + 1, &end, 10);
    *at = end;
    return *first <= *last;
}

/* Sets *out to the processors of `list`. Returns false if `list` is empty or malformed. */
static bool parse_list(const char *list, cpu_set_t *out)
{
    unsigned long first, last;
    CPU_ZERO(out);
    for (const char *at = list;; at++) {
        if (!read_range(&at, &first, &last) || last >= CPU_SETSIZE)
            return false;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            CPU_SET(cpu, out);
        if (*at == '\0')
            return true;
        if (*at != ',')
            return false;
    }
}

bool ddp_cpu_restrict(const char *list)
{
    cpu_set_t near, now;
    if (!parse_list(list, &near) || sched_getaffinity(0, sizeof now, &now) != 0)
        return false;
    CPU_AND(&near, &near, &now);
    return CPU_COUNT(&near) > 0 && sched_setaffinity(0, sizeof near, &near) == 0;
}

#define INDICES 8 /* maximum number of caches read per processor; four is usual */
#define WORD    4096

/* Reads an attribute file of a cache and stores its first word in `out`, cut to out_bytes. Stores
 * "" if the file cannot be read. */
static void read_word(const char *sys, int cpu, int index, const char *file, char *out,
                      size_t out_bytes)
{
    char path[PATH_MAX], word[WORD] = "";
    out[0] = '\0';
    const int n = snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/cache/index%d/%s", sys,
                           cpu, index, file);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (f == NULL)
        return;
    if (fscanf(f, "%4095s", word) == 1)
        snprintf(out, out_bytes, "%s", word);
    fclose(f);
}

/* Returns the number of processors in a list, at least 1. For example, "0-3,8" gives 5. */
static int count_cpus(const char *list)
{
    unsigned long count = 0, first, last;
    for (const char *at = list; read_range(&at, &first, &last); at++) {
        count += last - first < INT_MAX ? last - first + 1 : 0;
        if (*at != ',')
            break;
    }
    return (int)DDP_MAX(1, DDP_MIN(count, INT_MAX));
}

bool ddp_cache_read(const char *sys, int cpu, struct ddp_cache *out)
{
    char word[WORD];
    int highest = 2;
    *out = (struct ddp_cache){0};
    for (int i = 0; i < INDICES; i++) {
        int level = 0;
        read_word(sys, cpu, i, "level", word, sizeof word);
        if (sscanf(word, "%d", &level) != 1 || level <= highest)
            continue;
        read_word(sys, cpu, i, "type", word, sizeof word);
        if (strcmp(word, "Unified") != 0 && strcmp(word, "Data") != 0)
            continue;
        read_word(sys, cpu, i, "size", word, sizeof word);
        uint64_t bytes;
        if (ddp_parse_size(word, &bytes, NULL) != 0 || bytes == 0)
            continue;
        highest = level;
        read_word(sys, cpu, i, "shared_cpu_list", word, sizeof word);
        *out = (struct ddp_cache){bytes, count_cpus(word)};
    }
    return out->bytes > 0;
}

static struct ddp_cache here;

static void find_here(void)
{
    ddp_cache_read("/sys", DDP_MAX(sched_getcpu(), 0), &here);
}

size_t ddp_cache_share_of(const struct ddp_cache *cache, int ranks)
{
    if (cache->bytes == 0)
        return SIZE_MAX;
    return cache->bytes / (size_t)DDP_MAX(1, DDP_MIN(ranks, cache->sharers));
}

size_t ddp_cache_share(int ranks)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_here);
    return ddp_cache_share_of(&here, ranks);
}
