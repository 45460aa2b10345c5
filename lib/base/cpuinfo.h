/* The SIMD levels and the number of cores that this process can use. A processor with one level
 * also has all lower levels. */
#ifndef DDP_BASE_CPUINFO_H
#define DDP_BASE_CPUINFO_H

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
/* Returns the number of cores that this process may run on (sched_getaffinity), at least 1. */
int ddp_cpu_usable_cores(void);

#ifdef __cplusplus
}
#endif
#endif
