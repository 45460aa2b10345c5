/* `ddpbench help` prints help on the program, a command or a topic, or the manual page
 * (help_man.c). Help and manual page come from the same tables. */
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "plain.h"

struct help_values {
    bool man, help;
};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "man", 0, offsetof(struct help_values, man), NULL, NULL,
            "print the manual page (roff) of the whole program"),
    DDP_OPT(FLAG, "help", 'h', offsetof(struct help_values, help), NULL, NULL, "this text"),
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

void ddp_help_program(FILE *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_strbuf_add(
        &text, "ddpbench measures how fast data-parallel ranks exchange gradients, and whether a\n"
               "compressed exchange makes training faster\n\n"
               "usage: ddpbench COMMAND [OPTION...]\n"
               "       mpiexec -n N ddpbench COMMAND [OPTION...]\n\n"
               "commands:\n");
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        add_entry(&text, (*c)->name, 18, (*c)->summary);
    ddp_strbuf_add(
        &text,
        "\n"
        "`ddpbench COMMAND -h` lists the options of a command. `ddpbench help TOPIC` explains\n"
        "environment, units or exit-codes. `ddpbench --version` prints the version.\n");
    print_strbuf(&text, out);
}

void ddp_help_command(const struct ddp_cmd *cmd, FILE *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_strbuf_addf(&text, "usage: ddpbench %s [OPTION...]%s%s\n", cmd->name,
                    cmd->operands[0] ? " " : "", cmd->operands);
    ddp_text_wrap(&text, 0, 0, 80, cmd->summary);
    for (const char *const *a = cmd->aliases; a && *a; a++)
        ddp_strbuf_addf(&text, "%s%s", a == cmd->aliases ? "also: " : ", ", *a);
    ddp_strbuf_add(&text, cmd->aliases ? "\n\n" : "\n");
    struct ddp_strbuf options = DDP_STRBUF_INIT;
    ddp_opt_help(cmd->rows, &options);
    if (options.text)
        ddp_strbuf_add(&text, options.text);
    text.failed |= options.failed;
    ddp_strbuf_release(&options);
    if (cmd->details) {
        size_t n = strlen(cmd->details);
        ddp_strbuf_addf(&text, "\n%s%s", cmd->details,
                        n > 0 && cmd->details[n - 1] == '\n' ? "" : "\n");
    }
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

static const struct {
    const char *name;
    void (*print)(FILE *out);
} topics[] = {
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

static int print_topic(FILE *out, const char *topic, struct ddp_err *err)
{
    const struct ddp_cmd *cmd = ddp_command_find(topic);
    if (cmd) {
        ddp_help_command(cmd, out);
        return 0;
    }
    for (size_t i = 0; i < DDP_COUNT_OF(topics); i++) {
        if (strcmp(topic, topics[i].name) == 0) {
            topics[i].print(out);
            return 0;
        }
    }
    return ddp_refuse_operand("help on", topic, ddp_help_topic, NULL, err);
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct help_values *v = values;
    if (v->man && parsed->operand_count > 0)
        return ddp_fail(err, DDP_EUSAGE,
                        "--man prints the whole manual; unexpected argument '%.64s'",
                        parsed->operands[0]);
    if (parsed->operand_count > 1)
        return ddp_fail(err, DDP_EUSAGE, "help takes one topic; unexpected argument '%.64s'",
                        parsed->operands[1]);
    if (v->man)
        ddp_help_man(app->out);
    else if (parsed->operand_count == 1)
        return print_topic(app->out, parsed->operands[0], err);
    else
        ddp_help_program(app->out);
    return 0;
}

const struct ddp_cmd ddp_cmd_help = {
    .name = "help",
    .summary = "this overview, a command's options, or a topic",
    .operands = "[COMMAND|environment|units|exit-codes]",
    .rows = rows,
    .values_bytes = sizeof(struct help_values),
    .help_offset = offsetof(struct help_values, help),
    .run = run,
};
