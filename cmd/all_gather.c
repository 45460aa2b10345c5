/* `ddpbench all-gather`: every rank receives the chunks of all ranks. */
#include "collective.h"

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    return ddp_collective_check(DDP_ALL_GATHER, app, values, parsed, err);
}

static const char *const aliases[] = {"all_gather", "allgather", NULL};

static const struct ddp_opt rows[] = {
    DDP_COLLECTIVE_ROWS,
    DDP_WORLD_ROWS(struct ddp_collective_values),
    DDP_OPT_END,
};

extern const struct ddp_cmd ddp_cmd_all_gather;
const struct ddp_cmd ddp_cmd_all_gather = {
    .name = "all-gather",
    .aliases = aliases,
    .summary = "every rank receives the chunks of all ranks",
    .operands = "",
    .details =
        "Each iteration is one operation, timed on every rank; the slowest rank's time counts.\n"
        "A size is that of the full buffer, which has one chunk per rank. It is rounded down\n"
        "to whole chunks.\n"
        "Before a point is timed, its result is verified exactly, element by element.\n\n"
        "Examples:\n"
        "  ddpbench all-gather --size 64M\n"
        "  ddpbench all-gather -b 1K -e 64M -f 2 --placement in --json out.json",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_collective_values),
    .help_offset = offsetof(struct ddp_collective_values, world.help),
    .check = check,
    .show = ddp_collective_show,
    .job = &ddp_points_job,
};
