/* `ddpbench doctor` reports problems of this machine or job: one line per finding, worst first. */
#include "plain.h"
#include "run/doctor_run.h"

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct ddp_plain_values *v = values;
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no operands", err));
    return ddp_doctor_run(app, v->json, err);
}

const struct ddp_cmd ddp_cmd_doctor = {
    .name = "doctor",
    .flags = DDP_CMD_EVERY_RANK,
    .summary = "what is wrong with this machine or job, worst first",
    .operands = "",
    .details = "Prints one line per finding: FAIL (cannot work here), WARN (works, but\n"
               "measurements or features suffer), NOTE (an optional feature is missing) or OK,\n"
               "then the subject, the fact, and what to do. Exits with 69 if there is a FAIL,\n"
               "else with 0. `mpiexec -n N ddpbench\n"
               "doctor` connects the ranks, and rank 0 prints the findings of all of them. Equal\n"
               "findings of several ranks are printed as one line. The line names at most four\n"
               "hosts or ranks that have the finding, or gives their number, unless all of them\n"
               "have it. A host that differs\n"
               "from most others, for example in its MTU or the speed of its network interface,\n"
               "gets a WARN. With --json, a finding lists its hosts and ranks.\n"
               "If the ranks cannot be connected, each host prints its own findings. A FAIL of a\n"
               "rank that is not the first one of its host then has the number of the rank. With\n"
               "several hosts, every line names its host. A launcher ends the job when the first\n"
               "rank fails, so a rank with a FAIL waits some seconds for the other ranks.\n",
    .examples = "  ddpbench doctor\n"
                "  mpiexec -n 16 ddpbench doctor\n",
    .rows = ddp_plain_json_rows,
    .values_bytes = sizeof(struct ddp_plain_values),
    .help_offset = offsetof(struct ddp_plain_values, help),
    .run = run,
};
