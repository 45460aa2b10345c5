/* The CPU kernels for AVX-512 (F, BW, DQ, VL). Callers check ddp_cpu_best_simd() first. */
#include "device/cpu/kernels_cpu.h"

#define REDUCE_SYMBOL  ddp_reduce_avx512
#define COPY_NT_SYMBOL ddp_copy_nt_avx512

#include "device/cpu/kernels_level_avx512.inc.h"
#include "device/cpu/kernels_cpu.inc.h"
