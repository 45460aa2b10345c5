#define LEVEL(name) name##_avx512
#define VB          64
#include "bench/bench_read.inc.h"
