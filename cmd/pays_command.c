/* `ddpbench pays` tells whether compression pays for a model on a link. */
#include "cmd.h"
#include "run/outputs.h"
#include "run/pays_run.h"

#define AT(member) offsetof(struct ddp_pays_values, member)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Training"),
    DDP_OPT(STRING, "params", 'p', AT(parameters_text), "N", NULL,
            "number of parameters of the model, such as 25M for 25 million",
            .brief = "number of parameters, such as 25M"),
    DDP_OPT(STRING, "gradients", 0, AT(gradients), "DIR", NULL,
            "use gradients recorded by `train --dump-gradients`, instead of --params and random "
            "values",
            .brief = "recorded gradients, instead of --params"),
    DDP_OPT(STRING, "step-time", 0, AT(step_text), "TIME", NULL,
            "compute time of a step without the exchange, such as 120ms",
            .brief = "compute time of a step, such as 120ms"),
    DDP_OPT(INT_LIST, "ranks", 0, AT(c.world.ranks), "N", NULL,
            "number of ranks of the training; with --link or --table, only two ranks are started "
            "to measure; without both, all N ranks are started and measure",
            .min = 1, .max = DDP_PAYS_RANKS_MAX, .brief = "number of ranks of the training"),
    DDP_OPT(
        STRING_LIST, "link", 'l', AT(links), "SPEED[,LATENCY]", NULL,
        "link of each rank, such as 10Gbit/s,20us (default latency: 20us); may be repeated; "
        "with neither --link nor --table the exchange is measured between the ranks of this run",
        .brief = "link of each rank, such as 10Gbit/s,20us"),
    DDP_OPT(SIZE, "bucket-bytes", 0, AT(bucket_bytes), "S", "25M",
            "size of a bucket: S bytes of f32 gradients are exchanged at a time", .min = 1024,
            .max = (double)(1 << 30)),
    DDP_OPT(FLAG, "overlap", 0, AT(overlap), NULL, NULL,
            "the link transfers during the backward pass, which is taken as two thirds of "
            "--step-time; without it, "
            "nothing overlaps"),
    DDP_OPT_HEADING("Compression"),
    DDP_OPT(STRING_LIST, "compress", 0, AT(c.compress), "HOW[,HOW...]", NULL,
            "methods besides dense f32 (none) and bf16; see `allreduce` (default: " DDP_PAYS_METHODS
            "; without --gradients also " DDP_PAYS_THRESHOLD ")",
            .offer = ddp_offer_compressor),
    DDP_OPT_INCLUDE(ddp_feedback_rows, AT(c.bench.feedback)),
    DDP_OPT(STRING, "accuracy", 0, AT(accuracy), "FILE", NULL,
            "result of `train --compare` or of a sweep, for the change of accuracy (default: "
            "convergence.json, which comes with ddpbench)"),
    DDP_OPT_HEADING("Measurement"),
    DDP_OPT(DOUBLE, "max-time", 0, AT(c.bench.max_time_s), "S", "1",
            "measure each method for at most S seconds, and at least 6 times", .min = 0.001,
            .max = 86400),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "table", 0, AT(table), NULL, NULL,
            "add links from 0.1 to 400 Gbit/s, and print one table of methods and links"),
    DDP_OPT_INCLUDE(ddp_start_rows, AT(c.world)),
    DDP_OPT_END,
};

static int check(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    struct ddp_pays_values *v = values;
    DDP_TRY(ddp_check_formats(&v->c.world.formats, DDP_RECORD_PAYS, "the answer of pays", err));
    DDP_TRY(ddp_check_operands(app, parsed, 0, "no arguments", err));
    return ddp_pays_check(app, v, err);
}

const struct ddp_cmd ddp_cmd_pays = {
    .name = "pays",
    .group = DDP_CMD_MEASURE,
    .summary = "does compression pay for this model on this link?",
    .operands = "",
    .rows = rows,
    .values_bytes = sizeof(struct ddp_pays_values),
    .help_offset = AT(c.world.help),
    .check = check,
    .show = ddp_pays_check_ranks,
    .conclude = ddp_pays_conclude,
    .job = &ddp_points_job,
    .details = "With --link or --table, --ranks is the number of ranks of the training. Two\n"
               "ranks on this machine exchange one bucket in shared memory with each method.\n"
               "The time of a step is then predicted: the compute time, plus the measured time\n"
               "of encoding, summing and decoding, plus the time of the link. The time of\n"
               "the link is one latency for each communication step of the algorithm, plus the\n"
               "bytes that are transferred one after another on the slowest path, divided by the\n"
               "speed. Give the speed that your data reaches: the headers of TCP take about 5 %\n"
               "of a link. By default nothing overlaps. With --overlap, only the part of the\n"
               "link's time that exceeds two thirds of the compute time counts.\n"
               "\n"
               "Without --link and --table, the ranks of this run exchange the bucket, also\n"
               "under mpiexec or with --hosts, and the step takes the compute time plus the\n"
               "measured time.\n"
               "\n"
               "The baseline is dense bf16. A method pays if it sends less than bf16, and if the\n"
               "interval of its step time is more than 1 % below that of every measured method\n"
               "that does not send less, such as dense f32. The interval contains the error of\n"
               "the measurement, but not that of the model. Column `Gbit/s below` has the speed\n"
               "of a link below which the method pays: `all` if it pays at every speed, `none`\n"
               "if at no speed, and `-` if it does not send less than bf16. Column `density\n"
               "below` belongs to sparse methods: with a lower density, a step on this link\n"
               "takes less time than with bf16.\n",
    .examples = "  ddpbench pays --params 25M --step-time 120ms --ranks 8 --link 10Gbit/s,20us\n"
                "  ddpbench pays --params 25M --step-time 120ms --ranks 8 --table\n"
                "  mpiexec -n 16 ddpbench pays --params 25M --step-time 120ms\n",
};
