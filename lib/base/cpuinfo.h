/* The SIMD levels, the logical processors and the cache that this process can use. A processor that
 * supports a SIMD level also supports all lower levels. */
#ifndef DDP_BASE_CPUINFO_H
#define DDP_BASE_CPUINFO_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_simd { DDP_SIMD_SCALAR, DDP_SIMD_AVX2, DDP_SIMD_AVX512, DDP_SIMD_COUNT };

/* Returns the best level that this processor and operating system support. AVX2 also requires FMA
 * and F16C; AVX512 requires F, BW, DQ and VL. */
enum ddp_simd ddp_cpu_best_simd(void);
/* Returns "scalar", "avx2" or "avx512", or "unknown" for any other value. */
const char *ddp_simd_name(enum ddp_simd level);
/* Parses the name of a level. Returns the level, or -1 if the name is unknown. */
int ddp_simd_parse(const char *name);
/* Returns the number of logical processors that this process may run on (sched_getaffinity), at
 * least 1. */
int ddp_cpu_usable_cores(void);

/* Restricts the calling thread, and the threads that it starts later, to those processors of `list`
 * that the calling thread may use now. `list` has the list format of Linux, for example
 * "0-15,32-47". Returns whether the thread was restricted. Changes nothing if `list` is empty or
 * malformed, or if the thread may use none of the processors of `list`. */
bool ddp_cpu_restrict(const char *list);

/* The last-level cache, as Linux reports it. Its size decides whether a copy uses stores that
 * bypass the cache. Only caches of level 3 or above count, because a virtual machine that reports
 * only lower levels hides the last-level cache of the processor. */
struct ddp_cache {
    size_t bytes;
    int sharers; /* processors that share the cache, at least 1 */
};
/* Reads the last-level cache of processor `cpu`. `sys` is "/sys", except in tests. If Linux reports
 * no such cache, returns false and sets *out to zeros. */
bool ddp_cache_read(const char *sys, int cpu, struct ddp_cache *out);

/* Returns the bytes of cache per rank if `ranks` ranks run on neighbouring cores: the size of the
 * cache, divided by the number of ranks that share it. Returns SIZE_MAX if the cache is unknown. */
size_t ddp_cache_share_of(const struct ddp_cache *cache, int ranks);
/* Like ddp_cache_share_of, for the cache of this machine. The cache is read only once. */
size_t ddp_cache_share(int ranks);

#ifdef __cplusplus
}
#endif
#endif
