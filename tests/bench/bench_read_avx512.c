#define NAME ddp_bench_read_avx512
#define VB   64
#include "bench/bench_read.inc.h"
