/* `ddpbench allreduce`: how fast do gradients really travel here? */
#include "collective.h"

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    return ddp_collective_check(DDP_ALLREDUCE, app, values, parsed, err);
}

static const char *const aliases[] = {"all-reduce", "all_reduce", NULL};

static const struct ddp_opt rows[] = {
    DDP_COLLECTIVE_ROWS,
    DDP_COLLECTIVE_OP_ROW,
    DDP_WORLD_ROWS(struct ddp_collective_values),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_allreduce;
const struct ddp_cmd ddp_cmd_allreduce = {
    .name = "allreduce",
    .aliases = aliases,
    .summary = "sum, average, ... over all ranks, the result on every rank",
    .operands = "",
    .details =
        "Each iteration is one operation, timed on every rank; its time is the slowest rank's.\n"
        "Before its figures a point's data is verified exactly, element by element.\n"
        "\n"
        "Examples:\n"
        "  ddpbench allreduce --size 64M\n"
        "  ddpbench allreduce -b 8 -e 1G -f 2 --json out.json\n"
        "  mpiexec -n 16 ddpbench allreduce --algorithm all -d f32,f16",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_collective_values),
    .help_offset = offsetof(struct ddp_collective_values, world.help),
    .flags = DDP_CMD_NEEDS_WORLD | DDP_CMD_COLLECTIVE,
    .check = check,
    .prepare = ddp_collective_prepare,
    .heap_bytes = ddp_collective_heap_bytes,
    .rank_main = ddp_collective_rank_main,
    .release = ddp_collective_release,
};
