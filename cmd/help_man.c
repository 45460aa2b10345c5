/* Prints the manual page in man(7) macros, from the same tables as the help. `mandoc -T lint` must
 * report nothing. */
#include <string.h>

#include "base/conf.h"
#include "plain.h"
#include "record/provenance.h"

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

void ddp_help_man(FILE *out)
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
