/* Exact averages of integers. For lib/coll only; runs on the CPU.
 *
 * An average of integers is the exact sum, divided and truncated once. A sum of i32 or u8 values
 * over the ranks may not fit its type. Partial sums of such averages are therefore computed and
 * sent in a wider *accumulator type*: f64 for i32 (exact below 2^53) and i32 for u8. All other
 * operations and types use the type of the data. The accumulator type takes 2 (i32) or 4 (u8) times
 * as many bytes, which each algorithm's cost() counts. */
#ifndef DDP_COLL_COLL_ACC_H
#define DDP_COLL_COLL_ACC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype_info.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool ddp_has_wider_acc(enum ddp_dtype dtype, enum ddp_op op)
{
    return op == DDP_AVG && ddp_dtype_is_integer(dtype);
}
/* Returns the accumulator type. Partial results are also sent in this type. */
static inline enum ddp_dtype ddp_acc_dtype(enum ddp_dtype dtype, enum ddp_op op)
{
    return op == DDP_AVG ? ddp_dtypes[dtype].mean : dtype;
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
