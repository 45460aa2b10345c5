#include "base/dtype.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

const char *const ddp_dtype_names[] = {
    [DDP_F32] = "f32", [DDP_F16] = "f16", [DDP_BF16] = "bf16",     [DDP_F64] = "f64",
    [DDP_I32] = "i32", [DDP_U8] = "u8",   [DDP_DTYPE_COUNT] = NULL};

static const size_t sizes[DDP_DTYPE_COUNT] = {
    [DDP_F32] = 4, [DDP_F16] = 2, [DDP_BF16] = 2, [DDP_F64] = 8, [DDP_I32] = 4, [DDP_U8] = 1};

const char *const ddp_op_names[] = {[DDP_SUM] = "sum", [DDP_AVG] = "avg", [DDP_PROD] = "prod",
                                    [DDP_MIN] = "min", [DDP_MAX] = "max", [DDP_OP_COUNT] = NULL};

static const struct {
    const char *name;
    enum ddp_dtype dtype;
} dtype_aliases[] = {
    {"float", DDP_F32}, {"fp32", DDP_F32},    {"float32", DDP_F32},   {"half", DDP_F16},
    {"fp16", DDP_F16},  {"float16", DDP_F16}, {"bfloat16", DDP_BF16}, {"double", DDP_F64},
    {"fp64", DDP_F64},  {"float64", DDP_F64}, {"int", DDP_I32},       {"int32", DDP_I32},
    {"uint8", DDP_U8},
};

size_t ddp_dtype_size(enum ddp_dtype dtype)
{
    assert((unsigned)dtype < DDP_DTYPE_COUNT);
    return sizes[dtype];
}

const char *ddp_dtype_name(enum ddp_dtype dtype)
{
    assert((unsigned)dtype < DDP_DTYPE_COUNT);
    return ddp_dtype_names[dtype];
}

const char *ddp_op_name(enum ddp_op op)
{
    assert((unsigned)op < DDP_OP_COUNT);
    return ddp_op_names[op];
}

int ddp_dtype_parse(const char *name)
{
    for (int i = 0; i < DDP_DTYPE_COUNT; i++)
        if (strcmp(name, ddp_dtype_names[i]) == 0)
            return i;
    for (size_t i = 0; i < DDP_COUNT_OF(dtype_aliases); i++)
        if (strcmp(name, dtype_aliases[i].name) == 0)
            return (int)dtype_aliases[i].dtype;
    return -1;
}

int ddp_op_parse(const char *name)
{
    for (int i = 0; i < DDP_OP_COUNT; i++)
        if (strcmp(name, ddp_op_names[i]) == 0)
            return i;
    if (strcmp(name, "average") == 0 || strcmp(name, "mean") == 0)
        return DDP_AVG;
    return -1;
}
