/* `ddpbench compare BASE NEW` compares two stored results, without running commands. */
#include <math.h>

#include "cmd.h"
#include "run/compare_run.h"
#include "run/noise_floor.h"

struct compare_values {
    struct ddp_verdict_outputs outputs;
    double min_effect;      /* percent; 0 when not given */
    double accuracy_margin; /* as a fraction of 1 */
    const char *noise_file;
    struct ddp_int_list vary;
    bool across, edited, help;
};

#define AT(member) offsetof(struct compare_values, member)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Results"),
    DDP_OPT_INCLUDE(ddp_vary_rows, AT(vary)),
    DDP_OPT(FLAG, "across", 0, AT(across), NULL, NULL,
            "show the ratios of any results to the first one, and what differs between their "
            "machines; no verdict",
            .brief = "ratios of any results; no verdict"),
    DDP_OPT(FLAG, "edited", 0, AT(edited), NULL, NULL,
            "accept results that were changed after they were written"),
    DDP_OPT_HEADING("Statistics"),
    DDP_OPT(
        DOUBLE, "min-effect", 0, AT(min_effect), "PCT", NULL,
        "smallest slow-down in percent that counts; never below 10, because stored results were "
        "measured at different times (default: the larger of 10 and this machine's noise floor)",
        .min = 0.1, .max = 1000, .brief = "smallest slow-down in percent that counts"),
    DDP_OPT(DOUBLE, "accuracy-margin", 0, AT(accuracy_margin), "X", "0.01",
            "largest loss of training accuracy that is accepted, as a fraction of 1", .min = 0.0001,
            .max = 1),
    DDP_OPT_INCLUDE(ddp_noise_floor_rows, AT(noise_file)),
    DDP_OPT_INCLUDE(ddp_verdict_rows, AT(outputs)),
    DDP_OPT_HEADING("Output"),
    DDP_OPT_INCLUDE(ddp_help_rows, AT(help)),
    DDP_OPT_END,
};

/* Refuses a wrong number of results, and options of a verdict with --across. */
static int check(const struct ddp_app *app, const struct compare_values *v,
                 const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    static const char *const only_verdict[] = {"min-effect", "accuracy-margin", "noise-floor",
                                               NULL};
    if (v->across && parsed->operand_count < 2) {
        ddp_fail(err, DDP_EUSAGE, "compare --across takes two or more results, not %d",
                 parsed->operand_count);
        return ddp_hint(err, "ddpbench compare --across here.json there.json");
    }
    if (!v->across && parsed->operand_count != 2) {
        ddp_fail(err, DDP_EUSAGE, "compare takes two results, BASE and NEW, not %d",
                 parsed->operand_count);
        return ddp_hint(err, "ddpbench compare yesterday.json today.json");
    }
    for (int i = 0; only_verdict[i] && v->across; i++)
        if (ddp_opt_given(app->cmd->rows, parsed, only_verdict[i]))
            return ddp_fail(err, DDP_EUSAGE, "--%s means nothing with --across", only_verdict[i]);
    return 0;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct compare_values *v = values;
    DDP_TRY(check(app, v, parsed, err));
    const struct ddp_compare compare = {
        .path = parsed->operands,
        .count = (size_t)parsed->operand_count,
        .across = v->across,
        .edited = v->edited,
        .vary = ddp_vary_set(&v->vary),
        .outputs = &v->outputs,
        .min_effect = v->min_effect > 0 ? v->min_effect / 100 : NAN,
        .accuracy_margin = v->accuracy_margin,
        .noise_file = v->noise_file,
    };
    return ddp_compare_run(app, &compare, err);
}

const struct ddp_cmd ddp_cmd_compare = {
    .name = "compare",
    .group = DDP_CMD_JUDGE,
    .summary = "test whether the stored result NEW is slower than the stored result BASE",
    .operands = "BASE NEW [MORE...]",
    .details = "Exits with 0 when no cell is slower, with 10 when one is, and with 12 when this\n"
               "cannot be told: an interval is too wide, a result is incomplete, or BASE has a\n"
               "training run or a cell that was not judged. Exits with 65 when a result has\n"
               "wrong data or a point without valid iterations. A cell is slower only if the\n"
               "interval of its ratio lies above the larger of 10 % and --min-effect (default:\n"
               "this machine's noise floor). The step time of a training run is a cell. It has\n"
               "an interval from six epochs or six repetitions on. Accuracies are judged as by\n"
               "`ddpbench gate`: over the seeds, with --accuracy-margin. Stored results were\n"
               "measured at different times, so compare cannot tell a change of the code from a\n"
               "change of the machine. `ddpbench gate` can: it runs pairs.\n"
               "Results can be compared if they have the same CPU model, usable cores, major\n"
               "version of the kernel, ranks, backend and MPI library (76 otherwise). Host names\n"
               "and builds may differ. A fact that a result lacks equals only another missing\n"
               "fact. --vary ranks and --vary backend allow the ranks, or the backend and MPI\n"
               "library, to differ. --across compares results of any machines with the first\n"
               "result. It shows ratios, the ratios that the 95 % intervals of both medians\n"
               "allow, and the facts that differ. It exits with 0.\n",
    .examples = "  ddpbench compare yesterday.json today.json\n"
                "  ddpbench compare --vary algorithm tree.json ring.json\n"
                "  ddpbench compare --across runner.json laptop.json cluster.json \\\n"
                "      --json ratios.json\n",
    .rows = rows,
    .values_bytes = sizeof(struct compare_values),
    .help_offset = offsetof(struct compare_values, help),
    .run = run,
};
