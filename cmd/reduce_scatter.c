/* `ddpbench reduce-scatter`: combines an array over all ranks and leaves one chunk of the result on
 * each rank. */
#include "collective.h"

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    return ddp_collective_check(DDP_REDUCE_SCATTER, app, values, parsed, err);
}

static const char *const aliases[] = {"reduce_scatter", "reducescatter", NULL};

static const struct ddp_opt rows[] = {
    DDP_COLLECTIVE_ROWS,
    DDP_COLLECTIVE_OP_ROW,
    DDP_WORLD_ROWS(struct ddp_collective_values),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_reduce_scatter;
const struct ddp_cmd ddp_cmd_reduce_scatter = {
    .name = "reduce-scatter",
    .aliases = aliases,
    .summary = "sum, average, ... over all ranks; each rank gets a chunk",
    .operands = "",
    .details =
        "Each iteration is one operation, timed on every rank; the slowest rank's time counts.\n"
        "A size is that of the full buffer, which has one chunk per rank. It is rounded down\n"
        "to whole chunks.\n"
        "Before a point is timed, its result is verified exactly, element by element.\n\n"
        "Examples:\n"
        "  ddpbench reduce-scatter --size 64M\n"
        "  ddpbench reduce-scatter --algorithm all -d f32,bf16 -o avg",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_collective_values),
    .help_offset = offsetof(struct ddp_collective_values, world.help),
    .check = check,
    .show = ddp_collective_show,
    .job = &ddp_points_job,
};
