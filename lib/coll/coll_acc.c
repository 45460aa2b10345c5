/* Conversions between integers and the accumulator type of their averages. See coll_acc.h. */
#include "coll/coll_acc.h"

#include <assert.h>
#include <stdint.h>

void ddp_to_acc(void *dst, const void *src, size_t count, enum ddp_dtype dtype)
{
    assert(dtype == DDP_I32 || dtype == DDP_U8);
    if (dtype == DDP_I32) {
        double *restrict to = dst;
        const int32_t *restrict from = src;
        for (size_t i = 0; i < count; i++)
            to[i] = from[i];
    } else {
        int32_t *restrict to = dst;
        const uint8_t *restrict from = src;
        for (size_t i = 0; i < count; i++)
            to[i] = from[i];
    }
}

/* The average of values of a type fits the type, so these conversions do not overflow. */
void ddp_from_acc(void *dst, const void *src, size_t count, enum ddp_dtype dtype)
{
    assert(dtype == DDP_I32 || dtype == DDP_U8);
    if (dtype == DDP_I32) {
        int32_t *restrict to = dst;
        const double *restrict from = src;
        for (size_t i = 0; i < count; i++)
            to[i] = (int32_t)from[i];
    } else {
        uint8_t *restrict to = dst;
        const int32_t *restrict from = src;
        for (size_t i = 0; i < count; i++)
            to[i] = (uint8_t)from[i];
    }
}
