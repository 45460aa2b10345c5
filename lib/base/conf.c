#include "base/conf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpuinfo.h"
#include "base/opt.h"

static const struct ddp_conf_row rows[DDP_CONF_COUNT] = {
    [DDP_CONF_SIMD] = {"DDPBENCH_SIMD", "highest SIMD level used: scalar, avx2 or avx512"},
    [DDP_CONF_BLAS_LIB] = {"DDPBENCH_BLAS_LIB", "library to load for CBLAS, as --blas"},
    [DDP_CONF_MODULE_DIR] = {"DDPBENCH_MODULE_DIR",
                             "folder that holds the ddpbench-mpi-*.so modules"},
    [DDP_CONF_DATA_DIR] = {"DDPBENCH_DATA_DIR", "folder that holds the data set, as --data"},
    [DDP_CONF_FAULT] = {"DDPBENCH_FAULT", "point:n:action, only in a build with FAULTS=1"},
};

const struct ddp_conf_row *ddp_conf_rows(void)
{
    return rows;
}

const char *ddp_conf_get(enum ddp_conf_key key)
{
    const char *value = getenv(rows[key].variable);
    return value && value[0] ? value : NULL;
}

static const char *row_name(const void *ctx, int i)
{
    (void)ctx;
    return i < DDP_CONF_COUNT ? rows[i].variable : NULL;
}

static int check_variable(const char *entry, struct ddp_err *err)
{
    char name[64];
    size_t n = strcspn(entry, "=");
    if (n >= sizeof name)
        n = sizeof name - 1;
    memcpy(name, entry, n);
    name[n] = '\0';
    for (int i = 0; i < DDP_CONF_COUNT; i++) {
        if (strcmp(rows[i].variable, name) == 0)
            return 0;
    }
    const char *near = ddp_nearest(name, row_name, NULL);
    ddp_fail(err, DDP_EUSAGE, "unknown variable '%s' in the environment", name);
    if (near)
        return ddp_hint(err, "did you mean '%s'? `ddpbench help environment` lists them", near);
    return ddp_hint(err, "`ddpbench help environment` lists the variables");
}

int ddp_conf_check(struct ddp_err *err)
{
    for (char **e = environ; e && *e; e++) {
        if (strncmp(*e, "DDPBENCH_", 9) == 0)
            DDP_TRY(check_variable(*e, err));
    }
    const char *simd = ddp_conf_get(DDP_CONF_SIMD);
    if (simd && ddp_simd_parse(simd) < 0)
        return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_SIMD='%s' is not scalar, avx2 or avx512", simd);
    return 0;
}
