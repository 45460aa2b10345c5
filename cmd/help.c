/* `ddpbench help` prints help on the program, a command or a topic, or the manual page.
 * Help and manual page come from the same tables. */
#include <limits.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "plain.h"
#include "record/provenance.h"

struct help_values {
    bool man, help;
};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "man", 0, offsetof(struct help_values, man), NULL, NULL,
            "print the manual page (roff) of the whole program",
            .brief = "print the manual page (roff)"),
    DDP_OPT_INCLUDE(ddp_help_rows, offsetof(struct help_values, help)),
    DDP_OPT_END,
};

/* Prints and releases the text. Prints nothing if memory ran out while the text was written. */
static void print_strbuf(struct ddp_strbuf *text, FILE *out)
{
    if (text->text && !text->failed)
        fputs(text->text, out);
    ddp_strbuf_release(text);
}

/* Appends a name and a text. The text begins at `column` and is wrapped at 80 columns. */
static void add_entry(struct ddp_strbuf *out, const char *name, size_t column, const char *text)
{
    size_t start = out->length;
    ddp_strbuf_addf(out, "  %s", name);
    size_t used = out->length - start;
    ddp_strbuf_pad(out, used + 2 > column ? 2 : column - used);
    ddp_text_wrap(out, column, column, 80, text);
}

static const struct {
    enum ddp_cmd_group group;
    const char *heading;
} groups[] = {{DDP_CMD_MEASURE, "Measure"},
              {DDP_CMD_TRAIN, "Train"},
              {DDP_CMD_JUDGE, "Judge"},
              {DDP_CMD_INSPECT, "Inspect"}};

void ddp_help_program(FILE *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_strbuf_add(
        &text, "Examples:\n"
               "  ddpbench doctor                                          # check the machine\n"
               "  ddpbench allreduce --size 64K,64M                        # measure\n"
               "  ddpbench train --dataset synthetic --compare dense,fp16  # train and compare\n"
               "  ddpbench compare old.json new.json                       # is new slower?\n"
               "\n"
               "ddpbench measures how fast data-parallel ranks exchange gradients, and whether a\n"
               "compressed exchange makes training faster.\n"
               "\n"
               "usage: ddpbench COMMAND [OPTION...]\n"
               "       mpiexec -n N ddpbench COMMAND [OPTION...]\n");
    for (size_t g = 0; g < DDP_COUNT_OF(groups); g++) {
        ddp_strbuf_addf(&text, "\n%s:\n", groups[g].heading);
        for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
            if ((*c)->group == groups[g].group)
                add_entry(&text, (*c)->name, 18, (*c)->summary);
    }
    ddp_strbuf_add(&text, "\n"
                          "`ddpbench COMMAND -h` shows the options that people use most, and\n"
                          "`ddpbench COMMAND --help` all of them. `ddpbench help TOPIC` explains\n"
                          "environment, units or exit-codes.\n");
    print_strbuf(&text, out);
}

/* Appends the first `most` examples. */
static void add_examples(struct ddp_strbuf *out, const char *examples, int most)
{
    const char *end = examples;
    int count = 0;
    while (*end && count < most) {
        const size_t n = strcspn(end, "\n");
        const bool goes_on = n > 0 && end[n - 1] == '\\';
        end += n + (end[n] == '\n');
        count += !goes_on;
    }
    ddp_strbuf_addf(out, "\n%s:\n", count == 1 ? "Example" : "Examples");
    ddp_strbuf_add_n(out, examples, (size_t)(end - examples));
}

/* Appends what the short page has below the head. */
static void add_short_page(struct ddp_strbuf *out, const struct ddp_cmd *cmd)
{
    struct ddp_opt row;
    int count = 0;
    while (ddp_opt_get(cmd->rows, count, &row))
        count++;
    ddp_strbuf_add(out, "Options:\n");
    ddp_opt_help_brief(cmd->rows, out);
    if (cmd->examples)
        add_examples(out, cmd->examples, 2);
    ddp_strbuf_addf(out, "\n`ddpbench %s --help` ", cmd->name);
    if (count > 1)
        ddp_strbuf_addf(out, "has all %d options and more.\n", count);
    else
        ddp_strbuf_add(out, "has more.\n");
}

/* Appends what the long page has below the head. */
static void add_long_page(struct ddp_strbuf *out, const struct ddp_cmd *cmd)
{
    struct ddp_strbuf options = DDP_STRBUF_INIT;
    ddp_opt_help(cmd->rows, &options);
    if (options.text)
        ddp_strbuf_add(out, options.text);
    out->failed |= options.failed;
    ddp_strbuf_release(&options);
    if (cmd->details) {
        size_t n = strlen(cmd->details);
        ddp_strbuf_addf(out, "\n%s%s", cmd->details,
                        n > 0 && cmd->details[n - 1] == '\n' ? "" : "\n");
    }
    if (cmd->examples)
        add_examples(out, cmd->examples, INT_MAX);
}

void ddp_help_command(const struct ddp_cmd *cmd, enum ddp_help_page page, FILE *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_strbuf_addf(&text, "usage: ddpbench %s [OPTION...]%s%s\n", cmd->name,
                    cmd->operands[0] ? " " : "", cmd->operands);
    ddp_text_wrap(&text, 0, 0, 80, cmd->summary);
    for (const char *const *a = cmd->aliases; a && *a; a++)
        ddp_strbuf_addf(&text, "%s%s", a == cmd->aliases ? "also: " : ", ", *a);
    ddp_strbuf_add(&text, cmd->aliases ? "\n\n" : "\n");
    if (page == DDP_HELP_SHORT)
        add_short_page(&text, cmd);
    else
        add_long_page(&text, cmd);
    print_strbuf(&text, out);
}

static void print_environment(FILE *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    const struct ddp_conf_row *conf = ddp_conf_rows();
    ddp_strbuf_add(&text,
                   "Environment variables (any other that begins with DDPBENCH_ is an error):\n");
    for (int i = 0; i < DDP_CONF_COUNT; i++)
        add_entry(&text, conf[i].variable, 26, conf[i].help);
    add_entry(&text, "NO_COLOR", 26, "no colours on a terminal");
    ddp_strbuf_add(&text,
                   "\n"
                   "A launcher (mpiexec, srun, torchrun) tells each rank its number by variables;\n"
                   "`ddpbench doctor` shows those that are set.\n");
    print_strbuf(&text, out);
}

static void print_units(FILE *out)
{
    fputs(ddp_units_text, out);
}

/* Prints n bytes of a line, with roff's special characters escaped. */
static void put_escaped(FILE *out, const char *text, size_t n)
{
    if (n > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '`')
            fputs("\\(ga", out);
        else if (text[i] == '~')
            fputs("\\(ti", out);
        else if (text[i] == '^')
            fputs("\\(ha", out);
        else
            fputc(text[i], out);
    }
}

static void put_styled(FILE *out, const char *font, const char *text)
{
    fprintf(out, "\\f%s", font);
    put_escaped(out, text, strlen(text));
    fputs("\\fR", out);
}

/* Prints a paragraph in short lines, because escaping makes them longer. */
static void put_text(FILE *out, const char *text)
{
    struct ddp_strbuf wrapped = DDP_STRBUF_INIT;
    ddp_text_wrap(&wrapped, 0, 0, 68, text);
    for (const char *line = wrapped.failed ? "" : wrapped.text; *line;) {
        size_t n = strcspn(line, "\n");
        put_escaped(out, line, n);
        fputc('\n', out);
        line += n + (line[n] == '\n');
    }
    ddp_strbuf_release(&wrapped);
}

/* Prints text with its line breaks kept. An empty line separates paragraphs. */
static void put_lines(FILE *out, const char *text)
{
    fputs(".nf\n", out);
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (n == 0)
            fputs(".sp\n", out);
        else {
            put_escaped(out, text, n);
            fputc('\n', out);
        }
        text += n + (text[n] == '\n');
    }
    fputs(".fi\n", out);
}

static void put_entry(FILE *out, const char *name, const char *text)
{
    fputs(".TP\n", out);
    put_styled(out, "B", name);
    fputc('\n', out);
    put_text(out, text);
}

static void put_option(FILE *out, const struct ddp_opt *row)
{
    fputs(".TP\n", out);
    if (row->short_name)
        fprintf(out, "\\fB\\-%c\\fR, ", row->short_name);
    fputs("\\fB\\-\\-\\fR", out);
    put_styled(out, "B", row->name);
    if (row->value) {
        fputc(' ', out);
        put_styled(out, "I", row->value);
    }
    fputc('\n', out);
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_opt_describe(row, &text);
    put_text(out, text.failed ? row->help : text.text);
    ddp_strbuf_release(&text);
}

static void put_command(FILE *out, const struct ddp_cmd *cmd)
{
    fputs(".SS ", out);
    put_escaped(out, cmd->name, strlen(cmd->name));
    fputs("\n\\fBddpbench ", out);
    put_escaped(out, cmd->name, strlen(cmd->name));
    fputs("\\fR [\\fIOPTION\\fR...]", out);
    if (cmd->operands[0]) {
        fputc(' ', out);
        put_escaped(out, cmd->operands, strlen(cmd->operands));
    }
    fputs("\n.PP\n", out);
    put_text(out, cmd->summary);
    struct ddp_opt row;
    for (int i = 0; ddp_opt_get(cmd->rows, i, &row); i++)
        put_option(out, &row);
    if (cmd->details) {
        fputs(".PP\n", out);
        put_lines(out, cmd->details);
    }
    if (cmd->examples) {
        fputs(".PP\nExamples:\n", out);
        put_lines(out, cmd->examples);
    }
}

/* Prints the head of the page. The date stays empty, so that one build always prints the same page.
 */
static void put_head(FILE *out)
{
    fprintf(out,
            ".TH DDPBENCH 1 \"\" \"ddpbench %s\" \"User Commands\"\n"
            ".SH NAME\n"
            "ddpbench \\- measure the gradient exchange of data\\-parallel training\n"
            ".SH SYNOPSIS\n"
            ".B ddpbench\n"
            ".I COMMAND\n"
            "[\\fIOPTION\\fR...]\n"
            ".br\n"
            ".B mpiexec \\-n\n"
            ".I N\n"
            ".B ddpbench\n"
            ".I COMMAND\n"
            "[\\fIOPTION\\fR...]\n"
            ".SH DESCRIPTION\n",
            ddp_build_info()->version);
    put_text(out, "Measures how fast gradients are exchanged between the ranks of this machine or "
                  "cluster, and trains real networks data-parallel with the same engine. Results "
                  "are verified, medians have intervals, and waits have deadlines. "
                  "Without mpiexec, ddpbench starts its own ranks over shared memory.");
    fputs(".PP\n", out);
    put_text(out, "Data goes to stdout, everything else to stderr. Options cannot be abbreviated; "
                  "--name value and --name=value are the same, as are -n 5 and -n5.");
}

/* Prints the whole manual page, ddpbench.1, in man(7) macros, from the same tables as the help.
 * `mandoc -T lint` must report nothing. */
static void print_man(FILE *out)
{
    put_head(out);
    fputs(".SH COMMANDS\n", out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        put_command(out, *c);
    fputs(".SH SIZES AND UNITS\n", out);
    put_lines(out, ddp_units_text);
    fputs(".SH ENVIRONMENT\n", out);
    put_text(out, "Any other variable that begins with DDPBENCH_ is an error.");
    for (int i = 0; i < DDP_CONF_COUNT; i++)
        put_entry(out, ddp_conf_rows()[i].variable, ddp_conf_rows()[i].help);
    put_entry(out, "NO_COLOR", "no colours on a terminal");
    fputs(".SH FILES\n", out);
    put_entry(
        out, "ddpbench-mpi-openmpi.so, ddpbench-mpi-mpich.so",
        "each connects the program to one MPI library; beside the binary or in ../lib/ddpbench");
    fputs(".SH EXIT STATUS\n", out);
    for (const struct ddp_exit_row *r = ddp_exit_rows(); r->meaning; r++) {
        char code[16];
        snprintf(code, sizeof code, "%d", r->code);
        put_entry(out, code, r->meaning);
    }
    put_entry(out, "128+n", "ended by signal n");
    fputs(".SH SEE ALSO\n.BR mpiexec (1)\n", out);
}

static const struct ddp_topic topics[] = {
    {"environment", print_environment},
    {"units", print_units},
    {"exit-codes", ddp_exit_print},
};

/* Returns the i-th topic. The commands come first, then the other topics. */
const char *ddp_help_topic(const void *ctx, int i)
{
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        if (i-- == 0)
            return (*c)->name;
    return i < (int)DDP_COUNT_OF(topics) ? topics[i].name : NULL;
}

int ddp_help_print_topic(const char *topic, enum ddp_help_page page, FILE *out, struct ddp_err *err)
{
    const struct ddp_cmd *cmd = ddp_command_find(topic);
    if (cmd) {
        ddp_help_command(cmd, page, out);
        return 0;
    }
    if (ddp_topic_print(topics, DDP_COUNT_OF(topics), topic, out))
        return 0;
    ddp_fail(err, DDP_EUSAGE, "no help on '%.64s'", topic);
    return ddp_hint_nearest(err, topic, ddp_help_topic, NULL,
                            "`ddpbench help` lists the commands and topics");
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct help_values *v = values;
    if (v->man && parsed->operand_count > 0)
        return ddp_fail(err, DDP_EUSAGE,
                        "--man prints the whole manual; unexpected argument '%.64s'",
                        parsed->operands[0]);
    DDP_TRY(ddp_check_operands(app, parsed, 1, "one topic", err));
    if (v->man)
        print_man(app->out);
    else if (parsed->operand_count == 1)
        return ddp_help_print_topic(parsed->operands[0], DDP_HELP_LONG, app->out, err);
    else
        ddp_help_program(app->out);
    return 0;
}

const struct ddp_cmd ddp_cmd_help = {
    .name = "help",
    .summary = "this overview, a command's options, or a topic",
    .operands = "[COMMAND|environment|units|exit-codes]",
    .examples = "  ddpbench help allreduce\n"
                "  ddpbench help exit-codes\n",
    .rows = rows,
    .values_bytes = sizeof(struct help_values),
    .help_offset = offsetof(struct help_values, help),
    .run = run,
};
