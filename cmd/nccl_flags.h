/* Translates command lines of NVIDIA's nccl-tests. `ddpbench all_reduce_perf -b 8 -e 128M -f 2 -g
 * 1` runs with the defaults, size units ("128MB" is 2^27) and output format of nccl-tests. If
 * ddpbench cannot do what a flag asks for, the command fails and names the flag. Options of
 * ddpbench may be mixed with flags of nccl-tests. */
#ifndef DDP_CMD_NCCL_FLAGS_H
#define DDP_CMD_NCCL_FLAGS_H

#include "cmd.h"

/* A translated command line, which owns its strings. */
struct ddp_nccl_line {
    char *argv[160];
    int argc;
    /* Number of ranks: the product of -t and -g. */
    int64_t ranks;
    /* Set by the caller: a launcher has started this process together with others. */
    bool shared;
};

/* Returns the command for a program of nccl-tests (allreduce for all_reduce_perf, ...), or NULL for
 * any other name. */
const struct ddp_cmd *ddp_nccl_command(const char *name);
/* Translates argv, in which argv[0] is the command's name. The caller sets out->shared and releases
 * *out with ddp_nccl_release, also after an error. Returns 0, DDP_EUSAGE or DDP_ENOMEM. */
int ddp_nccl_translate(const struct ddp_cmd *cmd, int argc, char *const *argv,
                       struct ddp_nccl_line *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_nccl_release(struct ddp_nccl_line *line);

#endif
