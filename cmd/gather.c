/* `ddpbench gather`: collects the chunks of all ranks on the root. */
#include "collective.h"

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    return ddp_collective_check(DDP_GATHER, app, values, parsed, err);
}

static const struct ddp_opt rows[] = {
    DDP_COLLECTIVE_ROWS,
    DDP_COLLECTIVE_ROOT_ROW,
    DDP_WORLD_ROWS(struct ddp_collective_values),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_gather;
const struct ddp_cmd ddp_cmd_gather = {
    .name = "gather",
    .summary = "the root receives the chunks of all ranks",
    .operands = "",
    .details =
        "Each iteration is one operation, timed on every rank; the slowest rank's time counts.\n"
        "A size is that of the full buffer, which has one chunk per rank. It is rounded down\n"
        "to whole chunks.\n"
        "Before a point is timed, its result is verified exactly, element by element.\n\n"
        "Examples:\n"
        "  ddpbench gather --size 64M\n"
        "  ddpbench gather --root 1 --placement in",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_collective_values),
    .help_offset = offsetof(struct ddp_collective_values, world.help),
    .check = check,
    .show = ddp_collective_show,
    .job = &ddp_points_job,
};
