/* The main function finds the command, parses its options, runs the command, and turns the returned
 * code into an exit code. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/terminal.h"
#include "cmd.h"
#include "nccl_flags.h"
#include "run/rank_error.h"
#include "run/remote.h"

/* Smallest stack limit that is accepted. MPICH needs 160 KiB. */
#define STACK_KIB      256
#define DDP_TEXT_OF(x) #x
#define DDP_TEXT(x)    DDP_TEXT_OF(x)

#define DDP_COMMAND(symbol) extern const struct ddp_cmd ddp_cmd_##symbol;
#include "command_list.h"
#undef DDP_COMMAND

static const struct ddp_cmd *const commands[] = {
#define DDP_COMMAND(symbol) &ddp_cmd_##symbol,
#include "command_list.h"
#undef DDP_COMMAND
    NULL};

const struct ddp_cmd *const *ddp_commands(void)
{
    return commands;
}

const struct ddp_cmd *ddp_command_find(const char *name)
{
    return ddp_command_in(commands, name);
}

static const char *command_name(const void *ctx, int i)
{
    (void)ctx;
    return commands[i] ? commands[i]->name : NULL;
}

/* Returns the i-th long option that may stand before the command. */
static const char *program_option(const void *ctx, int i)
{
    static const char *const names[] = {"--help", "--version", NULL};
    (void)ctx;
    return names[i];
}

static int unknown_command(const char *name, struct ddp_err *err)
{
    if (name[0] == '-') {
        ddp_fail(err, DDP_EUSAGE, "unexpected '%s' before the command", name);
        char advice[160];
        snprintf(advice, sizeof advice, "options must follow the command: ddpbench COMMAND %.64s",
                 name);
        return ddp_hint_nearest(err, name, program_option, NULL, advice);
    }
    ddp_fail(err, DDP_EUSAGE, "unknown command '%s'", name);
    return ddp_hint_nearest(err, name, command_name, NULL, "`ddpbench help` lists the commands");
}

/* Returns argv[0..argc) without the arguments for another program (is_foreign). *count receives the
 * number of returned arguments. The caller frees the array. Returns NULL if memory runs out. */
static char **own_words(const struct ddp_cmd *cmd, int argc, char *const *argv, int *count)
{
    char **own = ddp_calloc((size_t)argc + 1, sizeof *own);
    *count = 0;
    for (int i = 0; own && i < argc; i++)
        if (!cmd->is_foreign || !cmd->is_foreign(argv[i]))
            own[(*count)++] = argv[i];
    return own;
}

/* Returns true if this process prints text that all ranks would print alike, such as help. Only
 * rank 0 prints it. If the launcher's variables contradict each other, every process prints it,
 * because the variables may be left over from an earlier job. The rank is then wrong. */
static bool prints_answer(const struct ddp_app *app)
{
    return app->launcher.rank_info.rank == 0 || app->launcher_error.code != 0;
}

/* Returns the page of help that an argument before "--" asks for. --help prevails over -h. */
static enum ddp_help_page help_page(int argc, char *const *argv)
{
    enum ddp_help_page page = DDP_HELP_NONE;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return DDP_HELP_LONG;
        if (strcmp(argv[i], "-h") == 0)
            page = DDP_HELP_SHORT;
    }
    return page;
}

/* Completes an error about the options of a command. If the user gave an unknown option that
 * another command has, the hint names that command. */
static void hint_options(const struct ddp_cmd *cmd, const char *unknown, struct ddp_err *err)
{
    struct ddp_opt row;
    for (const struct ddp_cmd *const *other = ddp_commands(); unknown[0] && *other; other++)
        if (ddp_opt_find((*other)->rows, unknown, &row)) {
            ddp_hint(err, "`ddpbench %s` has --%s; `ddpbench %s --help` lists the options of %s",
                     (*other)->name, unknown, cmd->name, cmd->name);
            return;
        }
    ddp_hint(err, "`ddpbench %s --help` lists the options", cmd->name);
}

/* Parses the command's options into a new values struct and runs the command. */
static int run_command(struct ddp_app *app, int argc, char *const *argv, struct ddp_err *err)
{
    const struct ddp_cmd *cmd = app->cmd;
    const enum ddp_help_page page = help_page(argc, argv);
    struct ddp_opt_result parsed;
    if (page != DDP_HELP_NONE) {
        if (prints_answer(app))
            ddp_help_command(cmd, page, app->out);
        return 0;
    }
    int own_count, rc;
    char *values = ddp_calloc(1, cmd->values_bytes ? cmd->values_bytes : 1);
    char **own = own_words(cmd, argc, argv, &own_count);
    if (values && own)
        rc = ddp_opt_defaults(cmd->rows, values, err);
    else
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for the options of '%s'", cmd->name);
    if (rc != 0)
        goto out;
    rc = ddp_opt_parse(cmd->rows, own_count, own, values, &parsed, err);
    if (rc == 0 && *(bool *)(values + cmd->help_offset)) {
        if (prints_answer(app))
            /* Combined letters such as -qh lead here. */
            ddp_help_command(cmd, DDP_HELP_SHORT, app->out);
    } else if (rc == 0 && cmd->job) {
        const struct ddp_world_options *world = (const struct ddp_world_options *)(void *)values;
        app->log.level = world->quiet     ? DDP_LOG_ERROR
                         : world->verbose ? DDP_LOG_DEBUG
                                          : DDP_LOG_NOTE;
        rc = cmd->check ? cmd->check(app, values, &parsed, err) : 0;
        if (rc == 0 && app->launcher_error.code != 0) {
            *err = app->launcher_error;
            rc = err->code;
        }
        if (rc == 0)
            rc = ddp_world_run(app, cmd, values, err);
    } else if (rc == 0) {
        /* A command without ranks runs only in a process that prints answers. The doctor runs on
         * every rank. */
        if (prints_answer(app) || cmd->flags & DDP_CMD_EVERY_RANK)
            rc = cmd->run(app, values, &parsed, err);
    } else if (err->code == DDP_EUSAGE) {
        hint_options(cmd, parsed.unknown, err);
    }
    if (cmd->job)
        cmd->job->release(values);
out:
    free(own);
    free(values);
    return rc;
}

/* Runs a command line of nccl-tests. */
static int run_nccl_line(struct ddp_app *app, struct ddp_err *err)
{
    struct ddp_nccl_line line = {.shared = ddp_rank_error_is_shared(app)};
    int rc = ddp_nccl_translate(app->cmd, app->argc - 1, app->argv + 1, &line, err);
    if (rc == 0)
        rc = run_command(app, line.argc, line.argv, err);
    ddp_nccl_release(&line);
    return rc;
}

/* Handles `ddpbench -h [COMMAND]` and `ddpbench --help [COMMAND]`. */
static int print_help(const struct ddp_app *app, struct ddp_err *err)
{
    const enum ddp_help_page page = app->argv[1][1] == '-' ? DDP_HELP_LONG : DDP_HELP_SHORT;
    if (!prints_answer(app))
        return 0;
    if (app->argc > 2)
        return ddp_help_print_topic(app->argv[2], page, app->out, err);
    ddp_help_program(app->out);
    return 0;
}

static int dispatch(struct ddp_app *app, struct ddp_err *err)
{
    /* An error is not fatal here. Only commands with ranks and the doctor report the launcher's
     * error. */
    (void)!ddp_launcher_detect(&app->launcher, &app->launcher_error);
    DDP_TRY(ddp_conf_check(err));
    if (app->argc < 2) {
        ddp_help_program(stderr);
        return DDP_EUSAGE;
    }
    const char *name = app->argv[1];
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
        return print_help(app, err);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    if (strcmp(name, DDP_REMOTE_AGENT) == 0)
        return ddp_remote_agent(app, err);
    app->cmd = ddp_nccl_command(name);
    if (app->cmd)
        return run_nccl_line(app, err);
    app->cmd = ddp_command_find(name);
    if (!app->cmd)
        return unknown_command(name, err);
    return run_command(app, app->argc - 1, app->argv + 1, err);
}

/* Flushes stdout and reports a failed write. An earlier write may have failed too, which only
 * ferror() reports. */
static int flush_stdout(int rc, struct ddp_err *err)
{
    bool failed = fflush(stdout) != 0;
    if (rc != 0 || (!failed && !ferror(stdout)))
        return rc;
    if (ddp_file_is_unread(STDOUT_FILENO))
        return ddp_fail(err, DDP_ECLOSED, "the reader of stdout closed the pipe");
    if (failed)
        return ddp_fail_errno(err, DDP_EIO, errno, "cannot write to stdout");
    return ddp_fail(err, DDP_EIO, "could not write the whole output to stdout");
}

/* Returns whether the stack may grow to STACK_KIB. Otherwise writes an error. This function itself
 * needs little stack. */
static bool check_stack(void)
{
    static const char text[] = "ddpbench: error: the stack limit is below " DDP_TEXT(
        STACK_KIB) " KiB\n  raise ulimit -s\n";
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_KIB * 1024)
        return true;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    return false;
}

/* Not inlined into main, because main checks the stack before this function's frame exists. */
__attribute__((noinline)) static int run_program(int argc, char **argv)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_terminal terminal;
    ddp_terminal_read(STDERR_FILENO, &terminal);
    struct ddp_app app = {
        .log = {.stream = stderr,
                .level = DDP_LOG_NOTE,
                .color = terminal.color,
                .progress_every_ns = terminal.moves ? 0 : DDP_LOG_PROGRESS_NS},
        .out = stdout,
        .launcher_error = DDP_ERR_INIT,
        .argc = argc,
        .argv = argv,
        .commands = commands,
    };
    /* Ignore SIGPIPE, so that a write to a closed pipe returns an error instead of ending the
     * process. */
    signal(SIGPIPE, SIG_IGN);
    /* Ignore SIGXFSZ, so that a write beyond the file size limit (ulimit -f) returns an error,
     * too. */
    signal(SIGXFSZ, SIG_IGN);
    (void)ddp_own_folder(app.binary_dir, sizeof app.binary_dir);
    int rc = dispatch(&app, &err);
    rc = flush_stdout(rc, &err);
    if (err.code != 0)
        ddp_rank_error_report(&app, &err);
    return ddp_exit_code(rc);
}

int main(int argc, char **argv)
{
    return check_stack() ? run_program(argc, argv) : ddp_exit_code(DDP_ENOMEM);
}
