/* `ddpbench version`, `ddpbench --version` and `ddpbench -V` print the version. */
#include "plain.h"
#include "record/provenance.h"

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct ddp_build *b = ddp_build_info();
    (void)values;
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no operands", err));
    fprintf(app->out, "ddpbench %s (%s)\n", b->version, b->commit);
    return 0;
}

const struct ddp_cmd ddp_cmd_version = {
    .name = "version",
    .summary = "print the version and the commit of this build",
    .operands = "",
    .rows = ddp_plain_rows,
    .values_bytes = sizeof(struct ddp_plain_values),
    .help_offset = offsetof(struct ddp_plain_values, help),
    .run = run,
};
