#include "base/dtype.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[DDP_DTYPE_COUNT] = {
    [DDP_F32] = {"f32", 4}, [DDP_F16] = {"f16", 2}, [DDP_BF16] = {"bf16", 2},
    [DDP_F64] = {"f64", 8}, [DDP_I32] = {"i32", 4}, [DDP_U8] = {"u8", 1},
};

static const char *const ops[DDP_OP_COUNT] = {
    [DDP_SUM] = "sum", [DDP_AVG] = "avg", [DDP_PROD] = "prod", [DDP_MIN] = "min", [DDP_MAX] = "max",
};

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
    return dtypes[dtype].size;
}

const char *ddp_dtype_name(enum ddp_dtype dtype)
{
    assert((unsigned)dtype < DDP_DTYPE_COUNT);
    return dtypes[dtype].name;
}

const char *ddp_op_name(enum ddp_op op)
{
    assert((unsigned)op < DDP_OP_COUNT);
    return ops[op];
}

int ddp_dtype_parse(const char *name)
{
    for (int i = 0; i < DDP_DTYPE_COUNT; i++)
        if (strcmp(name, dtypes[i].name) == 0)
            return i;
    for (size_t i = 0; i < DDP_COUNT_OF(dtype_aliases); i++)
        if (strcmp(name, dtype_aliases[i].name) == 0)
            return (int)dtype_aliases[i].dtype;
    return -1;
}

int ddp_op_parse(const char *name)
{
    for (int i = 0; i < DDP_OP_COUNT; i++)
        if (strcmp(name, ops[i]) == 0)
            return i;
    if (strcmp(name, "average") == 0 || strcmp(name, "mean") == 0)
        return DDP_AVG;
    return -1;
}
