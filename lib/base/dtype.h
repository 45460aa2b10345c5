/* Element types and reduction operations: the names users type, and their sizes.
 * Pure tables; arithmetic on the types is the device layer's. */
#ifndef DDP_BASE_DTYPE_H
#define DDP_BASE_DTYPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_dtype { DDP_F32, DDP_F16, DDP_BF16, DDP_F64, DDP_I32, DDP_U8, DDP_DTYPE_COUNT };
enum ddp_op { DDP_SUM, DDP_AVG, DDP_PROD, DDP_MIN, DDP_MAX, DDP_OP_COUNT };

/* Bytes of one element. */
size_t ddp_dtype_size(enum ddp_dtype dtype);
/* Canonical name: "f32", "f16", "bf16", "f64", "i32", "u8". */
const char *ddp_dtype_name(enum ddp_dtype dtype);
/* Canonical name: "sum", "avg", "prod", "min", "max". */
const char *ddp_op_name(enum ddp_op op);
/* The type of a name or alias (float, fp32, half, fp16, bfloat16, double, fp64, int, int32, uint8);
 * -1 when unknown. Case matters. */
int ddp_dtype_parse(const char *name);
/* As above for operations (also "average", "mean"); -1 when unknown. */
int ddp_op_parse(const char *name);

#ifdef __cplusplus
}
#endif
#endif
