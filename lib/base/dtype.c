#include "base/dtype.h"

#include <assert.h>
#include <string.h>

#include "base/dtype_info.h"

const char *const ddp_dtype_names[] = {
#define DDP_DTYPE(symbol, name, ...) name,
#include "base/dtype_list.h"
#undef DDP_DTYPE
    NULL,
};

const char *const ddp_op_names[] = {[DDP_SUM] = "sum", [DDP_AVG] = "avg", [DDP_PROD] = "prod",
                                    [DDP_MIN] = "min", [DDP_MAX] = "max", [DDP_OP_COUNT] = NULL};

size_t ddp_dtype_size(enum ddp_dtype dtype)
{
    assert((unsigned)dtype < DDP_DTYPE_COUNT);
    return ddp_dtypes[dtype].size;
}

const char *ddp_dtype_name(enum ddp_dtype dtype)
{
    assert((unsigned)dtype < DDP_DTYPE_COUNT);
    return ddp_dtypes[dtype].name;
}

const char *ddp_op_name(enum ddp_op op)
{
    assert((unsigned)op < DDP_OP_COUNT);
    return ddp_op_names[op];
}

/* Returns whether the aliases contain the name. */
static bool has_alias(const char *aliases, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(aliases, name); at != NULL; at = strstr(at + 1, name))
        if (at[-1] == ' ' && at[length] == ' ')
            return true;
    return false;
}

int ddp_dtype_parse(const char *name)
{
    if (name[0] == '\0' || strchr(name, ' ') != NULL) /* spaces separate the aliases */
        return -1;
    for (int i = 0; i < DDP_DTYPE_COUNT; i++)
        if (strcmp(name, ddp_dtypes[i].name) == 0 || has_alias(ddp_dtypes[i].aliases, name))
            return i;
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
