#include "base/cpuinfo.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

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

enum ddp_simd ddp_cpu_best_simd(void)
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
enum ddp_simd ddp_cpu_best_simd(void)
{
    return DDP_SIMD_SCALAR;
}
#endif

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
    /* Linux refuses a mask shorter than its own, so grow the mask until it fits. */
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
