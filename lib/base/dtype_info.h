/* A table of the facts that dtype_list.h lists about each element type. */
#ifndef DDP_BASE_DTYPE_INFO_H
#define DDP_BASE_DTYPE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

enum ddp_dtype_kind { DDP_FLOAT, DDP_SIGNED, DDP_UNSIGNED };

struct ddp_dtype_info {
    const char *name, *aliases;
    size_t size; /* bytes */
    enum ddp_dtype_kind kind;
    int digits;
    enum ddp_dtype mean;
};

/* The table is in a header, so that the compiler can use its values as constants. */
static const struct ddp_dtype_info ddp_dtypes[DDP_DTYPE_COUNT] = {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl)                      \
    [DDP_##symbol] = {name, aliases, sizeof(type), DDP_##kind, digits, DDP_##mean},
#include "base/dtype_list.h"
#undef DDP_DTYPE
};

static inline bool ddp_dtype_is_integer(enum ddp_dtype dtype)
{
    return ddp_dtypes[dtype].kind != DDP_FLOAT;
}

/* Returns whether the type is a 16-bit float. */
static inline bool ddp_dtype_is_half(enum ddp_dtype dtype)
{
    return ddp_dtypes[dtype].kind == DDP_FLOAT && ddp_dtypes[dtype].size == 2;
}

/* Returns whether the type is a float of 16 or 8 bits. Such elements are combined in f32 and
 * rounded once. */
static inline bool ddp_dtype_is_narrow(enum ddp_dtype dtype)
{
    return ddp_dtypes[dtype].kind == DDP_FLOAT && ddp_dtypes[dtype].size < 4;
}

#endif
