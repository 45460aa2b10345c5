/* The CPU kernels of the baseline that every processor supports. */
#include "device/cpu/kernels_cpu.h"

#define REDUCE_SYMBOL  ddp_reduce_scalar
#define COPY_NT_SYMBOL ddp_copy_nt_scalar

#include "device/cpu/kernels_level_scalar.inc.h"
#include "device/cpu/kernels_cpu.inc.h"
