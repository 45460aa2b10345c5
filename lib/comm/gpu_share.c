#include "comm/gpu_share.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

/* These settings are for NCCL 2.28 and follow its documentation. Ranks communicate only by sockets
 * on the loopback device. Kernels use few blocks, so that the kernels of all ranks fit on the GPU
 * together. Kernels are loaded eagerly, because with lazy loading a running kernel may wait for a
 * kernel that is not loaded yet. */
static const struct {
    const char *name, *value;
    /* True if a value that the user has set is kept. */
    bool tunes;
} variables[] = {
    {"NCCL_SOCKET_IFNAME", "=lo", false}, {"NCCL_NET", "Socket", false},
    {"NCCL_IB_DISABLE", "1", false},      {"NCCL_P2P_DISABLE", "1", false},
    {"NCCL_SHM_DISABLE", "1", false},     {"NCCL_RAS_ENABLE", "0", false},
    {"NCCL_MAX_CTAS", "2", true},         {"NCCL_ALGO", "Ring", true},
    {"NCCL_PROTO", "Simple", true},       {"CUDA_MODULE_LOADING", "EAGER", false},
};

static int set(const char *name, const char *value, bool tunes, struct ddp_err *err)
{
    return setenv(name, value, !tunes) == 0
               ? 0
               : ddp_fail_errno(err, DDP_ENOMEM, errno, "cannot set %s", name);
}

int ddp_gpu_share_all(struct ddp_err *err)
{
    for (size_t i = 0; i < DDP_COUNT_OF(variables); i++)
        DDP_TRY(set(variables[i].name, variables[i].value, variables[i].tunes, err));
    return 0;
}

int ddp_gpu_share_rank(int rank, struct ddp_err *err)
{
    char host[64];
    snprintf(host, sizeof host, "ddpbench-%ld-r%d", (long)getppid(), rank);
    return set("NCCL_HOSTID", host, false, err);
}
