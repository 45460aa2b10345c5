/* `ddpbench show` prints stored results again. */
#include <string.h>

#include "cmd.h"
#include "report/report_show.h"
#include "run/outputs.h"

struct show_values {
    const char *format, *output;
    int plot;
    bool edited, wide, verbose, help;
};

#define AT(member) offsetof(struct show_values, member)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Results"),
    DDP_OPT(FLAG, "edited", 0, AT(edited), NULL, NULL,
            "accept results that were changed after they were written", .brief = ""),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(STRING, "format", 0, AT(format), "NAME", "table",
            "output format; see `ddpbench list reporters`", .offer = ddp_offer_format, .brief = ""),
    DDP_OPT(STRING, "output", 'o', AT(output), "FILE", "-", "write to this file (- for stdout)",
            .brief = ""),
    DDP_OPT(FLAG, "wide", 0, AT(wide), NULL, NULL,
            "show all columns of the table, as in a pipe, and do not fit it to the terminal",
            .brief = "show all columns of the table"),
    DDP_OPT_INCLUDE(ddp_plot_rows, AT(plot)),
    DDP_OPT(FLAG, "verbose", 'v', AT(verbose), NULL, NULL,
            "say what the columns of the table mean"),
    DDP_OPT_INCLUDE(ddp_help_rows, AT(help)),
    DDP_OPT_END,
};

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct show_values *v = values;
    const struct ddp_reporter *reporter;
    (void)app;
    if (parsed->operand_count == 0) {
        ddp_fail(err, DDP_EUSAGE, "show takes one or more results");
        return ddp_hint(err, "ddpbench show result.json");
    }
    DDP_TRY(ddp_outputs_find(v->format, &reporter, err));
    DDP_TRY(ddp_outputs_check_plot(v->plot, strcmp(reporter->name, "table") == 0, err));
    const struct ddp_show_request request = {
        .paths = parsed->operands,
        .count = (size_t)parsed->operand_count,
        .rules = {.accept_edited = v->edited},
        .reporter = reporter,
        .output = v->output,
        .table = {.wide = v->wide, .legend = v->verbose, .plot = v->plot},
    };
    return ddp_show(&request, err);
}

const struct ddp_cmd ddp_cmd_show = {
    .name = "show",
    .summary = "print stored results again, in any format",
    .operands = "FILE...",
    .details = "A result is a file that `--json FILE` wrote. It holds a measurement, a training\n"
               "run, a sweep or a verdict. The table, CSV and Markdown are the same as those of\n"
               "the command that wrote the result.\n"
               "A result that was changed after it was written is refused, unless --edited is\n"
               "given. Several results follow each other, and their points share the plots. The\n"
               "formats json, junit, gbench and those of github-action-benchmark take only one.\n"
               "The exit code says nothing about the verdict of a result.\n",
    .examples = "  ddpbench show result.json\n"
                "  ddpbench show monday.json friday.json --plot busbw\n"
                "  ddpbench show result.json --format markdown -o result.md\n"
                "  ddpbench show monday.json friday.json --format csv\n",
    .rows = rows,
    .values_bytes = sizeof(struct show_values),
    .help_offset = offsetof(struct show_values, help),
    .run = run,
};
