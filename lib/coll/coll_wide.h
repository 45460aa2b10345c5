/* Averages of integers, exactly. The sum of i32 or u8 over ranks does not fit its type, and an
 * average must be the exact sum, truncated once. So partial averages of integers travel in a wider
 * type: i32 as f64 (exact below 2^53), u8 as i32; every other type and operation as itself. The
 * price, 2 and 4 times the bytes while values are summed, is in each algorithm's cost(). For
 * lib/coll only; on the processor. */
#ifndef DDP_COLL_COLL_WIDE_H
#define DDP_COLL_COLL_WIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool ddp_is_wide(enum ddp_dtype dtype, enum ddp_op op)
{
    return op == DDP_AVG && (dtype == DDP_I32 || dtype == DDP_U8);
}
/* The type partial results travel in. */
static inline enum ddp_dtype ddp_wide_dtype(enum ddp_dtype dtype, enum ddp_op op)
{
    if (!ddp_is_wide(dtype, op))
        return dtype;
    return dtype == DDP_I32 ? DDP_F64 : DDP_I32;
}

/* dst [count] of the wide type from src [count] of `dtype`, I32 or U8. They do not overlap. */
void ddp_widen(void *dst, const void *src, size_t count, enum ddp_dtype dtype);
/* dst [count] of `dtype`, I32 or U8, from averages src [count] of its wide type, truncated toward
 * zero. They do not overlap. */
void ddp_narrow(void *dst, const void *src, size_t count, enum ddp_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
