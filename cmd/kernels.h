/* What `ddpbench kernels` and its helper binary share, and where the helper is found. Private to
 * cmd/. */
#ifndef DDP_CMD_KERNELS_H
#define DDP_CMD_KERNELS_H

#include "cmd.h"

#define DDP_KERNELS_HELPER "ddpbench-kernels"

/* Option --size of both; offset: of a struct ddp_size_list. */
#define DDP_KERNELS_SIZE_ROW(at)                                                                   \
    {                                                                                              \
        .name = "size", .kind = DDP_OPT_SIZE_LIST, .offset = at, .value = "S[,S...]",              \
        .initial = "256K,16M", .group = "Kernels",                                                 \
        .help = "size of each array, a multiple of 8 bytes: what the caches hold, and what "       \
                "they do not",                                                                     \
        .min = 4096, .max = 17179869184.0                                                          \
    }

/* Path of the helper that can be started: DDPBENCH_MODULE_DIR, else beside the binary, else
 * ../lib/ddpbench. DDP_EUNAVAIL with the reason. */
int ddp_kernels_find(const struct ddp_app *app, char *path, size_t path_bytes,
                     struct ddp_err *err) DDP_MUST_CHECK;

#endif
