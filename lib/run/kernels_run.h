/* Runs `ddpbench kernels`: starts the program ddpbench-kernels, which measures the CPU kernels with
 * Google Benchmark. ddpbench-kernels is a separate program because Google Benchmark is a C++
 * library. */
#ifndef DDP_RUN_KERNELS_RUN_H
#define DDP_RUN_KERNELS_RUN_H

#include "base/conf.h"
#include "run/command.h"

/* Writes the path of the helper program, which is in the folder of ddp_conf_module_dir. Returns
 * DDP_EUNAVAIL with the reason if the helper is missing. */
int ddp_kernels_find(const struct ddp_app *app, char *path, size_t path_bytes,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* Runs the helper with these sizes, and with the arguments of app->argv for which
 * app->cmd->is_foreign returns true. Returns the error with which the helper has ended, or the
 * errors of ddp_kernels_find and ddp_child_run. */
int ddp_kernels_run(struct ddp_app *app, const struct ddp_size_list *sizes,
                    struct ddp_err *err) DDP_MUST_CHECK;

#endif
