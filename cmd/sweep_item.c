/* Turns the arguments of an item into the values of its command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sweep.h"

/* Returns true if the item's arguments contain the option. */
static bool has_option(const struct ddp_sweep_item *item, const char *option)
{
    const size_t n = strlen(option);
    for (int i = 1; i < item->argc; i++) {
        const char *arg = item->argv[i] + 2;
        if (strncmp(arg, option, n) == 0 && (arg[n] == '\0' || arg[n] == '='))
            return true;
    }
    return false;
}

/* Fills *err with the error `cause` of the item's command, preceded by the item's place in the
 * configuration. */
static int locate(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                  const struct ddp_err *cause, struct ddp_err *err)
{
    int code = cause->code == DDP_EUSAGE ? DDP_ECONFIG : cause->code;
    ddp_fail(err, code, "'%.160s', runs[%d]: %.320s", v->config_path, item->run, cause->text);
    return cause->hint[0] ? ddp_hint(err, "%s", cause->hint) : code;
}

/* Fills argv with the item's arguments and the sweep's options that apply to it. Returns their
 * number. */
static int gather_arguments(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                            struct ddp_sweep_open *open, char **argv)
{
    int argc = 0, extra = 0;
    for (int i = 0; i < item->argc; i++)
        argv[argc++] = item->argv[i];
    snprintf(open->extra[extra], sizeof open->extra[0], "--ranks=%d", item->ranks);
    argv[argc++] = open->extra[extra++];
    snprintf(open->extra[extra], sizeof open->extra[0], "--backend=%s", item->backend);
    argv[argc++] = open->extra[extra++];
    snprintf(open->extra[extra], sizeof open->extra[0], "--timeout=%.17g", v->world.timeout_s);
    argv[argc++] = open->extra[extra++];
    if (!has_option(item, "seed") && !has_option(item, "seeds")) {
        snprintf(open->extra[extra], sizeof open->extra[0], "--seed=%lld",
                 (long long)v->world.seed);
        argv[argc++] = open->extra[extra++];
    }
    argv[argc] = NULL;
    return argc;
}

int ddp_sweep_item_open(const struct ddp_app *app, const struct ddp_sweep_values *v,
                        const struct ddp_sweep_item *item, struct ddp_sweep_open *out,
                        struct ddp_err *err)
{
    struct ddp_opt_result parsed;
    struct ddp_err cause = DDP_ERR_INIT;
    char *argv[DDP_SWEEP_KEYS_MAX + 8];
    out->app = *app;
    out->app.cmd = item->cmd;
    out->app.log.level = DDP_LOG_ERROR; /* notes are printed once, for the whole sweep */
    out->values = ddp_calloc(1, item->cmd->values_bytes);
    if (!out->values)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a run of the sweep");
    int argc = gather_arguments(v, item, out, argv);
    int rc = ddp_opt_defaults(item->cmd->rows, out->values, &cause);
    if (rc == 0)
        rc = ddp_opt_parse(item->cmd->rows, argc, argv, out->values, &parsed, &cause);
    if (rc == 0 && item->cmd->check)
        rc = item->cmd->check(&out->app, out->values, &parsed, &cause);
    if (rc != 0) {
        locate(v, item, &cause, err);
        ddp_sweep_item_close(item, out);
        return err->code;
    }
    ddp_sweep_lend_data(v, item, out->values);
    return 0;
}

void ddp_sweep_item_close(const struct ddp_sweep_item *item, struct ddp_sweep_open *open)
{
    ddp_sweep_return_data(item, open->values);
    if (item->cmd->release)
        item->cmd->release(open->values);
    free(open->values);
    open->values = NULL;
}

void ddp_sweep_item_text(const struct ddp_sweep_item *item, char *out, size_t out_bytes)
{
    char line[1024];
    size_t n = 0;
    for (int i = 0; i < item->argc && n < sizeof line; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", i ? " " : "", item->argv[i]);
    if (n < sizeof line && !has_option(item, "ranks"))
        snprintf(line + n, sizeof line - n, " --ranks=%d", item->ranks);
    ddp_printable(line, out, out_bytes);
}
