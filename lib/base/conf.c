#include "base/conf.h"

#include <assert.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpuinfo.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/opt.h"
#include "build_facts.h"

extern char **environ;

#define PREFIX "DDPBENCH_"

static const struct ddp_conf_row rows[DDP_CONF_COUNT] = {
    [DDP_CONF_SIMD] = {"DDPBENCH_SIMD",
                       "highest SIMD level used: scalar, avx2 or avx512 (default: the best of "
                       "this processor); results do not depend on it"},
    [DDP_CONF_BLAS_LIB] = {"DDPBENCH_BLAS_LIB", "library to load for CBLAS, like --blas"},
    [DDP_CONF_CUBLAS_LIB] =
        {"DDPBENCH_CUBLAS_LIB",
         "library to load for cuBLAS (default: the one that the loader finds, or "
         "that of a Python package)"},
    [DDP_CONF_CUDNN_LIB] = {"DDPBENCH_CUDNN_LIB",
                            "library to load for cuDNN (default: the one that the loader "
                            "finds, or that of a Python package)"},
    [DDP_CONF_MODULE_DIR] =
        {"DDPBENCH_MODULE_DIR",
         "folder of the modules and ddpbench-kernels (default: the folder of ddpbench, its "
         "subfolder ddpbench, or ../lib/ddpbench)"},
    [DDP_CONF_DATA_DIR] = {"DDPBENCH_DATA_DIR",
                           "folder with the files of the data set, like --data"},
    [DDP_CONF_PORT] = {"DDPBENCH_PORT",
                       "port on which rank 0 listens for the other ranks under torchrun (default: "
                       "the first free one of the eight ports after MASTER_PORT)"},
    [DDP_CONF_SECRET] =
        {"DDPBENCH_SECRET",
         "secret of a job whose ranks meet over TCP, the same on all ranks, at least 16 "
         "characters; rank 0 refuses processes that do not know it (default: rank 0 listens only "
         "on the address of MASTER_ADDR, and asks for no proof)"},
    [DDP_CONF_JOB] = {"DDPBENCH_JOB", "id of a job; --hosts sets it for the ranks that it starts"},
    [DDP_CONF_NCCL_LIB] = {"DDPBENCH_NCCL_LIB",
                           "library to load for NCCL (default: the libnccl.so.2 that the loader "
                           "finds, or that of a Python package)"},
    [DDP_CONF_SIMULATE_HOSTS] =
        {"DDPBENCH_SIMULATE_HOSTS",
         "simulate several hosts, for tests: 2 (two hosts of equal size), 1+3 (hosts of 1 and "
         "3 ranks) or 2* (two hosts, to which ranks are assigned in turns)"},
    [DDP_CONF_FAULT] =
        {"DDPBENCH_FAULT",
         "faults to inject, point:n:action[=value][@rank]; only in a build with FAULTS=1; "
         "`ddpbench list fault` shows the points"},
};

const struct ddp_conf_row *ddp_conf_rows(void)
{
    return rows;
}

const char *ddp_conf_get(enum ddp_conf_key key)
{
    assert((unsigned)key < DDP_CONF_COUNT);
    const char *value = getenv(rows[key].variable);
    return value && value[0] ? value : NULL;
}

enum ddp_simd ddp_conf_simd(void)
{
    const char *cap = ddp_conf_get(DDP_CONF_SIMD);
    const int most = cap ? ddp_simd_parse(cap) : -1; /* -1: no limit, or not a legal value */
    const enum ddp_simd best = ddp_cpu_best_simd();
    return most >= 0 ? DDP_MIN(best, (enum ddp_simd)most) : best;
}

static const char *row_name(const void *ctx, int i)
{
    return i < DDP_CONF_COUNT ? ((const struct ddp_conf_row *)ctx)[i].variable : NULL;
}

/* Returns whether two entries "NAME=value" have the same name. "=value" may be missing. */
static bool same_name(const char *a, const char *b)
{
    const size_t n = strcspn(a, "=");
    return strcspn(b, "=") == n && strncmp(a, b, n) == 0;
}

/* Returns whether the table contains the name of an entry. */
static bool known(const char *entry)
{
    for (int i = 0; i < DDP_CONF_COUNT; i++)
        if (same_name(entry, rows[i].variable))
            return true;
    return false;
}

int ddp_conf_check(struct ddp_err *err)
{
    for (char **entry = environ; entry && *entry; entry++) {
        if (strncmp(*entry, PREFIX, sizeof PREFIX - 1) != 0 || known(*entry))
            continue;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*entry, "="), *entry);
        if (strcmp(name, PREFIX "HOSTS") == 0) {
            ddp_fail(err, DDP_EUSAGE, "DDPBENCH_HOSTS is now called DDPBENCH_SIMULATE_HOSTS");
            return ddp_hint(err, "it simulates hosts, for tests; --hosts starts ranks on hosts");
        }
        ddp_fail(err, DDP_EUSAGE, "unknown environment variable '%s'", name);
        return ddp_hint_nearest(err, name, row_name, rows,
                                "`ddpbench help environment` lists all variables");
    }
    const char *simd = ddp_conf_get(DDP_CONF_SIMD);
    if (simd && ddp_simd_parse(simd) < 0) {
        ddp_fail(err, DDP_EUSAGE, "DDPBENCH_SIMD: '%.64s' is not a legal value", simd);
        return ddp_hint(err, "legal: scalar, avx2, avx512");
    }
    if (!DDP_FAULTS && ddp_conf_get(DDP_CONF_FAULT)) {
        ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT is set, but this build has no fault points");
        return ddp_hint(err, "unset it, or build with `make FAULTS=1`");
    }
    return DDP_FAULTS ? ddp_fault_arm(ddp_conf_get(DDP_CONF_FAULT), err) : DDP_OK;
}

char **ddp_conf_environment(const char *const *more)
{
    size_t ours = 0, theirs = 0, n = 0;
    while (environ[ours])
        ours++;
    while (more && more[theirs])
        theirs++;
    char **all = ddp_calloc(ours + theirs + 1, sizeof *all);
    for (size_t i = 0; all && i < ours; i++) {
        bool replaced = false;
        for (size_t j = 0; j < theirs; j++)
            replaced |= same_name(more[j], environ[i]);
        if (!replaced)
            all[n++] = environ[i];
    }
    for (size_t j = 0; all && j < theirs; j++)
        all[n++] = (char *)more[j];
    return all;
}

const struct ddp_mpi_flavour *ddp_mpi_flavours(void)
{
    static const struct ddp_mpi_flavour all[] = {
        {DDP_MPI_OPENMPI, "Open MPI", "libopenmpi-dev", {"mpiexec.openmpi", "ompi_info"}},
        {DDP_MPI_MPICH, "MPICH", "libmpich-dev", {"mpiexec.mpich", "mpichversion"}},
        {NULL, NULL, NULL, {NULL, NULL}},
    };
    return all;
}

bool ddp_mpi_module_find(const char *dir, const struct ddp_mpi_flavour *flavour, char *path,
                         size_t path_bytes)
{
    const int n = snprintf(path, path_bytes, "%s/" DDP_MPI_MODULE("%s"), dir, flavour->name);
    return n > 0 && (size_t)n < path_bytes && access(path, R_OK) == 0;
}

/* Returns whether a file has the name of an MPI module. */
static bool is_mpi_module(const char *file)
{
    char name[64];
    for (const struct ddp_mpi_flavour *f = ddp_mpi_flavours(); f->name; f++) {
        snprintf(name, sizeof name, DDP_MPI_MODULE("%s"), f->name);
        if (strcmp(file, name) == 0)
            return true;
    }
    return false;
}

/* Returns whether the folder holds a module or the helper of `ddpbench kernels`. */
static bool has_module(const char *dir)
{
    bool found = false;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && !found && (e = readdir(d)) != NULL;)
        found = is_mpi_module(e->d_name) || strcmp(e->d_name, DDP_CUDA_MODULE_NAME) == 0 ||
                strcmp(e->d_name, DDP_UCX_MODULE_NAME) == 0 ||
                strcmp(e->d_name, DDP_KERNELS_HELPER) == 0;
    if (d)
        closedir(d);
    return found;
}

void ddp_conf_module_dir(const char *dir, char *out, size_t out_bytes)
{
    const char *given = ddp_conf_get(DDP_CONF_MODULE_DIR), *slash = strrchr(dir, '/');
    const bool absolute = dir[0] == '/';
    snprintf(out, out_bytes, "%s", given ? given : dir);
    if (given || has_module(out))
        return;
    snprintf(out, out_bytes, "%s/ddpbench", dir);
    if (!has_module(out))
        snprintf(out, out_bytes, "%.*s%s/lib/ddpbench",
                 absolute ? (int)(slash - dir) : (int)strlen(dir), dir, absolute ? "" : "/..");
}

int ddp_conf_module_check(const char *path, int abi, int found_abi, const char *found_commit,
                          struct ddp_err *err)
{
    if (found_commit == NULL)
        return ddp_fail(err, DDP_EMISMATCH, "'%.300s' is not a module of ddpbench", path);
    if (found_abi != abi)
        return ddp_fail(err, DDP_EMISMATCH,
                        "module '%.300s' has ABI %d, but this binary has ABI %d", path, found_abi,
                        abi);
    if (strcmp(found_commit, DDP_COMMIT) != 0)
        return ddp_fail(err, DDP_EMISMATCH,
                        "module '%.200s' is of build '%.60s', but this binary is of build '%.60s'",
                        path, found_commit, DDP_COMMIT);
    return 0;
}
