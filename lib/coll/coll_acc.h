/* Exact averages of integers. An average must be the exact sum divided and truncated once, but a
 * sum of i32 or u8 over the ranks does not fit its type. Partial averages of integers are therefore
 * computed and sent in a wider *accumulator type*: f64 for i32 (exact below 2^53) and i32 for u8.
 * All other types and operations use their own type. While values are summed, this takes 2 and 4
 * times as many bytes; each algorithm's cost() counts them. For lib/coll only; runs on the CPU. */
#ifndef DDP_COLL_COLL_ACC_H
#define DDP_COLL_COLL_ACC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool ddp_has_wider_acc(enum ddp_dtype dtype, enum ddp_op op)
{
    return op == DDP_AVG && (dtype == DDP_I32 || dtype == DDP_U8);
}
/* Returns the accumulator type, in which partial results are also sent. */
static inline enum ddp_dtype ddp_acc_dtype(enum ddp_dtype dtype, enum ddp_op op)
{
    if (!ddp_has_wider_acc(dtype, op))
        return dtype;
    return dtype == DDP_I32 ? DDP_F64 : DDP_I32;
}

/* Converts src [count] of `dtype`, I32 or U8, to dst [count] of the accumulator type. The arrays
 * must not overlap. */
void ddp_to_acc(void *dst, const void *src, size_t count, enum ddp_dtype dtype);
/* Converts the averages src [count] of the accumulator type to dst [count] of `dtype`, I32 or U8,
 * and truncates toward zero. The arrays must not overlap. */
void ddp_from_acc(void *dst, const void *src, size_t count, enum ddp_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
