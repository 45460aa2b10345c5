/* Turns the cells of the configuration into items, each with its command, rank count and backend.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/unit.h"
#include "run/sweep.h"

/* Options that a run must not set, because they concern the whole sweep or work only outside a
 * sweep. */
static const char *const sweep_options[] = {
    "json",    "format",       "progress", "quiet",  "verbose", "help",  "launch",   "timeout",
    "dry-run", "explain-auto", "label",    "subset", "plot",    "hosts", "hostfile", NULL};

/* Returns the command with this name if its only results are points or training runs. Otherwise
 * returns NULL. */
static const struct ddp_cmd *find_command(const struct ddp_app *app, const char *name)
{
    const struct ddp_cmd *cmd = ddp_command_in(app->commands, name);
    return cmd && cmd->job && (cmd->job->plan || cmd->job->epochs) && !cmd->conclude ? cmd : NULL;
}

static const char *command_name(const void *ctx, int i)
{
    const struct ddp_app *app = ctx;
    for (const struct ddp_cmd *const *c = app->commands; *c; c++)
        if (find_command(app, (*c)->name) && i-- == 0)
            return (*c)->name;
    return NULL;
}

/* Returns true if the option takes a list. A list in the configuration is then one value and not an
 * axis. Returns false for --ranks, because each number of ranks is an item of its own. */
static bool takes_list(void *arg, const char *command, const char *option)
{
    const struct ddp_cmd *cmd = find_command(arg, command);
    if (!cmd || strcmp(option, "ranks") == 0)
        return false;
    struct ddp_opt row;
    return ddp_opt_find(cmd->rows, option, &row) && ddp_opt_is_list(&row);
}

static int refuse(const struct ddp_sweep_values *v, int run, const char *what, const char *subject,
                  struct ddp_err *err)
{
    char clean[80];
    ddp_printable(subject, clean, sizeof clean);
    return ddp_fail(err, DDP_ECONFIG, "'%.160s', runs[%d]: %s '%s'", v->config_path, run, what,
                    clean);
}

/* Returns the part of the argument that follows the option's name, which is "" or "=VALUE". Returns
 * NULL if the arguments lack the option. */
static const char *find_option(int argc, char *const *argv, const char *option)
{
    const size_t n = strlen(option);
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i] + 2;
        if (strncmp(arg, option, n) == 0 && (arg[n] == '\0' || arg[n] == '='))
            return arg + n;
    }
    return NULL;
}

/* Returns the value of --option in a cell's arguments, or NULL. */
static const char *value_of(const struct ddp_sweep_cell *cell, const char *option)
{
    const char *rest = find_option(cell->argc, cell->argv, option);
    return rest && *rest ? rest + 1 : NULL;
}

static bool sweep_has(const struct ddp_app *app, const char *option)
{
    struct ddp_opt row;
    return ddp_opt_find(app->cmd->rows, option, &row);
}

static int refuse_sweep_option(const struct ddp_app *app, const struct ddp_sweep_values *v,
                               const struct ddp_sweep_cell *cell, struct ddp_err *err)
{
    for (const char *const *option = sweep_options; *option; option++) {
        if (!find_option(cell->argc, cell->argv, *option))
            continue;
        refuse(v, cell->run, "a single run cannot set the option", *option, err);
        if (!sweep_has(app, *option))
            return ddp_hint(err, "this option works only outside a sweep");
        return ddp_hint(err, "give it to the sweep: ddpbench sweep --%s ...", *option);
    }
    return 0;
}

/* Fills *item, except for its number of ranks. */
static int read_cell(const struct ddp_app *app, const struct ddp_sweep_values *v,
                     const struct ddp_sweep_cell *cell, struct ddp_sweep_item *item,
                     struct ddp_err *err)
{
    const char *backend = value_of(cell, "backend");
    *item = (struct ddp_sweep_item){.cmd = find_command(app, cell->argv[0]),
                                    .run = cell->run,
                                    .argc = cell->argc,
                                    .argv = cell->argv};
    if (!item->cmd) {
        refuse(v, cell->run, "a sweep cannot run the command", cell->argv[0], err);
        return ddp_hint_nearest(err, cell->argv[0], command_name, app, "");
    }
    DDP_TRY(refuse_sweep_option(app, v, cell, err));
    backend = backend ? backend : v->world.backend;
    if (strcmp(backend, "auto") != 0 && !ddp_backend_find(backend))
        return refuse(v, cell->run, "unknown backend", backend, err);
    snprintf(item->backend, sizeof item->backend, "%s", backend);
    return 0;
}

static int add_item(struct ddp_sweep_values *v, const struct ddp_sweep_item *item, int64_t ranks,
                    struct ddp_err *err)
{
    if (v->count == DDP_SWEEP_CELLS_MAX)
        return ddp_fail(err, DDP_ECONFIG, "'%.160s' makes more than %d runs", v->config_path,
                        DDP_SWEEP_CELLS_MAX);
    const struct ddp_backend *b = ddp_backend_find(item->backend);
    if (b && (b->caps & DDP_CAP_SELF) && ranks > 1)
        return ddp_fail(err, DDP_ECONFIG, "'%.160s', runs[%d]: backend '%s' has one rank, not %d",
                        v->config_path, item->run, item->backend, (int)ranks);
    DDP_TRY(DDP_RESIZE(&v->items, (size_t)v->count + 1, err));
    v->items[v->count] = *item;
    v->items[v->count].ranks = (int)ranks;
    v->count++;
    return 0;
}

static bool has_option(const struct ddp_sweep_item *item, const char *option)
{
    return find_option(item->argc, item->argv, option) != NULL;
}

/* Adds an item to v->skipped, because it needs more ranks than the outside launcher has started. */
static int skip_item(const struct ddp_app *app, struct ddp_sweep_values *v,
                     const struct ddp_sweep_item *item, struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&v->skipped, (size_t)v->skipped_count + 1, err));
    struct ddp_left_out *l = &v->skipped[v->skipped_count++];
    *l = (struct ddp_left_out){.ranks = item->ranks, .points = -1};
    ddp_sweep_item_text(item, l->what, sizeof l->what);
    snprintf(l->reason, sizeof l->reason, "%s started only %d ranks", app->launcher.name,
             app->launcher.rank_info.size);
    if (ddp_app_is_root(app))
        ddp_logf(&app->log, DDP_LOG_WARN, "left out: %s: %s", l->what, l->reason);
    return 0;
}

/* True if both items are the same run with the same options and number of ranks. */
static bool same_item(const struct ddp_sweep_item *a, const struct ddp_sweep_item *b)
{
    if (a->run != b->run || a->ranks != b->ranks || a->argc != b->argc)
        return false;
    for (int i = 1; i < a->argc; i++)
        if (strcmp(a->argv[i], b->argv[i]) != 0 && !find_option(2, a->argv + i - 1, "ranks"))
            return false;
    return true;
}

/* Drops an item with "all" ranks if another item has the same options and names the same number of
 * ranks. Skips items that need more ranks than the outside launcher started. Returns DDP_EUSAGE if
 * no item remains. */
static int select_items(const struct ddp_app *app, struct ddp_sweep_values *v, struct ddp_err *err)
{
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    int kept = 0;
    for (int i = 0; i < v->count; i++) {
        const struct ddp_sweep_item item = v->items[i];
        bool repeated = false;
        for (int k = 0; k < v->count && item.whole && !repeated; k++)
            repeated = k != i && !v->items[k].whole && same_item(&v->items[k], &item);
        if (!own && item.ranks > app->launcher.rank_info.size)
            DDP_TRY(skip_item(app, v, &item, err));
        else if (!repeated)
            v->items[kept++] = item;
    }
    v->count = kept;
    if (kept == 0)
        return ddp_fail(err, DDP_EUSAGE, "'%.160s': every run needs more ranks than the %d of %s",
                        v->config_path, app->launcher.rank_info.size, app->launcher.name);
    return 0;
}

/* Returns the number of ranks for an item that names no number: 1 for backend self, else
 * ddp_world_default_ranks. But if ddpbench itself starts ranks for a backend on GPUs, and
 * --share-gpu is not given, returns the number of GPUs, at most DDP_DEFAULT_RANKS_MAX. */
static int default_ranks(const struct ddp_app *app, const struct ddp_sweep_values *v,
                         const struct ddp_sweep_item *item)
{
    const struct ddp_backend *b = ddp_backend_find(item->backend);
    const int usual = ddp_world_default_ranks(app);
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    if (b && (b->caps & DDP_CAP_SELF))
        return 1;
    const int places = own && b && b->places && !v->world.share_gpu ? b->places() : 0;
    return places > 0 ? DDP_MIN(places, DDP_DEFAULT_RANKS_MAX) : usual;
}

/* If the cell sets the number of ranks, adds one item. Otherwise adds one item per number in
 * --ranks or, without --ranks, one item with the default number. */
static int add_items(const struct ddp_app *app, struct ddp_sweep_values *v,
                     const struct ddp_sweep_cell *cell, struct ddp_err *err)
{
    struct ddp_sweep_item item;
    const char *own = value_of(cell, "ranks");
    const struct ddp_int_list *ranks = &v->world.ranks;
    int64_t n;
    DDP_TRY(read_cell(app, v, cell, &item, err));
    if (own && strcmp(own, "all") == 0) {
        item.whole = true;
        return add_item(v, &item, default_ranks(app, v, &item), err);
    }
    if (own) {
        struct ddp_err why = DDP_ERR_INIT;
        if (ddp_parse_int(own, 1, 256, &n, &why) != 0)
            return refuse(v, cell->run, "'ranks' takes numbers from 1 to 256 or \"all\":", own,
                          err);
        return add_item(v, &item, n, err);
    }
    if (ranks->n == 0)
        return add_item(v, &item, default_ranks(app, v, &item), err);
    for (int i = 0; i < ranks->n; i++)
        DDP_TRY(add_item(v, &item, ranks->v[i], err));
    return 0;
}

/* Sets world.ranks to the different rank counts of the items, so that the rank counts are checked
 * as for any other command. Sets world.backend to the backend of the items, or to "auto" if the
 * items have different backends. */
static int gather_world(struct ddp_sweep_values *v, struct ddp_err *err)
{
    struct ddp_int_list *ranks = &v->world.ranks;
    const char *backend = v->items[0].backend;
    ranks->n = 0;
    for (int i = 0; i < v->count; i++) {
        int k = 0;
        while (k < ranks->n && ranks->v[k] != v->items[i].ranks)
            k++;
        if (k == DDP_OPT_LIST_MAX)
            return ddp_fail(err, DDP_ECONFIG,
                            "'%.160s' has more than %d different numbers of ranks", v->config_path,
                            DDP_OPT_LIST_MAX);
        if (k == ranks->n)
            ranks->v[ranks->n++] = v->items[i].ranks;
        backend = strcmp(backend, v->items[i].backend) == 0 ? backend : "auto";
    }
    v->world.backend = backend;
    return 0;
}

int ddp_sweep_locate(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                     const struct ddp_err *cause, struct ddp_err *err)
{
    int code = cause->code == DDP_EUSAGE ? DDP_ECONFIG : cause->code;
    ddp_fail(err, code, "'%.160s', runs[%d]: %.320s", v->config_path, item->run, cause->text);
    if (cause->hint[0])
        return ddp_hint(err, "%s", cause->hint);
    return cause->code == DDP_EUSAGE
               ? ddp_hint(err, "`ddpbench %s -h` lists the options", item->cmd->name)
               : code;
}

struct ddp_app ddp_sweep_item_app(const struct ddp_app *app, const struct ddp_sweep_item *item)
{
    struct ddp_app copy = *app;
    copy.cmd = item->cmd;
    copy.in_sweep = true;
    copy.log.level = DDP_LOG_ERROR; /* notes are printed once, for the whole sweep */
    return copy;
}

/* Fills argv with the item's arguments and the sweep's options that apply to the item. The rank
 * count and the backend of the item replace those of the configuration. Returns the number of
 * arguments. */
static int gather_arguments(const struct ddp_sweep_values *v, struct ddp_sweep_item *item,
                            char **argv)
{
    const bool has_seed = has_option(item, "seed") || has_option(item, "seeds");
    int argc = 1;
    argv[0] = item->argv[0];
    snprintf(item->extra[0], sizeof item->extra[0], "--ranks=%d", item->ranks);
    snprintf(item->extra[1], sizeof item->extra[0], "--backend=%s", item->backend);
    snprintf(item->extra[2], sizeof item->extra[0], "--timeout=%.17g", v->world.timeout_s);
    snprintf(item->extra[3], sizeof item->extra[0], "--seed=%lld", (long long)v->world.seed);
    for (int i = 1; i < item->argc; i++)
        if (!find_option(2, item->argv + i - 1, "ranks") &&
            !find_option(2, item->argv + i - 1, "backend"))
            argv[argc++] = item->argv[i];
    for (int i = 0; i < (has_seed ? 3 : 4); i++)
        argv[argc++] = item->extra[i];
    argv[argc] = NULL;
    return argc;
}

/* Parses and checks the item's options into new values. */
static int open_item(const struct ddp_app *app, const struct ddp_sweep_values *v,
                     struct ddp_sweep_item *item, struct ddp_err *err)
{
    struct ddp_app item_app = ddp_sweep_item_app(app, item);
    struct ddp_opt_result parsed;
    struct ddp_err cause = DDP_ERR_INIT;
    char *argv[DDP_SWEEP_KEYS_MAX + 8];
    /* The values contain large arrays that are mostly unused. ddp_alloc_pages maps the memory, so
     * pages that are never used take no memory. calloc may clear all pages, which uses them. */
    item->values = ddp_alloc_pages(item->cmd->values_bytes);
    if (!item->values)
        return ddp_fail_memory(err, 1, item->cmd->values_bytes, __func__);
    int argc = gather_arguments(v, item, argv);
    int rc = ddp_opt_defaults(item->cmd->rows, item->values, &cause);
    if (rc == 0)
        rc = ddp_opt_parse(item->cmd->rows, argc, argv, item->values, &parsed, &cause);
    if (rc == 0)
        rc = item->cmd->check(&item_app, item->values, &parsed, &cause);
    return rc == 0 ? 0 : ddp_sweep_locate(v, item, &cause, err);
}

void ddp_sweep_item_text(const struct ddp_sweep_item *item, char *out, size_t out_bytes)
{
    char line[1024];
    size_t n = 0;
    for (int i = 0; i < item->argc && n < sizeof line; i++)
        if (!item->whole || i == 0 || !find_option(2, item->argv + i - 1, "ranks"))
            n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", i ? " " : "", item->argv[i]);
    if (n < sizeof line && (item->whole || !has_option(item, "ranks")))
        snprintf(line + n, sizeof line - n, " --ranks=%d", item->ranks);
    ddp_printable(line, out, out_bytes);
}

/* Parses and checks the options of every item before anything is measured. */
static int open_items(const struct ddp_app *app, struct ddp_sweep_values *v, struct ddp_err *err)
{
    for (int i = 0; i < v->count; i++) {
        struct ddp_sweep_item *item = &v->items[i];
        struct ddp_err ignored = DDP_ERR_INIT;
        DDP_TRY(open_item(app, v, item, err));
        const struct ddp_world_options *world = item->values;
        if (item->cmd->job->gpu(item->values, &item->gpu, &ignored) != 0)
            item->gpu = (struct ddp_gpu_options){.share = false};
        if (world->note[0])
            memcpy(v->world.note, world->note, sizeof v->world.note);
    }
    return 0;
}

void ddp_sweep_release_items(struct ddp_sweep_values *v)
{
    for (int i = 0; i < v->count; i++) {
        if (v->items[i].values)
            v->items[i].cmd->job->release(v->items[i].values);
        ddp_free_pages(v->items[i].values, v->items[i].cmd->values_bytes);
    }
    free(v->items);
    free(v->skipped);
}

int ddp_sweep_read(struct ddp_app *app, struct ddp_sweep_values *v, struct ddp_err *err)
{
    char *text;
    size_t bytes;
    DDP_TRY(ddp_file_read(v->config_path, DDP_SWEEP_FILE_MAX, &text, &bytes, err));
    int rc = ddp_sweep_plan_parse(text, bytes, v->config_path, takes_list, app, &v->plan, err);
    free(text);
    DDP_TRY(rc);
    for (int i = 0; i < v->plan.count; i++)
        DDP_TRY(add_items(app, v, &v->plan.cells[i], err));
    DDP_TRY(select_items(app, v, err));
    DDP_TRY(gather_world(v, err));
    return open_items(app, v, err);
}
