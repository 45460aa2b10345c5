/* The CPU kernels for AVX2, FMA and F16C. Callers check ddp_cpu_best_simd() first. */
#include "device/cpu/kernels_cpu.h"

#define REDUCE_SYMBOL  ddp_reduce_avx2
#define COPY_NT_SYMBOL ddp_copy_nt_avx2

#include "device/cpu/kernels_level_avx2.inc.h"
#include "device/cpu/kernels_cpu.inc.h"
