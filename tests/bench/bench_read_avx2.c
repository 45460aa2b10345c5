#define NAME ddp_bench_read_avx2
#define VB   32
#include "bench/bench_read.inc.h"
