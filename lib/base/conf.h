/* Settings from the environment: every DDPBENCH_* variable is a row of one table, so that
 * `ddpbench help environment`, `list` and the record know them all. An unknown DDPBENCH_* variable
 * is an error, not silence. */
#ifndef DDP_BASE_CONF_H
#define DDP_BASE_CONF_H

#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_conf_key {
    DDP_CONF_SIMD,       /* DDPBENCH_SIMD: scalar|avx2|avx512: highest SIMD level used */
    DDP_CONF_BLAS_LIB,   /* DDPBENCH_BLAS_LIB: library to load for CBLAS, as --blas */
    DDP_CONF_CUBLAS_LIB, /* DDPBENCH_CUBLAS_LIB: library to load for cuBLAS */
    DDP_CONF_CUDNN_LIB,  /* DDPBENCH_CUDNN_LIB: library to load for cuDNN */
    DDP_CONF_MODULE_DIR, /* DDPBENCH_MODULE_DIR: where ddpbench-mpi-*.so lie */
    DDP_CONF_DATA_DIR,   /* DDPBENCH_DATA_DIR: where data sets lie, as --data */
    DDP_CONF_PORT,       /* DDPBENCH_PORT: where ranks of torchrun meet (comm/rendezvous.h) */
    DDP_CONF_NCCL_LIB,   /* DDPBENCH_NCCL_LIB: library to load for NCCL */
    DDP_CONF_HOSTS,      /* DDPBENCH_HOSTS: hosts to pretend, for tests (comm/hosts.h) */
    DDP_CONF_FAULT,      /* DDPBENCH_FAULT: point:n:action, only in a build with FAULTS=1 */
    DDP_CONF_COUNT
};

struct ddp_conf_row {
    const char *variable;
    const char *help;
};
const struct ddp_conf_row *ddp_conf_rows(void); /* [DDP_CONF_COUNT] */

/* The value, or NULL when unset or empty. Borrowed from the environment. */
const char *ddp_conf_get(enum ddp_conf_key key);
/* DDP_EUSAGE when the environment has a DDPBENCH_* variable that no row names (suggests the
 * nearest), or DDPBENCH_SIMD or DDPBENCH_FAULT has an illegal value. Arms the faults (fault.h). */
int ddp_conf_check(struct ddp_err *err) DDP_MUST_CHECK;

/* The environment for a child: ours, with the "K=V" of more (NULL-terminated, or NULL) added or in
 * place of ours. The block is the caller's to free(), its entries are not; NULL: no memory. */
char **ddp_conf_environment(const char *const *more);

#ifdef __cplusplus
}
#endif
#endif
