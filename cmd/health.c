/* `ddpbench health` finds the hosts, ranks and links of a job that are slow. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "report/report.h"
#include "run/health_run.h"
#include "run/outputs.h"

#define AT(member) offsetof(struct ddp_health_values, member)

static const char *const exit_names[] = {"job", "host", NULL};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Judgement"),
    DDP_OPT(STRING, "reference", 0, AT(reference), "FILE", NULL,
            "compare also with the document of an earlier healthy run"),
    DDP_OPT(DOUBLE, "min-effect", 0, AT(min_effect_percent), "PCT", "10",
            "the smallest slow-down in percent that counts", .min = 0.1, .max = 1000),
    DDP_OPT(DOUBLE, "min-latency", 0, AT(min_latency_us), "US", "20",
            "the smallest extra latency in microseconds that counts", .min = 0.1, .max = 1e6),
    DDP_OPT(DOUBLE, "must-find", 0, AT(must_find_percent), "PCT", "100",
            "HEALTHY only if a host that is slower by PCT percent would have been found", .min = 1,
            .max = 10000),
    DDP_OPT(ENUM, "exit-code", 0, AT(exit_code), "OF", "job",
            "under a launcher: rank 0 exits with the code of the verdict (job), or every rank "
            "exits with 10 if a finding names its own host or all hosts (host); a finding about a "
            "link, or about one of two hosts, names none",
            .choices = exit_names, .brief = "exit code of the job, or of each host"),
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(
        DOUBLE, "max-time", 0, AT(max_time_s), "S", "4",
        "measure 3 passes, up to 5 while they end within 1.75 x S seconds, and up to 9 while they "
        "end within S seconds",
        .min = 0.001, .max = 86400),
    DDP_OPT(SIZE, "size", 's', AT(size), "BYTES", "256K",
            "size of a message of the bandwidth measurement", .min = 1, .max = 1 << 30),
    DDP_OPT_INCLUDE(ddp_world_rows, AT(world)),
    DDP_OPT_END,
};

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    struct ddp_health_values *v = values;
    DDP_TRY(ddp_check_formats(&v->world.formats, DDP_RECORD_MATRIX, "the result of health", err));
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no arguments", err));
    if (v->world.ranks.n > 1)
        return ddp_fail(err, DDP_EUSAGE, "health takes one number of ranks");
    /* The agents of --hosts (run/remote.h) run this command line, too. For an agent, the kind of
     * the launcher is not DDP_LAUNCHER_NONE. */
    if (v->exit_code == DDP_HEALTH_EXIT_HOST && app->launcher.kind == DDP_LAUNCHER_NONE) {
        ddp_fail(err, DDP_EUSAGE, "--exit-code host needs a launcher; %s one exit code",
                 v->world.hosts      ? "--hosts has"
                 : v->world.hostfile ? "--hostfile has"
                                     : "ranks that ddpbench starts have");
        return ddp_hint(err, "leave out --exit-code, or start the ranks with srun or mpiexec");
    }
    if (v->reference)
        v->world.protected_path[v->world.protected_count++] = v->reference;
    return 0;
}

const struct ddp_cmd ddp_cmd_health = {
    .name = "health",
    .group = DDP_CMD_JUDGE,
    .summary = "which host, link or rank is slow: HEALTHY, DEGRADED with names, or CANNOT TELL",
    .operands = "",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_health_values),
    .help_offset = AT(world.help),
    .check = check,
    .job = &ddp_health_job,
    .details = "Measures every pair of hosts (of ranks, if there is one host) several times:\n"
               "the bandwidth of each direction, the latency, and the TCP segments that were\n"
               "sent again. Each rank also times a fixed computation and a memory copy. Figures\n"
               "are compared with those of peers in the job, and with --reference. Pairs of\n"
               "ranks on one host are compared only with --reference. The output also names\n"
               "facts in which a host differs from the others. The speed of the interfaces is\n"
               "reported but does not affect the verdict.\n"
               "  HEALTHY (0)        there is no finding, and a computation or (between hosts) a\n"
               "                     bandwidth that is worse by --must-find would have been\n"
               "                     found\n"
               "  DEGRADED (10)      a finding names a host, a link or a rank, with the factor,\n"
               "                     its interval and the next step\n"
               "  CANNOT TELL (12)   the measurements scatter too much, or there is nothing to\n"
               "                     compare with\n"
               "The limits follow from the measured scatter. If it is normal, at most 1 % of\n"
               "healthy runs are DEGRADED. `ddpbench explain health` has the details.\n",
    .examples = "  ddpbench health --hosts a,b,c,d\n"
                "  mpiexec -n 8 ddpbench health --reference healthy.json --json today.json\n",
};
