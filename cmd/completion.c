/* completion: shell completions from the command and option tables. */
#include <string.h>

#include "base/mem.h"
#include "cmd.h"

struct completion_values {
    bool help;
};

static const struct ddp_opt rows[] = {{"help", 'h', DDP_OPT_FLAG,
                                       offsetof(struct completion_values, help), NULL, NULL,
                                       "Output", "this text", 0, 0, NULL, NULL, NULL},
                                      DDP_OPT_END};

static void words_of(FILE *out, const struct ddp_cmd *cmd)
{
    for (const struct ddp_opt *r = cmd->rows; r->name; r++)
        fprintf(out, "%s--%s", r == cmd->rows ? "" : " ", r->name);
}

static void command_names(FILE *out)
{
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        fprintf(out, "%s%s", c == ddp_commands() ? "" : " ", (*c)->name);
}

static void bash(FILE *out)
{
    fputs("_ddpbench() {\n    local cur=${COMP_WORDS[COMP_CWORD]} words=\n    if ((COMP_CWORD == "
          "1)); then\n        words=\"",
          out);
    command_names(out);
    fputs("\"\n    else\n        case ${COMP_WORDS[1]} in\n", out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fprintf(out, "        %s) words=\"", (*c)->name);
        words_of(out, *c);
        fputs("\" ;;\n", out);
    }
    fputs(
        "        esac\n    fi\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n"
        "complete -o default -F _ddpbench ddpbench\n",
        out);
}

static void zsh(FILE *out)
{
    fputs("#compdef ddpbench\n_ddpbench() {\n    if ((CURRENT == 2)); then\n        compadd -- ",
          out);
    command_names(out);
    fputs("\n    else\n        case ${words[2]} in\n", out);
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fprintf(out, "        %s) compadd -- ", (*c)->name);
        words_of(out, *c);
        fputs(" ;;\n", out);
    }
    fputs("        esac\n        _files\n    fi\n}\n_ddpbench \"$@\"\n", out);
}

static void fish(FILE *out)
{
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++) {
        fprintf(out, "complete -c ddpbench -n __fish_use_subcommand -a %s\n", (*c)->name);
        for (const struct ddp_opt *r = (*c)->rows; r->name; r++)
            fprintf(out, "complete -c ddpbench -n '__fish_seen_subcommand_from %s' -l %s%s\n",
                    (*c)->name, r->name, r->kind == DDP_OPT_FLAG ? "" : " -r");
    }
}

static const struct {
    const char *shell;
    void (*print)(FILE *out);
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    (void)values;
    for (size_t i = 0; parsed->operand_count == 1 && i < DDP_COUNT_OF(shells); i++) {
        if (strcmp(shells[i].shell, parsed->operands[0]) == 0) {
            shells[i].print(app->out);
            return 0;
        }
    }
    ddp_fail(err, DDP_EUSAGE, "completion needs one shell%s%s",
             parsed->operand_count ? ", not " : "",
             parsed->operand_count ? parsed->operands[0] : "");
    return ddp_hint(err, "shells: bash, zsh, fish");
}

const struct ddp_cmd ddp_cmd_completion = {
    .name = "completion",
    .summary = "completions for a shell: bash, zsh, fish",
    .operands = "SHELL",
    .rows = rows,
    .values_bytes = sizeof(struct completion_values),
    .help_offset = offsetof(struct completion_values, help),
    .run = run,
};
