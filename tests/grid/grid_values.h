/* Closed forms for the grids: the inputs of the ranks and the expected results of each collective.
 * They are computed in 64-bit integers from small integer inputs, so every bit is known in every
 * type. */
#ifndef DDP_TEST_GRID_VALUES_H
#define DDP_TEST_GRID_VALUES_H

#include <string.h>

#include "base/coll_kind.h"
#include "base/dtype_info.h"
#include "unit/half_ref.h"

/* Returns an input value: a small integer, so that sums and products are exact in every type.
 * Products over 8 ranks reach 2^8, which wraps to 0 in integers of 8 bits. For averages of floats
 * of 16 and 8 bits it is a multiple of the odd part of the number of ranks, so that dividing before
 * or after the sum gives the same. Sums of 8 floats of 8 bits are exact up to 8. */
static inline int64_t grid_input(enum ddp_dtype dtype, enum ddp_op op, int rank, int ranks,
                                 size_t i)
{
    const int64_t mixed = (int64_t)((i * 7 + (size_t)rank * 13 + i / 5) % 11);
    const bool is_unsigned = ddp_dtypes[dtype].kind == DDP_UNSIGNED;
    if (op == DDP_PROD)
        return !is_unsigned && mixed < 4 ? -1 : 1 + mixed % 2;
    /* Averages of unsigned types use sums that exceed the type. Plain sums do not, because they
     * wrap in our algorithms and saturate in the native ones of Open MPI (4.1.4, its AVX code). */
    if (is_unsigned)
        return op == DDP_AVG && ddp_dtypes[dtype].mean != dtype
                   ? mixed * ((((int64_t)1 << ddp_dtypes[dtype].digits) - 1) / 10)
                   : mixed;
    while (ranks % 2 == 0)
        ranks /= 2;
    const bool is_narrow = ddp_dtype_is_narrow(dtype);
    return (is_narrow && ddp_dtypes[dtype].size == 1 ? mixed % 3 - 1 : mixed - 5) *
           (op == DDP_AVG && is_narrow ? ranks : 1);
}

static inline void grid_store(unsigned char *at, enum ddp_dtype dtype, double value)
{
    const float f32 = (float)value;
    const int64_t integer = (int64_t)value;
    uint16_t half;
    switch (dtype) {
    case DDP_F32:
        memcpy(at, &f32, sizeof(f32));
        break;
    case DDP_F64:
        memcpy(at, &value, sizeof(value));
        break;
    case DDP_F16:
    case DDP_BF16:
    case DDP_FP8_E4M3:
    case DDP_FP8_E5M2:
        half = half_encode(half_of(dtype), (double)f32);
        memcpy(at, &half, ddp_dtypes[dtype].size);
        break;
    default: /* the lower bytes, which come first */
        memcpy(at, &integer, ddp_dtypes[dtype].size);
    }
}

/* Returns element i of all ranks' inputs, combined. */
static inline double grid_reduced(enum ddp_dtype dtype, enum ddp_op op, int ranks, size_t i)
{
    int64_t total = grid_input(dtype, op, 0, ranks, i);
    for (int r = 1; r < ranks; r++) {
        const int64_t x = grid_input(dtype, op, r, ranks, i);
        if (op == DDP_PROD)
            total *= x;
        else if (op == DDP_MIN || op == DDP_MAX)
            total = (op == DDP_MIN) == (x < total) ? x : total;
        else
            total += x;
    }
    if (op != DDP_AVG)
        return (double)total;
    return ddp_dtype_is_integer(dtype) ? (double)(total / ranks) : (double)total / ranks;
}

static inline bool grid_reduces(enum ddp_coll coll)
{
    return coll == DDP_ALLREDUCE || coll == DDP_REDUCE || coll == DDP_REDUCE_SCATTER ||
           coll == DDP_REDUCE_SCATTER_V;
}
static inline bool grid_has_root(enum ddp_coll coll)
{
    return coll == DDP_BROADCAST || coll == DDP_REDUCE || coll == DDP_GATHER || coll == DDP_SCATTER;
}

/* Return the number of elements that `rank` sends and receives. It is 0 for ranks other than the
 * root where only the root has an array. */
static inline size_t grid_send_count(enum ddp_coll coll, size_t count, int rank, int ranks,
                                     int root)
{
    switch (coll) {
    case DDP_REDUCE_SCATTER:
    case DDP_REDUCE_SCATTER_V: /* without a table */
    case DDP_ALL_TO_ALL:
    case DDP_ALL_TO_ALL_V: /* without a table */
        return (size_t)ranks * count;
    case DDP_SCATTER:
        return rank == root ? (size_t)ranks * count : 0;
    case DDP_BROADCAST:
        return rank == root ? count : 0;
    default:
        return count;
    }
}
static inline size_t grid_recv_count(enum ddp_coll coll, size_t count, int rank, int ranks,
                                     int root)
{
    switch (coll) {
    case DDP_ALL_GATHER:
    case DDP_ALL_GATHER_V:
    case DDP_ALL_TO_ALL:
    case DDP_ALL_TO_ALL_V: /* without a table */
        return (size_t)ranks * count;
    case DDP_GATHER:
        return rank == root ? (size_t)ranks * count : 0;
    case DDP_REDUCE:
        return rank == root ? count : 0;
    default:
        return count;
    }
}

/* Returns the expected element i of rank's recv buffer. */
static inline double grid_expected(enum ddp_coll coll, enum ddp_dtype dtype, enum ddp_op op,
                                   size_t count, int rank, int ranks, int root, size_t i)
{
    const int source = (int)(i / count);
    const size_t own = (size_t)rank * count;
    switch (coll) {
    case DDP_REDUCE_SCATTER:
    case DDP_REDUCE_SCATTER_V: /* without a table */
        return grid_reduced(dtype, op, ranks, own + i);
    case DDP_BROADCAST:
        return (double)grid_input(dtype, op, root, ranks, i);
    case DDP_ALL_GATHER:
    case DDP_ALL_GATHER_V:
    case DDP_GATHER:
        return (double)grid_input(dtype, op, source, ranks, i % count);
    case DDP_ALL_TO_ALL:
    case DDP_ALL_TO_ALL_V: /* without a table */
        return (double)grid_input(dtype, op, source, ranks, own + i % count);
    case DDP_SCATTER:
        return (double)grid_input(dtype, op, root, ranks, own + i);
    case DDP_SEND_RECV:
        return (double)grid_input(dtype, op, (rank + ranks - 1) % ranks, ranks, i);
    default:
        return grid_reduced(dtype, op, ranks, i);
    }
}

#endif
