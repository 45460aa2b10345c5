/* Conversions between integers and the accumulator type of their averages. See coll_acc.h. */
#include "coll/coll_acc.h"

#include <assert.h>
#include <stdint.h>

#include "base/dtype_info.h"

#define DDP_DTYPE(symbol, name, aliases, type, ...) typedef type acc_##symbol;
#include "base/dtype_list.h"
#undef DDP_DTYPE

void ddp_to_acc(void *dst, const void *src, size_t count, enum ddp_dtype dtype)
{
    assert(ddp_dtype_is_integer(dtype));
    switch (dtype) {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl)                      \
    case DDP_##symbol: {                                                                           \
        acc_##mean *restrict to = dst;                                                             \
        const type *restrict from = src;                                                           \
        for (size_t i = 0; i < count; i++)                                                         \
            to[i] = from[i];                                                                       \
        break;                                                                                     \
    }
#include "base/dtype_list.h"
#undef DDP_DTYPE
    default:
        break;
    }
}

/* The average of values of a type fits the type, so these conversions do not overflow. */
void ddp_from_acc(void *dst, const void *src, size_t count, enum ddp_dtype dtype)
{
    assert(ddp_dtype_is_integer(dtype));
    switch (dtype) {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl)                      \
    case DDP_##symbol: {                                                                           \
        type *restrict to = dst;                                                                   \
        const acc_##mean *restrict from = src;                                                     \
        for (size_t i = 0; i < count; i++)                                                         \
            to[i] = (type)from[i];                                                                 \
        break;                                                                                     \
    }
#include "base/dtype_list.h"
#undef DDP_DTYPE
    default:
        break;
    }
}
