/* Defines the function NAME, which reads an array. Eight sums hide the latency of the addition. */
#include "bench/bench_bounds.h"

#include <string.h>

float NAME(const float *x, size_t n)
{
    typedef float vector __attribute__((vector_size(VB)));
    const size_t lanes = VB / sizeof(float);
    vector sum[8] = {{0}};
    size_t i = 0;
    for (; n - i >= 8 * lanes; i += 8 * lanes)
        for (size_t v = 0; v < 8; v++) {
            vector part;
            memcpy(&part, x + i + v * lanes, sizeof(part));
            sum[v] += part;
        }
    float total = 0;
    for (size_t v = 0; v < 8; v++)
        for (size_t lane = 0; lane < lanes; lane++)
            total += sum[v][lane];
    for (; i < n; i++)
        total += x[i];
    return total;
}
