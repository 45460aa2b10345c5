/* Defines plain loops over arrays with vectors of VB bytes. LEVEL(name) appends the SIMD level. */
#include "bench/bench_bounds.h"

#include <string.h>

typedef float vector __attribute__((vector_size(VB)));
/* The same vector in memory, at any address of a float. */
typedef float loose_vector __attribute__((vector_size(VB), aligned(4), may_alias));

#define LANES (VB / sizeof(float))
/* Vectors of an array that one step of a loop processes. */
#define TILE 4

/* Eight sums hide the latency of the addition. */
float LEVEL(ddp_bench_read)(const float *x, size_t n)
{
    vector sum[8] = {{0}};
    size_t i = 0;
    for (; n - i >= 8 * LANES; i += 8 * LANES)
        for (size_t v = 0; v < 8; v++) {
            vector part;
            memcpy(&part, x + i + v * LANES, sizeof(part));
            sum[v] += part;
        }
    float total = 0;
    for (size_t v = 0; v < 8; v++)
        for (size_t lane = 0; lane < LANES; lane++)
            total += sum[v][lane];
    for (; i < n; i++)
        total += x[i];
    return total;
}

/* Adds TILE vectors of `from`, at element i, to each array. */
static inline __attribute__((always_inline)) void step(float *const *to, int count,
                                                       const float *from, size_t i)
{
    const loose_vector *x = (const loose_vector *)(from + i);
    for (size_t v = 0; v < TILE; v++) {
        const vector add = x[v];
        for (int k = 0; k < count; k++)
            ((loose_vector *)(to[k] + i))[v] += add;
    }
}

static inline __attribute__((always_inline)) void update(float *const *to, int count,
                                                         const float *from, size_t n)
{
    size_t i = 0;
    for (; n - i >= TILE * LANES; i += TILE * LANES)
        step(to, count, from, i);
    for (; i < n; i++)
        for (int k = 0; k < count; k++)
            to[k][i] += from[i];
}

/* The loops with constant counts keep all pointers in registers. */
void LEVEL(ddp_bench_update)(float *const *to, int count, const float *from, size_t n)
{
    float *const local[] = {to[0], to[count > 1 ? 1 : 0], to[count > 2 ? 2 : 0]};
    if (count == 1)
        update(local, 1, from, n);
    else if (count == 2)
        update(local, 2, from, n);
    else
        update(local, 3, from, n);
}
