/* `ddpbench report` writes a page about stored results. */
#include <string.h>

#include "cmd.h"
#include "report/page.h"
#include "run/outputs.h"

enum report_format { FORMAT_AUTO, FORMAT_HTML, FORMAT_MARKDOWN };
static const char *const format_names[] = {"auto", "html", "markdown", NULL};

struct report_values {
    const char *output, *svg;
    int format;
    struct ddp_int_list vary;
    bool edited, help;
};

#define AT(member) offsetof(struct report_values, member)

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Results"),
    DDP_OPT_INCLUDE(ddp_vary_rows, AT(vary)),
    DDP_OPT(FLAG, "edited", 0, AT(edited), NULL, NULL,
            "accept results that were changed after they were written"),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(STRING, "output", 'o', AT(output), "FILE", NULL, "write the page (- for stdout)",
            .brief = "write the page to FILE (- for stdout)"),
    DDP_OPT(ENUM, "format", 0, AT(format), "NAME", "auto",
            "format of the page; auto: markdown if the name of the file ends in .md, else html",
            .choices = format_names, .brief = "html or markdown"),
    DDP_OPT(STRING, "svg", 0, AT(svg), "DIR", NULL,
            "write SVG files into this folder: one for each plot, and one for the table of each "
            "document; "
            "the folder is made if it does not exist",
            .brief = "write plots and tables as SVG files to DIR"),
    DDP_OPT_INCLUDE(ddp_help_rows, AT(help)),
    DDP_OPT_END,
};

static bool is_markdown(const struct report_values *v)
{
    const size_t n = v->output ? strlen(v->output) : 0;
    return v->format == FORMAT_MARKDOWN ||
           (v->format == FORMAT_AUTO && n > 3 && strcmp(v->output + n - 3, ".md") == 0);
}

static int check(const struct report_values *v, const struct ddp_opt_result *parsed,
                 struct ddp_err *err)
{
    if (parsed->operand_count == 0) {
        ddp_fail(err, DDP_EUSAGE, "report takes one or more results");
        return ddp_hint(err, "ddpbench report result.json -o report.html");
    }
    if (!v->output && !v->svg) {
        ddp_fail(err, DDP_EUSAGE, "report needs --output or --svg");
        return ddp_hint(err, "ddpbench report %s -o report.html", parsed->operands[0]);
    }
    if (v->svg && is_markdown(v))
        return ddp_fail(err, DDP_EUSAGE,
                        "--svg cannot be combined with a page in Markdown; use --output FILE.html");
    return 0;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct report_values *v = values;
    (void)app;
    DDP_TRY(check(v, parsed, err));
    const struct ddp_page_request request = {
        .paths = parsed->operands,
        .count = (size_t)parsed->operand_count,
        .rules = {.vary = ddp_vary_set(&v->vary), .accept_edited = v->edited},
        .page = v->output,
        .markdown = is_markdown(v),
        .svg_dir = v->svg,
    };
    return ddp_page_write(&request, err);
}

const struct ddp_cmd ddp_cmd_report = {
    .name = "report",
    .summary = "write a page with plots and tables about stored results",
    .operands = "FILE...",
    .details = "The HTML page is one file that needs no network and no script. It has a summary\n"
               "in words, bandwidth and time over size and ranks, the break-even of\n"
               "compression, accuracy over seconds and bytes, verdicts, and the environment. A\n"
               "table stands under every plot. Doubtful points are hollow in plots and marked in\n"
               "tables. Several results are drawn into the same plots, with ratios to the first\n"
               "one.\n"
               "The Markdown page is for pull requests. It begins with the verdicts and the\n"
               "results that changed.\n"
               "Results are named by their labels or by their files. A result that is partial or\n"
               "has wrong data is shown, and the page says so.\n",
    .examples = "  ddpbench report result.json -o report.html\n"
                "  ddpbench report --vary backend shm.json mpi.json -o report.html --svg plots\n"
                "  ddpbench report gate.json -o comment.md\n",
    .rows = rows,
    .values_bytes = sizeof(struct report_values),
    .help_offset = offsetof(struct report_values, help),
    .run = run,
};
