/* Shared by `ddpbench kernels` and its helper binary. Private to cmd/. */
#ifndef DDP_CMD_KERNELS_H
#define DDP_CMD_KERNELS_H

#include "cmd.h"

#define DDP_KERNELS_HELPER "ddpbench-kernels"

/* The option --size of both programs; `at` is the offset of a struct ddp_size_list. */
#define DDP_KERNELS_SIZE(at)                                                                       \
    DDP_OPT(SIZE_LIST, "size", 0, at, "S[,S...]", "256K,16M",                                      \
            "size of each array, a multiple of 8 bytes; the first default fits the caches, "       \
            "the second does not",                                                                 \
            .min = 4096, .max = 17179869184.0)

/* Writes the path of the helper program, which is in the folder of ddp_conf_module_dir. Returns
 * DDP_EUNAVAIL with the reason if the helper is missing. */
int ddp_kernels_find(const struct ddp_app *app, char *path, size_t path_bytes,
                     struct ddp_err *err) DDP_MUST_CHECK;

#endif
