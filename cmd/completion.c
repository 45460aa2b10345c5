/* `ddpbench completion` prints a shell's completion script. The script is generated from the option
 * tables, so it always agrees with the help. */
#include <string.h>

#include "base/mem.h"
#include "plain.h"

static void put_commands(FILE *out)
{
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        fprintf(out, "%s%s", c == ddp_commands() ? "" : " ", (*c)->name);
}

static void put_options(FILE *out, const struct ddp_cmd *cmd)
{
    struct ddp_opt row;
    for (int i = 0; ddp_opt_get(cmd->rows, i, &row); i++)
        fprintf(out, "%s--%s", i ? " " : "", row.name);
}

static void put_choices(FILE *out, const struct ddp_opt *row)
{
    for (int i = 0; ddp_opt_choice(row, i); i++)
        fprintf(out, "%s%s", i ? " " : "", ddp_opt_choice(row, i));
}

/* Prints a case for each option that has choices: "'COMMAND --OPTION') BEFORE CHOICES AFTER". */
static void put_cases(FILE *out, const char *indent, const char *before, const char *after)
{
    struct ddp_opt row;
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        for (int i = 0; ddp_opt_get((*c)->rows, i, &row); i++) {
            if (!ddp_opt_choice(&row, 0))
                continue;
            fprintf(out, "%s'%s --%s') %s", indent, (*c)->name, row.name, before);
            put_choices(out, &row);
            fputs(after, out);
        }
    }
}

/* Prints a command's pattern for a case statement: its name and aliases. */
static void put_names(FILE *out, const struct ddp_cmd *cmd)
{
    fputs(cmd->name, out);
    for (const char *const *a = cmd->aliases; a && *a; a++)
        fprintf(out, "|%s", *a);
}

/* Prints text for use between single quotes in a shell script. A quote becomes '\''. */
static void put_quoted(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

static const char *shell_name(const void *ctx, int i);

/* Prints those operands of a command that the shell can complete. */
static void put_operands(FILE *out, const struct ddp_cmd *cmd)
{
    static const struct {
        const char *command;
        const char *(*operand)(const void *ctx, int i);
    } table[] = {
        {"completion", shell_name},    {"explain", ddp_explain_topic}, {"help", ddp_help_topic},
        {"kernels", ddp_kernels_flag}, {"list", ddp_list_kind},
    };
    for (size_t t = 0; t < DDP_COUNT_OF(table); t++)
        for (int i = 0; strcmp(table[t].command, cmd->name) == 0 && table[t].operand(NULL, i); i++)
            fprintf(out, " %s", table[t].operand(NULL, i));
}

static void print_bash(FILE *out)
{
    fputs("# ddpbench completion for bash\n"
          "_ddpbench() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        words=\"",
          out);
    put_commands(out);
    fputs(" --version --help\"\n"
          "    else\n"
          "        case \"${COMP_WORDS[1]} $prev\" in\n",
          out);
    put_cases(out, "        ", "words=\"", "\" ;;\n");
    fputs("        *)\n"
          "            case ${COMP_WORDS[1]} in\n",
          out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fputs("            ", out);
        put_names(out, *c);
        fputs(") words=\"", out);
        put_options(out, *c);
        put_operands(out, *c);
        fputs("\" ;;\n", out);
    }
    fputs("            esac ;;\n"
          "        esac\n"
          "    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "}\n"
          "complete -o default -F _ddpbench ddpbench\n",
          out);
}

/* Prints name:description for zsh's _describe, where the first colon ends the name. */
static void put_zsh_entry(FILE *out, const char *dashes, const char *name, const char *text)
{
    fprintf(out, " '%s%s:", dashes, name);
    put_quoted(out, text);
    fputc('\'', out);
}

static void print_zsh(FILE *out)
{
    struct ddp_opt row;
    fputs("#compdef ddpbench\n"
          "_ddpbench() {\n"
          "    local -a entries\n"
          "    if ((CURRENT == 2)); then\n"
          "        entries=(",
          out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        put_zsh_entry(out, "", (*c)->name, (*c)->summary);
    fputs(")\n"
          "        _describe command entries\n"
          "        return\n"
          "    fi\n"
          "    case \"${words[2]} ${words[CURRENT-1]}\" in\n",
          out);
    put_cases(out, "    ", "compadd -- ", "; return ;;\n");
    fputs("    esac\n"
          "    case ${words[2]} in\n",
          out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fputs("    ", out);
        put_names(out, *c);
        fputs(") entries=(", out);
        for (int i = 0; ddp_opt_get((*c)->rows, i, &row); i++)
            put_zsh_entry(out, "--", row.name, row.help);
        fputs("); compadd --", out);
        put_operands(out, *c);
        fputs(" ;;\n", out);
    }
    fputs("    esac\n"
          "    _describe option entries\n"
          "    _files\n"
          "}\n"
          "_ddpbench \"$@\"\n",
          out);
}

static void print_fish(FILE *out)
{
    struct ddp_opt row;
    fputs("# ddpbench completion for fish\n", out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fprintf(out, "complete -c ddpbench -n __fish_use_subcommand -a %s -d '", (*c)->name);
        put_quoted(out, (*c)->summary);
        fprintf(out, "'\ncomplete -c ddpbench -f -n '__fish_seen_subcommand_from %s' -a '",
                (*c)->name);
        put_operands(out, *c);
        fputs("'\n", out);
        for (int i = 0; ddp_opt_get((*c)->rows, i, &row); i++) {
            fprintf(out, "complete -c ddpbench -n '__fish_seen_subcommand_from %s' -l %s",
                    (*c)->name, row.name);
            if (row.short_name)
                fprintf(out, " -s %c", row.short_name);
            if (ddp_opt_choice(&row, 0)) {
                fputs(" -x -a '", out);
                put_choices(out, &row);
                fputc('\'', out);
            } else if (row.kind != DDP_OPT_FLAG) {
                fputs(" -r", out);
            }
            fputs(" -d '", out);
            put_quoted(out, row.help);
            fputs("'\n", out);
        }
    }
}

static const struct ddp_topic shells[] = {
    {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

static const char *shell_name(const void *ctx, int i)
{
    return i < (int)DDP_COUNT_OF(shells) ? shells[i].name : NULL;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    if (parsed->operand_count == 0)
        return ddp_refuse_operand("shell", NULL, shell_name, NULL, err);
    DDP_TRY(ddp_check_operands(app, parsed, 1, "one shell", err));
    if (ddp_topic_print(shells, DDP_COUNT_OF(shells), parsed->operands[0], app->out))
        return 0;
    return ddp_refuse_operand("completion for", parsed->operands[0], shell_name, NULL, err);
}

const struct ddp_cmd ddp_cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for bash, zsh or fish",
    .operands = "SHELL",
    .details = "bash: write the output to ~/.local/share/bash-completion/completions/ddpbench\n"
               "zsh:  write the output to a file _ddpbench in a folder of $fpath\n"
               "fish: write the output to ~/.config/fish/completions/ddpbench.fish\n",
    .examples = "  ddpbench completion bash >~/.local/share/bash-completion/completions/ddpbench\n",
    .rows = ddp_plain_rows,
    .values_bytes = sizeof(struct ddp_plain_values),
    .help_offset = offsetof(struct ddp_plain_values, help),
    .run = run,
};
