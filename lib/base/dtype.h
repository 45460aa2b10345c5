/* Element types and reduction operations: the names that users type, and the sizes. The arithmetic
 * is in lib/device. */
#ifndef DDP_BASE_DTYPE_H
#define DDP_BASE_DTYPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_dtype {
#define DDP_DTYPE(symbol, ...) DDP_##symbol,
#include "base/dtype_list.h"
#undef DDP_DTYPE
    DDP_DTYPE_COUNT
};
enum ddp_op { DDP_SUM, DDP_AVG, DDP_PROD, DDP_MIN, DDP_MAX, DDP_OP_COUNT };

/* The canonical names, indexed by the enum. The last entry is NULL. */
extern const char *const ddp_dtype_names[], *const ddp_op_names[];

/* Returns the size of one element in bytes. */
size_t ddp_dtype_size(enum ddp_dtype dtype);
/* Returns the canonical name, such as "f32", "bf16" or "fp8-e4m3". */
const char *ddp_dtype_name(enum ddp_dtype dtype);
/* Returns the canonical name: "sum", "avg", "prod", "min", "max". */
const char *ddp_op_name(enum ddp_op op);
/* Parses a name or an alias, such as float, fp32 or float32. Returns the type, or -1 if the name is
 * unknown. Names are case sensitive. */
int ddp_dtype_parse(const char *name);
/* Parses the name of an operation. "average" and "mean" are aliases of "avg". Returns the
 * operation, or -1 if the name is unknown. */
int ddp_op_parse(const char *name);

#ifdef __cplusplus
}
#endif
#endif
