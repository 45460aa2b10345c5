/* `ddpbench reduce`: combines an array over all ranks and leaves the result on the root. */
#include "collective.h"

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    return ddp_collective_check(DDP_REDUCE, app, values, parsed, err);
}

static const struct ddp_opt rows[] = {
    DDP_COLLECTIVE_ROWS,
    DDP_COLLECTIVE_OP_ROW,
    DDP_COLLECTIVE_ROOT_ROW,
    DDP_WORLD_ROWS(struct ddp_collective_values),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_reduce;
const struct ddp_cmd ddp_cmd_reduce = {
    .name = "reduce",
    .summary = "sum, average, ... over all ranks; the root gets the result",
    .operands = "",
    .details =
        "Each iteration is one operation, timed on every rank; the slowest rank's time counts.\n"
        "A size is that of the array on each rank.\n"
        "Before a point is timed, its result is verified exactly, element by element.\n\n"
        "Examples:\n"
        "  ddpbench reduce --size 64M\n"
        "  ddpbench reduce -r 1 -o max -d i32",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_collective_values),
    .help_offset = offsetof(struct ddp_collective_values, world.help),
    .check = check,
    .show = ddp_collective_show,
    .job = &ddp_points_job,
};
