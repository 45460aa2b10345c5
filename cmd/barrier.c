/* `ddpbench barrier`: no rank leaves before every rank has entered. */
#include "collective.h"

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    return ddp_collective_check(DDP_BARRIER, app, values, parsed, err);
}

static const struct ddp_opt rows[] = {
    DDP_COLLECTIVE_ALGORITHM_ROWS,
    DDP_COLLECTIVE_TIME_ROWS,
    DDP_COLLECTIVE_OUTPUT_ROWS,
    DDP_WORLD_ROWS(struct ddp_collective_values),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_barrier;
const struct ddp_cmd ddp_cmd_barrier = {
    .name = "barrier",
    .summary = "no rank leaves before all have entered",
    .operands = "",
    .details =
        "Each iteration is one operation, timed on every rank; the slowest rank's time counts.\n"
        "A barrier moves no data, so it has a time but no bandwidth.\n\n"
        "Examples:\n"
        "  ddpbench barrier --ranks 2,4,8 -n 1000\n"
        "  ddpbench barrier --algorithm all",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_collective_values),
    .help_offset = offsetof(struct ddp_collective_values, world.help),
    .check = check,
    .show = ddp_collective_show,
    .job = &ddp_points_job,
};
