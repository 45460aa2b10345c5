/* `ddpbench isolate` finds the hosts, ranks and links that slow down a collective. */
#include <stdio.h>

#include "cmd.h"
#include "report/report.h"
#include "run/isolate_run.h"
#include "run/outputs.h"

#define AT(member) offsetof(struct ddp_isolate_values, member)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Judgement"),
    DDP_OPT(DOUBLE, "min-effect", 0, AT(min_effect_percent), "PCT", "10",
            "the smallest slow-down of a group in percent that counts", .min = 0.1, .max = 1000),
    DDP_OPT(
        DOUBLE, "must-find", 0, AT(must_find_percent), "PCT", "100",
        "HEALTHY only if a host or rank that makes a group slower by PCT percent would have been "
        "found",
        .min = 1, .max = 10000),
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(ENUM, "collective", 0, AT(collective), "COLL", "all_to_all",
            "the collective of the groups; an allreduce may not use all links of a group, so it "
            "finds hosts and ranks, but not all links",
            .choices = ddp_isolate_collective_names),
    DDP_OPT(SIZE, "size", 's', AT(size), "BYTES", "1M", "size of the array of each rank", .min = 4,
            .max = 1 << 30),
    DDP_OPT(INT, "rounds", 0, AT(rounds), "N", "40", "measure at most N rounds", .min = 1,
            .max = 40),
    DDP_OPT(DOUBLE, "max-time", 0, AT(max_time_s), "S", "30",
            "begin no round after S seconds; the rounds have 5 to 49 repetitions", .min = 0.001,
            .max = 86400),
    DDP_OPT(
        STRING, "inject-delay", 0, AT(inject), "MS@RANK", NULL,
        "to test the search: delay each collective by MS milliseconds in every group with RANK, "
        "or with both ranks of a link (MS@RANK-RANK); the record gets a note"),
    DDP_OPT_INCLUDE(ddp_world_rows, AT(world)),
    DDP_OPT_END,
};

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    struct ddp_isolate_values *v = values;
    DDP_TRY(ddp_check_formats(&v->world.formats, DDP_RECORD_MATRIX, "the result of isolate", err));
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no arguments", err));
    if (v->world.ranks.n > 1)
        return ddp_fail(err, DDP_EUSAGE, "isolate takes one number of ranks");
    DDP_TRY(ddp_isolate_parse_inject(v, err));
    if (v->inject_rank >= 0)
        snprintf(v->world.note, sizeof v->world.note, "injected delay of %g ms", v->inject_ms);
    return 0;
}

const struct ddp_cmd ddp_cmd_isolate = {
    .name = "isolate",
    .group = DDP_CMD_JUDGE,
    .summary = "which host, link or rank slows down collectives, even if only under their load",
    .operands = "",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_isolate_values),
    .help_offset = AT(world.help),
    .check = check,
    .job = &ddp_isolate_job,
    .details = "Divides the hosts (the ranks, if there is one host) into groups, which all run\n"
               "the same collective at the same time. A slow host slows down every group that\n"
               "it is in, and a slow link slows down the groups with both of its ends. The\n"
               "first rounds bring every pair into a group together. Further rounds halve the\n"
               "slow groups. A suspect is compared with a healthy host in its place before it\n"
               "is named.\n"
               "  HEALTHY (0)        no group is slow, and a host that makes a group slower by\n"
               "                     --must-find would have been found\n"
               "  DEGRADED (10)      a finding names a host, a link or a rank\n"
               "  CANNOT TELL (12)   the times scatter too much, the search was not finished, or\n"
               "                     there are fewer than 4 hosts or ranks\n"
               "Most groups must be healthy, so a search finds a few faults at a time. In a\n"
               "large group, a slow link is only a small part of the traffic: `ddpbench health`\n"
               "measures links directly. If ranks share cores, only slow-downs of 4 times and\n"
               "more count. `ddpbench explain isolate` has the details.\n",
    .examples = "  ddpbench isolate --hosts a,b,c,d\n"
                "  mpiexec -n 64 ddpbench isolate --json today.json\n",
};
