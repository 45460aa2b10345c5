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
        "measured at different times (default: 10, or the noise floor of this machine if it is "
        "larger and the results come from this machine)",
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

/* Refuses a wrong number of results. With --across there is no verdict, so the options that only a
 * verdict uses are refused, too. */
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
            return ddp_fail(err, DDP_EUSAGE, "--%s cannot be combined with --across",
                            only_verdict[i]);
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
    .details = "A cell is a point or the step time of a training run. Its ratio is its median\n"
               "time in NEW divided by that in BASE. The interval of the ratio contains all\n"
               "ratios that the 95 % intervals of the two medians allow. A median has an\n"
               "interval from six iterations (step time: six epochs) on, or from six repetitions\n"
               "on if the result has repetitions. A cell is slower if the whole interval of its\n"
               "ratio shows a slow-down of more than --min-effect. An accuracy is worse if NEW\n"
               "is worse than BASE by more than --accuracy-margin. As in `ddpbench gate`, this\n"
               "is tested with the differences between equal seeds.\n"
               "Exits with 0 if no cell is slower and no accuracy is worse.\n"
               "Exits with 10 if a cell is slower or an accuracy is worse.\n"
               "Exits with 12 if this is undecided: the interval of a cell is too wide, a cell\n"
               "has different injected delays in the two results, an accuracy is uncertain, a\n"
               "result is incomplete, or BASE has a training run or a cell that was not judged.\n"
               "Exits with 65 if a result has wrong data or a point without valid iterations.\n"
               "Exits with 76 if the results differ in the CPU model, usable cores, major\n"
               "version of the kernel, ranks, backend or MPI library. A value that is missing in\n"
               "one result differs from every known value. Host names and builds may differ.\n"
               "--vary ranks and --vary backend allow the ranks, or the backend and MPI library,\n"
               "to differ.\n"
               "Stored results were measured at different times, so compare cannot tell a change\n"
               "of the code from a change of the machine. `ddpbench gate` can: it runs pairs.\n"
               "--across compares results of any machines with the first result. It shows the\n"
               "ratio of each cell, the interval of this ratio, and the facts about the machines\n"
               "that differ. It gives no verdict and exits with 0.\n",
    .examples = "  ddpbench compare yesterday.json today.json\n"
                "  ddpbench compare --vary algorithm tree.json ring.json\n"
                "  ddpbench compare --across runner.json laptop.json cluster.json \\\n"
                "      --json ratios.json\n",
    .rows = rows,
    .values_bytes = sizeof(struct compare_values),
    .help_offset = offsetof(struct compare_values, help),
    .run = run,
};
