/* Settings from the environment. Every DDPBENCH_* variable is a row of one table. `ddpbench help
 * environment` and the reference pages (cmd/reference.c) show this table. An unknown DDPBENCH_*
 * variable is an error. */
#ifndef DDP_BASE_CONF_H
#define DDP_BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cpuinfo.h"
#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_conf_key {
    DDP_CONF_SIMD,           /* highest SIMD level used: scalar, avx2, avx512 */
    DDP_CONF_BLAS_LIB,       /* library to load for CBLAS, like --blas */
    DDP_CONF_CUBLAS_LIB,     /* library to load for cuBLAS */
    DDP_CONF_CUDNN_LIB,      /* library to load for cuDNN */
    DDP_CONF_MODULE_DIR,     /* folder of the modules and ddpbench-kernels */
    DDP_CONF_DATA_DIR,       /* folder with the files of the data set */
    DDP_CONF_PORT,           /* port of the rendezvous server (launch/rendezvous.h) */
    DDP_CONF_SECRET,         /* secret of the job, for the rendezvous (launch/rendezvous.h) */
    DDP_CONF_JOB,            /* id of the job, set by --hosts (run/remote.h) */
    DDP_CONF_NCCL_LIB,       /* library to load for NCCL */
    DDP_CONF_SIMULATE_HOSTS, /* hosts to simulate, for tests (comm/hosts.h) */
    DDP_CONF_FAULT,          /* faults to inject, only in a build with FAULTS=1 */
    DDP_CONF_COUNT
};

struct ddp_conf_row {
    const char *variable;
    const char *help;
};
const struct ddp_conf_row *ddp_conf_rows(void); /* [DDP_CONF_COUNT] */

/* Returns the value, or NULL if the variable is unset or empty. The environment owns the text. */
const char *ddp_conf_get(enum ddp_conf_key key);
/* Returns the highest SIMD level that this processor supports and DDPBENCH_SIMD allows. */
enum ddp_simd ddp_conf_simd(void);
/* Writes the path of the folder that holds the modules (MPI, UCX, CUDA) and the helper of `ddpbench
 * kernels`. If DDPBENCH_MODULE_DIR is set, the folder is its value. Otherwise the candidates are
 * `dir` (the folder of the program or library), dir/ddpbench and dir/../lib/ddpbench. The function
 * chooses the first candidate that holds a module or the helper. If no candidate holds such a file,
 * the function chooses the last one, because `make install` puts the files there. */
void ddp_conf_module_dir(const char *dir, char *out, size_t out_bytes);
/* The file names of the modules. */
#define DDP_CUDA_MODULE_NAME    "ddpbench-cuda.so"
#define DDP_UCX_MODULE_NAME     "ddpbench-ucx.so"
#define DDP_KERNELS_HELPER      "ddpbench-kernels" /* not a module, but in the same folder */
#define DDP_MPI_MODULE(flavour) "ddpbench-mpi-" flavour ".so"
/* The flavours of MPI: the members `name` of ddp_mpi_flavours. */
#define DDP_MPI_OPENMPI "openmpi"
#define DDP_MPI_MPICH   "mpich"

/* An MPI that ddpbench has a module for. */
struct ddp_mpi_flavour {
    const char *name;        /* part of the module's file name */
    const char *library;     /* name for messages */
    const char *package;     /* Debian's development package */
    const char *programs[2]; /* programs that show that this MPI is installed; one suffices */
};
/* All flavours, up to an entry whose name is NULL. */
const struct ddp_mpi_flavour *ddp_mpi_flavours(void);
/* Writes the path of the flavour's module in folder `dir`. Returns whether the file is readable. */
bool ddp_mpi_module_find(const char *dir, const struct ddp_mpi_flavour *flavour, char *path,
                         size_t path_bytes);
/* Fails with DDP_EMISMATCH unless a module and this binary are of the same build. `path` is the
 * file of the module. `abi` is the ABI number of this binary. `found_abi` and `found_commit` are
 * the ABI number and the commit of the module. `found_commit` is NULL if the file is not a
 * module. */
int ddp_conf_module_check(const char *path, int abi, int found_abi, const char *found_commit,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Checks the environment and arms the faults of DDPBENCH_FAULT (ddp_fault_arm). Returns DDP_EUSAGE
 * if a DDPBENCH_* variable is unknown, if DDPBENCH_SIMD or DDPBENCH_FAULT has an illegal value, or
 * if DDPBENCH_FAULT is set in a build without faults. */
int ddp_conf_check(struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the environment for a child process. It consists of this process's environment and the
 * entries "NAME=value" of `more` (NULL-terminated, or NULL). An entry of `more` replaces a variable
 * of the same name. The caller frees the array but not its entries. Returns NULL if memory is
 * exhausted. */
char **ddp_conf_environment(const char *const *more);

#ifdef __cplusplus
}
#endif
#endif
