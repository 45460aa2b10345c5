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

enum { VALUE_BYTES = 64 };

/* Writes the i-th value that completion offers for an option. Returns false past the last. */
static bool value_at(const struct ddp_cmd *cmd, const struct ddp_opt *row, int i, char *out)
{
    int count = 0;
    while (count <= i && ddp_opt_choice(row, count))
        count++;
    if (count > i)
        snprintf(out, VALUE_BYTES, "%s", ddp_opt_choice(row, i));
    else if (count > 0 && i == count && row->kind == DDP_OPT_ENUM_LIST)
        snprintf(out, VALUE_BYTES, "all");
    else
        return count == 0 && row->offer && row->offer(cmd->name, i, out, VALUE_BYTES);
    return true;
}

static bool has_values(const struct ddp_cmd *cmd, const struct ddp_opt *row)
{
    char value[VALUE_BYTES];
    return value_at(cmd, row, 0, value);
}

static void put_values(FILE *out, const struct ddp_cmd *cmd, const struct ddp_opt *row)
{
    char value[VALUE_BYTES];
    for (int i = 0; value_at(cmd, row, i, value); i++)
        fprintf(out, "%s%s", i ? " " : "", value);
}

/* Returns whether the value may be the name of a file or folder. */
static bool takes_file(const struct ddp_opt *row)
{
    return row->kind == DDP_OPT_STRING || row->kind == DDP_OPT_STRING_LIST;
}

/* Prints "'COMMAND --OPTION'", and "|'COMMAND -LETTER'" if the option has a letter. */
static void put_pattern(FILE *out, const struct ddp_cmd *cmd, const struct ddp_opt *row)
{
    fprintf(out, "'%s --%s'", cmd->name, row->name);
    if (row->short_name)
        fprintf(out, "|'%s -%c'", cmd->name, row->short_name);
}

/* Prints a branch of the shell's `case` for each option that takes a value. The branch calls a
 * shell function: _ddpbench_values with the values to offer or, if there are none, _ddpbench_files
 * or _ddpbench_nothing. */
static void put_cases(FILE *out, const char *indent)
{
    struct ddp_opt row;
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        for (int i = 0; ddp_opt_get((*c)->rows, i, &row); i++) {
            if (row.kind == DDP_OPT_FLAG)
                continue;
            fputs(indent, out);
            put_pattern(out, *c, &row);
            fputs(") ", out);
            if (has_values(*c, &row)) {
                fputs("_ddpbench_values ", out);
                put_values(out, *c, &row);
            } else {
                fputs(takes_file(&row) ? "_ddpbench_files" : "_ddpbench_nothing", out);
            }
            fputs("; return ;;\n", out);
        }
    }
}

/* Prints a command's name and its aliases. */
static void put_names(FILE *out, const struct ddp_cmd *cmd, const char *separator)
{
    fputs(cmd->name, out);
    for (const char *const *a = cmd->aliases; a && *a; a++)
        fprintf(out, "%s%s", separator, *a);
}

/* Prints a branch of the shell's `case` for each command with aliases. The branch sets the shell
 * variable `command` to the name of the command. */
static void put_alias_cases(FILE *out, const char *indent)
{
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        if (!(*c)->aliases)
            continue;
        fputs(indent, out);
        put_names(out, *c, "|");
        fprintf(out, ") command=%s ;;\n", (*c)->name);
    }
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

/* Returns the i-th operand that the shell can complete, or NULL past the last. */
static const char *operand_at(const struct ddp_cmd *cmd, int i)
{
    static const struct {
        const char *command;
        const char *(*operand)(const void *ctx, int i);
    } table[] = {
        {"completion", shell_name},  {"explain", ddp_explain_topic}, {"help", ddp_help_topic},
        {"recipe", ddp_recipe_name}, {"kernels", ddp_kernels_flag},  {"list", ddp_list_kind},
    };
    for (size_t t = 0; t < DDP_COUNT_OF(table); t++)
        if (strcmp(table[t].command, cmd->name) == 0)
            return table[t].operand(NULL, i);
    return NULL;
}

static bool has_operands(const struct ddp_cmd *cmd)
{
    return operand_at(cmd, 0) != NULL;
}

static void put_operands(FILE *out, const struct ddp_cmd *cmd)
{
    for (int i = 0; operand_at(cmd, i); i++)
        fprintf(out, "%s%s", i ? " " : "", operand_at(cmd, i));
}

/* The other functions of the script see the local variables of _ddpbench, because bash scopes
 * variables dynamically. If an option takes a list, `list` holds the values and the comma before
 * the value to complete. */
static const char bash_head[] =
    "# ddpbench completion for bash\n"
    "_ddpbench() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local command=${COMP_WORDS[1]} options='' operands='' list=''\n"
    "    COMPREPLY=()\n"
    "    # Bash splits --option=value into three words.\n"
    "    if [ \"$cur\" = = ]; then\n"
    "        cur=''\n"
    "    elif [ \"$prev\" = = ]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        _ddpbench_offer \"";
static const char bash_functions[] =
    "_ddpbench_offer() {\n"
    "    mapfile -t COMPREPLY < <(compgen -P \"$list\" -W \"$1\" -- \"$cur\")\n"
    "    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=] ]]; then\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    fi\n"
    "}\n"
    "_ddpbench_values() {\n"
    "    if [[ $cur == *,* ]]; then\n"
    "        list=${cur%,*},\n"
    "        cur=${cur##*,}\n"
    "    fi\n"
    "    _ddpbench_offer \"$*\"\n"
    "}\n"
    "_ddpbench_files() { :; }\n"
    "_ddpbench_nothing() { compopt +o default 2>/dev/null; }\n"
    "_ddpbench_value() {\n"
    "    case \"$command $prev\" in\n";

static void print_bash(FILE *out)
{
    fputs(bash_head, out);
    put_commands(out);
    fputs(" --version --help\"\n"
          "        return\n"
          "    fi\n"
          "    case $command in\n",
          out);
    put_alias_cases(out, "    ");
    fputs("    esac\n"
          "    _ddpbench_value && return\n"
          "    case $command in\n",
          out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fprintf(out, "    %s) options=\"", (*c)->name);
        put_options(out, *c);
        fputc('"', out);
        if ((*c)->operands[0]) {
            fputs(" operands=\"", out);
            put_operands(out, *c);
            fputs("\" ;;\n", out);
        } else {
            fputs(" operands=$options ;;\n", out);
        }
    }
    fputs("    esac\n"
          "    if [[ $cur == -* ]]; then operands=\"$options $operands\"; fi\n"
          "    _ddpbench_offer \"$operands\"\n"
          "}\n",
          out);
    fputs(bash_functions, out);
    put_cases(out, "    ");
    fputs("    esac\n"
          "    return 1\n"
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

/* Prints a branch of the shell's `case` for each command. The branch sets the shell variable
 * `entries` to the options. It sets `takes` to files or options, unless the command has operands
 * that can be listed. */
static void put_zsh_commands(FILE *out)
{
    struct ddp_opt row;
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fprintf(out, "    %s) entries=(", (*c)->name);
        for (int i = 0; ddp_opt_get((*c)->rows, i, &row); i++)
            put_zsh_entry(out, "--", row.name, row.help);
        if (has_operands(*c)) {
            fputs("); operands=(", out);
            put_operands(out, *c);
            fputs(") ;;\n", out);
        } else {
            fprintf(out, "); takes=%s ;;\n", (*c)->operands[0] ? "files" : "options");
        }
    }
}

static void print_zsh(FILE *out)
{
    fputs("#compdef ddpbench\n"
          "# In a list, other values and a comma may stand before the value to complete.\n"
          "# After a value that ends in a colon, the user must type an argument.\n"
          "_ddpbench_values() {\n"
          "    compset -P '*,'\n"
          "    compadd -S '' -- ${(M)@:#*:}\n"
          "    compadd -- ${@:#*:}\n"
          "}\n"
          "_ddpbench_files() { _files; }\n"
          "_ddpbench_nothing() { :; }\n"
          "_ddpbench_value() {\n"
          "    case \"$command $option\" in\n",
          out);
    put_cases(out, "    ");
    fputs("    esac\n"
          "    return 1\n"
          "}\n"
          "_ddpbench() {\n"
          "    local -a entries operands\n"
          "    local takes=operands\n"
          "    local command=${words[2]} option=${words[CURRENT-1]}\n"
          "    if ((CURRENT == 2)); then\n"
          "        entries=(",
          out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        put_zsh_entry(out, "", (*c)->name, (*c)->summary);
    fputs(")\n"
          "        _describe command entries\n"
          "        return\n"
          "    fi\n"
          "    case $command in\n",
          out);
    put_alias_cases(out, "    ");
    fputs("    esac\n"
          "    if [[ ${words[CURRENT]} == --*=* ]]; then\n"
          "        option=${words[CURRENT]%%=*}\n"
          "        compset -P '*='\n"
          "    fi\n"
          "    _ddpbench_value && return\n"
          "    case $command in\n",
          out);
    put_zsh_commands(out);
    fputs("    esac\n"
          "    compadd -- $operands\n"
          "    if [[ $PREFIX == -* || $takes == options ]]; then _describe option entries; fi\n"
          "    if [[ $takes == files ]]; then _files; fi\n"
          "}\n"
          "_ddpbench \"$@\"\n",
          out);
}

/* Prints the arguments of `complete` for the values of an option in fish. -x means that fish offers
 * no file names. */
static void put_fish_value(FILE *out, const struct ddp_cmd *cmd, const struct ddp_opt *row)
{
    if (has_values(cmd, row)) {
        fputs(ddp_opt_is_list(row) ? " -x -a '(__fish_append , " : " -x -a '", out);
        put_values(out, cmd, row);
        fputs(ddp_opt_is_list(row) ? ")'" : "'", out);
    } else if (row->kind != DDP_OPT_FLAG) {
        fputs(takes_file(row) ? " -r -F" : " -x", out);
    }
}

static void print_fish(FILE *out)
{
    struct ddp_opt row;
    fputs("# ddpbench completion for fish\n", out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fprintf(out, "complete -c ddpbench -f -n __fish_use_subcommand -a %s -d '", (*c)->name);
        put_quoted(out, (*c)->summary);
        fputs("'\n", out);
        const char *const files = (*c)->operands[0] && !has_operands(*c) ? "-F" : "-f";
        fprintf(out, "complete -c ddpbench %s -n '__fish_seen_subcommand_from ", files);
        put_names(out, *c, " ");
        fputs("' -a '", out);
        put_operands(out, *c);
        fputs("'\n", out);
        for (int i = 0; ddp_opt_get((*c)->rows, i, &row); i++) {
            fputs("complete -c ddpbench -n '__fish_seen_subcommand_from ", out);
            put_names(out, *c, " ");
            fprintf(out, "' -l %s", row.name);
            if (row.short_name)
                fprintf(out, " -s %c", row.short_name);
            put_fish_value(out, *c, &row);
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
    return ddp_refuse_operand("supported shell", parsed->operands[0], shell_name, NULL, err);
}

const struct ddp_cmd ddp_cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for bash, zsh or fish",
    .operands = "SHELL",
    .details = "bash: write the output to ~/.local/share/bash-completion/completions/ddpbench\n"
               "zsh: write the output to a file _ddpbench in a folder of $fpath\n"
               "fish: write the output to ~/.config/fish/completions/ddpbench.fish\n",
    .examples = "  ddpbench completion bash >~/.local/share/bash-completion/completions/ddpbench\n",
    .rows = ddp_plain_rows,
    .values_bytes = sizeof(struct ddp_plain_values),
    .help_offset = offsetof(struct ddp_plain_values, help),
    .run = run,
};
