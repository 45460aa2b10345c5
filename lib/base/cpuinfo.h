/* What the processor can do, and which of it we use.
 * Level order is a promise: a higher level implies all lower ones. */
#ifndef DDP_BASE_CPUINFO_H
#define DDP_BASE_CPUINFO_H

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_simd { DDP_SIMD_SCALAR, DDP_SIMD_AVX2, DDP_SIMD_AVX512, DDP_SIMD_COUNT };

/* The best level this processor and operating system support (AVX2 requires FMA and F16C too;
 * AVX512 requires F, BW, DQ, VL). */
enum ddp_simd ddp_cpu_best_simd(void);
/* "scalar", "avx2", "avx512". */
const char *ddp_simd_name(enum ddp_simd level);
/* -1 when unknown. */
int ddp_simd_parse(const char *name);
/* Cores this process may run on (sched_getaffinity), at least 1. */
int ddp_cpu_usable_cores(void);

#ifdef __cplusplus
}
#endif
#endif
