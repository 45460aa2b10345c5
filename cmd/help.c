/* `ddpbench help` prints one of three things: (1) help on the program, a command or a topic, (2)
 * the manual page (--man), (3) the reference in Markdown (--markdown). All of them come from the
 * same tables. */
#include <limits.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "plain.h"

struct help_values {
    bool man, markdown, help;
};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "man", 0, offsetof(struct help_values, man), NULL, NULL,
            "print the manual page (roff) of the whole program",
            .brief = "print the manual page (roff)"),
    DDP_OPT(FLAG, "markdown", 0, offsetof(struct help_values, markdown), NULL, NULL,
            "print the reference of all commands, environment variables, exit codes and JSON keys "
            "as Markdown",
            .brief = "print the reference of everything"),
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

/* Appends a name and a text. The text begins at `column` and is wrapped at 80 columns. If the name
 * is too long for this, the text begins 2 spaces after the name. */
static void add_entry(struct ddp_strbuf *out, const char *name, int column, const char *text)
{
    size_t start = out->length;
    ddp_strbuf_addf(out, "  %s", name);
    int used = (int)(out->length - start);
    ddp_strbuf_pad(out, (size_t)(used + 2 > column ? 2 : column - used));
    ddp_strbuf_wrap_line(out, text, DDP_MAX(column, used + 2), 80, column);
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
                add_entry(&text, (*c)->name, 20, (*c)->summary);
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

/* Appends the part of the short page below its head. */
static void add_short_page(struct ddp_strbuf *out, const struct ddp_cmd *cmd)
{
    struct ddp_opt row;
    char text[200];
    int count = 0, shown = 0;
    for (; ddp_opt_get(cmd->rows, count, &row); count++)
        shown += row.brief != NULL;
    ddp_strbuf_add(out, "Options:\n");
    ddp_opt_help_brief(cmd->rows, out);
    if (cmd->examples)
        add_examples(out, cmd->examples, 2);
    if (shown < count)
        snprintf(text, sizeof text,
                 "This page shows %d of %d options. `ddpbench %s --help` shows all.", shown, count,
                 cmd->name);
    else
        snprintf(text, sizeof text,
                 "This page shows every option. `ddpbench %s --help` has the details.", cmd->name);
    ddp_strbuf_add(out, "\n");
    ddp_strbuf_wrap_line(out, text, 0, 80, 0);
}

/* Appends the part of the long page below its head. */
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
    ddp_strbuf_wrap_line(&text, cmd->summary, 0, 80, 0);
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
                   "A launcher (mpiexec, srun, torchrun, ...) tells each rank its number by\n"
                   "variables; `ddpbench doctor` shows those that are set.\n");
    print_strbuf(&text, out);
}

static void print_units(FILE *out)
{
    fputs(ddp_units_text, out);
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
    if (v->man && v->markdown)
        return ddp_fail(err, DDP_EUSAGE, "--man and --markdown contradict each other");
    if ((v->man || v->markdown) && parsed->operand_count > 0)
        return ddp_fail(err, DDP_EUSAGE, "--%s prints everything; unexpected argument '%.64s'",
                        v->man ? "man" : "markdown", parsed->operands[0]);
    DDP_TRY(ddp_check_operands(app, parsed, 1, "one topic", err));
    if (v->man)
        ddp_reference_man(app->out);
    else if (v->markdown)
        return ddp_reference_markdown(app->out, err);
    else if (parsed->operand_count == 1)
        return ddp_help_print_topic(parsed->operands[0], DDP_HELP_LONG, app->out, err);
    else
        ddp_help_program(app->out);
    return 0;
}

const struct ddp_cmd ddp_cmd_help = {
    .name = "help",
    .summary = "the list of commands, the options of a command, or a topic",
    .operands = "[COMMAND|environment|units|exit-codes]",
    .examples = "  ddpbench help allreduce\n"
                "  ddpbench help exit-codes\n",
    .rows = rows,
    .values_bytes = sizeof(struct help_values),
    .help_offset = offsetof(struct help_values, help),
    .run = run,
};
