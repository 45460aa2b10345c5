/* `ddpbench send-recv`: every rank sends an array to the next rank (a ring shift). */
#include "collective.h"

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    return ddp_collective_check(DDP_SEND_RECV, app, values, parsed, err);
}

static const char *const aliases[] = {"send_recv", "sendrecv", NULL};

static const struct ddp_opt rows[] = {
    DDP_COLLECTIVE_ROWS,
    DDP_WORLD_ROWS(struct ddp_collective_values),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_send_recv;
const struct ddp_cmd ddp_cmd_send_recv = {
    .name = "send-recv",
    .aliases = aliases,
    .summary = "ring shift: each rank sends an array to the next rank",
    .operands = "",
    .details =
        "Each iteration is one operation, timed on every rank; the slowest rank's time counts.\n"
        "A size is that of the array on each rank. There is no in-place form.\n"
        "Before a point is timed, its result is verified exactly, element by element.\n\n"
        "Examples:\n"
        "  ddpbench send-recv --size 64M\n"
        "  ddpbench send-recv --ranks 4 --groups 2",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_collective_values),
    .help_offset = offsetof(struct ddp_collective_values, world.help),
    .check = check,
    .show = ddp_collective_show,
    .job = &ddp_points_job,
};
