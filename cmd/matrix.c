/* `ddpbench matrix` measures the latency and bandwidth between every pair of ranks or hosts. */
#include "cmd.h"
#include "report/report.h"
#include "run/matrix_run.h"
#include "run/outputs.h"

#define AT(member) offsetof(struct ddp_matrix_values, member)

static const char *const by_names[] = {"rank", "host", NULL};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(ENUM, "by", 0, AT(by), "END", "rank",
            "measure between all ranks, or between the lowest ranks of the hosts",
            .choices = by_names),
    DDP_OPT(SIZE, "size", 's', AT(size), "BYTES", "1M", "size of a message", .min = 1,
            .max = 1 << 30),
    DDP_OPT(INT, "iters", 'n', AT(iters), "N", "20",
            "measure each direction at most N times, with 4 messages each time", .min = 1,
            .max = 1000),
    DDP_OPT(DOUBLE, "max-time", 0, AT(max_time_s), "S", "0.3",
            "end a direction after S seconds if it was measured 3 times, and after 3 x S seconds "
            "at the "
            "latest",
            .min = 0.001, .max = 86400),
    DDP_OPT(INT, "rounds", 0, AT(rounds), "N", "0",
            "measure N rounds, chosen at random by --seed; 0: all rounds, but only 16 if there are "
            "64 or "
            "more ranks or hosts",
            .max = DDP_MATRIX_MAX),
    DDP_OPT_INCLUDE(ddp_world_rows, AT(world)),
    DDP_OPT_END,
};

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    const struct ddp_matrix_values *v = values;
    DDP_TRY(ddp_check_formats(&v->world.formats, DDP_RECORD_MATRIX, "the result of matrix", err));
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no arguments", err));
    if (v->world.ranks.n > 1)
        return ddp_fail(err, DDP_EUSAGE, "matrix takes one number of ranks");
    /* The other ranks wait until the slowest pair has measured its three bandwidths, each of which
     * may take three times --max-time. */
    if (3 * 3 * v->max_time_s < v->world.timeout_s)
        return 0;
    ddp_fail(err, DDP_EUSAGE, "--max-time %g needs a --timeout above %g", v->max_time_s,
             9 * v->max_time_s);
    return ddp_hint(err, "a pair may take nine times --max-time, and the other ranks wait for it");
}

const struct ddp_cmd ddp_cmd_matrix = {
    .name = "matrix",
    .group = DDP_CMD_MEASURE,
    .summary = "latency and bandwidth between every pair of ranks or hosts",
    .operands = "",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_matrix_values),
    .help_offset = AT(world.help),
    .check = check,
    .job = &ddp_matrix_job,
    .details = "Ranks meet in the rounds of a tournament. In a round a rank has at most one\n"
               "partner, so pairs disturb each other only if they share a link. A pair is\n"
               "measured in this order: the latency (half the round trip of 8 bytes), one\n"
               "direction, the other direction, and both directions at the same time. In each\n"
               "repetition, 4 messages are sent, and the receiver answers when the last one has\n"
               "arrived. The time from the first message to the answer, minus the latency of the\n"
               "answer, gives a bandwidth. The result is the median of the repetitions. After\n"
               "them, the messages are sent once more, and the last one is verified.\n"
               "\n"
               "On a terminal, directions below 80 % of the median are yellow, and those below\n"
               "50 % are red.\n",
    .examples = "  ddpbench matrix --hosts a,b,c --by host\n"
                "  mpiexec -n 16 ddpbench matrix --json matrix.json\n",
};
