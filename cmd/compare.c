/* `ddpbench compare BASE NEW` compares two stored results, without running commands. */
#include <math.h>

#include "cmd.h"
#include "run/compare_run.h"
#include "run/noise_floor.h"

struct compare_values {
    struct ddp_verdict_outputs outputs;
    double min_effect;      /* percent; 0 when not given */
    double accuracy_margin; /* as a fraction of 1 */
    struct ddp_int_list vary;
    const char *noise_file;
    bool help;
};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Results"),
    DDP_OPT_INCLUDE(ddp_vary_rows, offsetof(struct compare_values, vary)),
    DDP_OPT_HEADING("Statistics"),
    DDP_OPT(
        DOUBLE, "min-effect", 0, offsetof(struct compare_values, min_effect), "PCT", NULL,
        "smallest slow-down in percent that counts; never below 10, because stored results were "
        "measured at different times (default: the larger of 10 and this machine's noise floor)",
        .min = 0.1, .max = 1000),
    DDP_OPT(DOUBLE, "accuracy-margin", 0, offsetof(struct compare_values, accuracy_margin), "X",
            "0.01", "largest loss of training accuracy that is accepted, as a fraction of 1",
            .min = 0.0001, .max = 1),
    DDP_OPT_INCLUDE(ddp_noise_floor_rows, offsetof(struct compare_values, noise_file)),
    DDP_OPT_INCLUDE(ddp_verdict_rows, offsetof(struct compare_values, outputs)),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "help", 'h', offsetof(struct compare_values, help), NULL, NULL,
            "print this text and exit"),
    DDP_OPT_END,
};

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct compare_values *v = values;
    if (parsed->operand_count != 2) {
        ddp_fail(err, DDP_EUSAGE, "compare takes two results, BASE and NEW, not %d",
                 parsed->operand_count);
        return ddp_hint(err, "ddpbench compare yesterday.json today.json");
    }
    const struct ddp_compare compare = {
        .path = {parsed->operands[0], parsed->operands[1]},
        .outputs = &v->outputs,
        .min_effect = v->min_effect > 0 ? v->min_effect / 100 : NAN,
        .accuracy_margin = v->accuracy_margin,
        .vary = ddp_vary_set(&v->vary),
        .noise_file = v->noise_file,
    };
    return ddp_compare_run(app, &compare, err);
}

const struct ddp_cmd ddp_cmd_compare = {
    .name = "compare",
    .summary = "test whether NEW is slower than BASE, two stored results",
    .operands = "BASE NEW",
    .details =
        "Exits with 0 when no cell is slower, with 10 when one is, and with 12 when this\n"
        "cannot be told: an interval is too wide, a result is incomplete, or BASE has a\n"
        "training run or a cell that was not judged. Exits with 65 when a result has wrong\n"
        "data or a point without valid iterations. A cell is slower only if the interval of\n"
        "its ratio lies above the larger of 10 % and --min-effect (default: this machine's\n"
        "noise floor). The step time of a training run is a cell. It has an interval from six\n"
        "epochs or six repetitions on. Accuracies are judged as by `ddpbench gate`: over the\n"
        "seeds, with --accuracy-margin. Stored results were measured at different times, so "
        "compare cannot tell\n"
        "a change of the code from a change of the machine. `ddpbench gate` can: it runs\n"
        "pairs.",
    .rows = rows,
    .values_bytes = sizeof(struct compare_values),
    .help_offset = offsetof(struct compare_values, help),
    .run = run,
};
