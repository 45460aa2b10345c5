#include "bench/bench_bounds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

static uint32_t magnitude(float x)
{
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return bits & 0x7fffffffu;
}

float ddp_bench_nth_float(float *work, const float *x, size_t n, size_t k)
{
    std::memcpy(work, x, n * sizeof(*x));
    std::nth_element(work, work + (k - 1), work + n,
                     [](float a, float b) { return std::fabs(a) > std::fabs(b); });
    return work[k - 1];
}

uint32_t ddp_bench_nth_value(uint32_t *work, const float *x, size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++)
        work[i] = magnitude(x[i]);
    std::nth_element(work, work + (k - 1), work + n, std::greater<uint32_t>());
    return work[k - 1];
}

uint32_t ddp_bench_nth_entry(uint64_t *work, const float *x, size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++)
        work[i] = (uint64_t)magnitude(x[i]) << 32 | (uint32_t)~i;
    std::nth_element(work, work + (k - 1), work + n, std::greater<uint64_t>());
    return (uint32_t)(work[k - 1] >> 32);
}
