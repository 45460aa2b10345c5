#define LEVEL(name) name##_avx2
#define VB          32
#include "bench/bench_read.inc.h"
