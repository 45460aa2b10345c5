/* help: of the program, of one command, of a topic; and the man page, all from the same tables. */
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cmd.h"
#include "record/provenance.h"

struct help_values {
    bool man, help;
};

static const struct ddp_opt rows[] = {
    {"man", 0, DDP_OPT_FLAG, offsetof(struct help_values, man), NULL, NULL, "Output",
     "print the manual page (roff) of the whole program", 0, 0, NULL, NULL, NULL},
    {"help", 'h', DDP_OPT_FLAG, offsetof(struct help_values, help), NULL, NULL, "Output",
     "this text", 0, 0, NULL, NULL, NULL},
    DDP_OPT_END};

/* What each exit code means: the one table of them for people. */
static const struct {
    int code;
    const char *meaning;
} exit_codes[] = {
    {0, "success"},
    {10, "regression: the new one is slower"},
    {11, "a collective delivered wrong data"},
    {12, "inconclusive"},
    {13, "a rank was lost or hung; finished points are saved"},
    {64, "wrong command line"},
    {65, "malformed input file"},
    {66, "missing input file"},
    {69, "a needed library or device is absent"},
    {70, "internal error"},
    {71, "not enough memory"},
    {73, "an output file cannot be created"},
    {74, "input or output error"},
    {76, "ranks, hosts or builds disagree (also: N worlds of one rank)"},
    {77, "permission denied"},
    {78, "illegal configuration file"},
};

static const char units_text[] =
    "Sizes: 64M = 64MiB = 64*2^20 bytes; 64MB = 64e6 bytes; 1e6; suffixes k K M G T (Ki KiB ...) "
    "are\n"
    "powers of 1024, kB MB GB TB powers of 1000. Bandwidth: 1 GB/s = 1e9 bytes a second.\n"
    "Times in tables are microseconds. `ddpbench explain busbw` derives the bandwidths.\n";

void ddp_help_program(FILE *out)
{
    fputs("ddpbench: measures and diagnoses how data-parallel training exchanges gradients\n\n"
          "usage: ddpbench COMMAND [OPTION...]\n"
          "       mpiexec -n N ddpbench COMMAND [OPTION...]\n\ncommands:\n",
          out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        fprintf(out, "  %-14s %s\n", (*c)->name, (*c)->summary);
    fputs("\nddpbench help COMMAND|environment|units|exit-codes; ddpbench COMMAND -h\n", out);
}

void ddp_help_command(const struct ddp_cmd *cmd, FILE *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    fprintf(out, "usage: ddpbench %s [OPTION...]%s%s\n%s\n", cmd->name, cmd->operands[0] ? " " : "",
            cmd->operands, cmd->summary);
    for (const char *const *a = cmd->aliases; a && *a; a++)
        fprintf(out, "%s%s", a == cmd->aliases ? "also: " : ", ", *a);
    if (cmd->aliases)
        fputc('\n', out);
    ddp_opt_help(cmd->rows, &text);
    fputs(text.text ? text.text : "", out);
    if (cmd->details)
        fprintf(out, "\n%s", cmd->details);
    ddp_strbuf_release(&text);
}

static void print_environment(FILE *out)
{
    const struct ddp_conf_row *conf = ddp_conf_rows();
    for (int i = 0; i < DDP_CONF_COUNT; i++)
        fprintf(out, "  %-22s %s\n", conf[i].variable, conf[i].help);
    fputs("  NO_COLOR               no colours on a terminal\n", out);
}

static void print_exit_codes(FILE *out)
{
    for (size_t i = 0; i < DDP_COUNT_OF(exit_codes); i++)
        fprintf(out, "  %3d  %s\n", exit_codes[i].code, exit_codes[i].meaning);
    fputs("  128+n  ended by signal n\n", out);
}

/* Text in roff: backslashes and leading dots or quotes escaped. */
static void roff(FILE *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        bool line_start = p == text || p[-1] == '\n';
        if (line_start && (*p == '.' || *p == '\''))
            fputs("\\&", out);
        if (*p == '\\')
            fputs("\\e", out);
        else if (*p == '-')
            fputs("\\-", out);
        else
            fputc(*p, out);
    }
}

static void man_option(FILE *out, const struct ddp_opt *row)
{
    fputs(".TP\n", out);
    if (row->short_name)
        fprintf(out, "\\fB\\-%c\\fR, ", row->short_name);
    fputs("\\fB\\-\\-", out);
    roff(out, row->name);
    fputs("\\fR", out);
    if (row->value) {
        fputs(" \\fI", out);
        roff(out, row->value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    roff(out, row->help);
    if (row->words) {
        fputs(": ", out);
        for (int i = 0; row->words->word(i); i++) {
            fputs(i ? ", " : "", out);
            roff(out, row->words->word(i));
        }
    }
    if (row->initial && row->kind != DDP_OPT_FLAG) {
        fputs(" (default ", out);
        roff(out, row->initial);
        fputs(")", out);
    }
    fputc('\n', out);
}

static void print_man(FILE *out)
{
    fprintf(
        out,
        ".TH DDPBENCH 1 \"\" \"ddpbench %s\" \"User Commands\"\n.SH NAME\nddpbench \\- measure and "
        "diagnose "
        "gradient exchange of data-parallel training\n.SH SYNOPSIS\n.B ddpbench\n.I "
        "COMMAND\n[\\fIOPTION\\fR...]\n"
        ".br\n.B mpiexec \\-n\n.I N\n.B ddpbench\n.I COMMAND\n[\\fIOPTION\\fR...]\n.SH COMMANDS\n",
        ddp_build_info()->version);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fputs(".SS ", out);
        roff(out, (*c)->name);
        fputc('\n', out);
        roff(out, (*c)->summary);
        fputs(".\n", out);
        for (const struct ddp_opt *r = (*c)->rows; r->name; r++)
            man_option(out, r);
    }
    fputs(".SH ENVIRONMENT\n", out);
    for (int i = 0; i < DDP_CONF_COUNT; i++) {
        fprintf(out, ".TP\n.B %s\n", ddp_conf_rows()[i].variable);
        roff(out, ddp_conf_rows()[i].help);
        fputc('\n', out);
    }
    fputs(".TP\n.B NO_COLOR\nno colours on a terminal\n.SH EXIT STATUS\n", out);
    for (size_t i = 0; i < DDP_COUNT_OF(exit_codes); i++) {
        fprintf(out, ".TP\n.B %d\n", exit_codes[i].code);
        roff(out, exit_codes[i].meaning);
        fputc('\n', out);
    }
    fputs(".TP\n.B 128+n\nended by signal n\n", out);
}

static const char *topic_word(const void *ctx, int i)
{
    static const char *const topics[] = {"environment", "units", "exit-codes"};
    (void)ctx;
    if (i < (int)DDP_COUNT_OF(topics))
        return topics[i];
    const struct ddp_cmd *c = ddp_commands()[i - (int)DDP_COUNT_OF(topics)];
    return c ? c->name : NULL;
}

static int print_topic(FILE *out, const char *topic, struct ddp_err *err)
{
    const struct ddp_cmd *cmd = ddp_command_find(topic);
    if (cmd) {
        ddp_help_command(cmd, out);
    } else if (strcmp(topic, "environment") == 0) {
        print_environment(out);
    } else if (strcmp(topic, "units") == 0) {
        fputs(units_text, out);
    } else if (strcmp(topic, "exit-codes") == 0) {
        print_exit_codes(out);
    } else {
        const char *near = ddp_nearest(topic, topic_word, NULL);
        ddp_fail(err, DDP_EUSAGE, "no help on '%s'", topic);
        return ddp_hint(err, "%s%s%stopics: any command, environment, units, exit-codes",
                        near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
    }
    return 0;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct help_values *v = values;
    if (v->man)
        print_man(app->out);
    else if (parsed->operand_count == 0)
        ddp_help_program(app->out);
    for (int i = 0; i < parsed->operand_count && !v->man; i++)
        DDP_TRY(print_topic(app->out, parsed->operands[i], err));
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
