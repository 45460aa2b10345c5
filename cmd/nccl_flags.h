/* Command lines of NVIDIA's nccl-tests: `ddpbench all_reduce_perf -b 8 -e 128M -f 2 -g 1` runs as
 * its author meant it, or says which flag has no meaning here. Their defaults, their sizes ("128MB"
 * is 2^27), their output. Options of ours may stand between theirs. */
#ifndef DDP_CMD_NCCL_FLAGS_H
#define DDP_CMD_NCCL_FLAGS_H

#include "cmd.h"

/* A command line of ours; [argc], in memory of its own. */
struct ddp_nccl_line {
    char *argv[160];
    int argc;
};

/* The command that measures what all_reduce_perf, alltoall_perf, ... do; NULL: none of these. */
const struct ddp_cmd *ddp_nccl_command(const char *name);
/* argv[0]: name of the command; DDP_EUSAGE names the flag. *out is released with ddp_nccl_release,
 * also after an error. */
int ddp_nccl_translate(const struct ddp_cmd *cmd, int argc, char *const *argv,
                       struct ddp_nccl_line *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_nccl_release(struct ddp_nccl_line *line);

#endif
