/* Kernels on index-sorted lists. */
#include <assert.h>
#include <string.h>

#include "device/cpu/kernels_cpu.h"

/* scatter_add prefetches destinations this many entries before their use, to hide the latency of a
 * cache miss. */
#define AHEAD 32

static float canonical(float x)
{
    return x == x ? x : __builtin_nanf("");
}

void ddp_list_scatter_add(float *dst, const struct ddp_sparse *s)
{
    const size_t steady = s->count > AHEAD ? s->count - AHEAD : 0;
    size_t i = 0;
    for (; i < steady; i++) {
        __builtin_prefetch(&dst[s->index[i + AHEAD]], 1);
        dst[s->index[i]] = canonical(dst[s->index[i]] + s->value[i]);
    }
    for (; i < s->count; i++)
        dst[s->index[i]] = canonical(dst[s->index[i]] + s->value[i]);
}

void ddp_list_scatter(float *dst, const struct ddp_sparse *s)
{
    for (size_t i = 0; i < s->count; i++)
        dst[s->index[i]] = canonical(s->value[i]);
}

void ddp_list_scatter_zero(float *dst, const uint32_t *index, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[index[i]] = 0;
}

/* Copies the remaining entries of one list after the other list has ended. */
static size_t append(struct ddp_sparse *out, size_t at, const struct ddp_sparse *s, size_t from)
{
    const size_t count = s->count - from;
    if (count != 0)
        memcpy(out->index + at, s->index + from, count * sizeof(*s->index));
    for (size_t i = 0; i < count; i++)
        out->value[at + i] = canonical(s->value[from + i]);
    return at + count;
}

/* Each step takes an entry from a, from b, or from both. The loop does not branch on the indices,
 * because such branches cannot be predicted. A list whose entry is not taken adds -0, which changes
 * no value. */
void ddp_list_merge(struct ddp_sparse *out, const struct ddp_sparse *a, const struct ddp_sparse *b)
{
    size_t i = 0, j = 0, at = 0;
    while (i < a->count && j < b->count) {
        const uint32_t x = a->index[i], y = b->index[j];
        const float u = a->value[i], v = b->value[j];
        const size_t from_a = x <= y, from_b = y <= x;
        out->index[at] = x < y ? x : y;
        out->value[at] = canonical((from_a ? u : -0.0f) + (from_b ? v : -0.0f));
        at++;
        i += from_a;
        j += from_b;
    }
    at = append(out, at, a, i);
    out->count = append(out, at, b, j);
}
