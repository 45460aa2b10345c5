#include "bench/bench_bounds.h"

#include <algorithm>
#include <cstring>
#include <functional>

uint32_t ddp_bench_nth_element(uint32_t *work, const float *x, size_t n, size_t k)
{
    std::memcpy(work, x, n * sizeof(*work));
    for (size_t i = 0; i < n; i++)
        work[i] &= 0x7fffffffu;
    std::nth_element(work, work + (k - 1), work + n, std::greater<uint32_t>());
    return work[k - 1];
}
