/* Turns the cells of the configuration into items, each with its command, rank count and backend.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/unit.h"
#include "sweep.h"

/* Options that a run may not set. They concern the whole sweep or work only outside a sweep. */
static const char *const sweep_options[] = {"json",    "format",       "progress", "quiet",
                                            "verbose", "help",         "launch",   "timeout",
                                            "dry-run", "explain-auto", "label",    NULL};

static const struct ddp_cmd *find_command(const char *name)
{
    const struct ddp_cmd *cmd = ddp_command_find(name);
    return cmd && (cmd->flags & DDP_CMD_NEEDS_WORLD) && !cmd->stages ? cmd : NULL;
}

static const char *command_name(const void *ctx, int i)
{
    (void)ctx;
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        if (find_command((*c)->name) && i-- == 0)
            return (*c)->name;
    return NULL;
}

/* Returns true if the option takes a list. A list in the configuration is then one value and not an
 * axis. Returns false for --ranks, because each number of ranks is an item of its own. */
static bool takes_list(void *arg, const char *command, const char *option)
{
    const struct ddp_cmd *cmd = find_command(command);
    (void)arg;
    if (!cmd || strcmp(option, "ranks") == 0)
        return false;
    for (const struct ddp_opt *row = cmd->rows; row->name; row++)
        if (strcmp(row->name, option) == 0 || (row->alias && strcmp(row->alias, option) == 0))
            return row->kind == DDP_OPT_INT_LIST || row->kind == DDP_OPT_SIZE_LIST ||
                   row->kind == DDP_OPT_ENUM_LIST || row->kind == DDP_OPT_STRING_LIST;
    return false;
}

static int refuse(const struct ddp_sweep_values *v, int run, const char *what, const char *subject,
                  struct ddp_err *err)
{
    char clean[80];
    ddp_printable(subject, clean, sizeof clean);
    return ddp_fail(err, DDP_ECONFIG, "'%.160s', runs[%d]: %s '%s'", v->config_path, run, what,
                    clean);
}

/* Returns the value of --option in a cell's arguments, or NULL. */
static const char *value_of(const struct ddp_sweep_cell *cell, const char *option)
{
    const size_t n = strlen(option);
    for (int i = 1; i < cell->argc; i++)
        if (strncmp(cell->argv[i] + 2, option, n) == 0 && cell->argv[i][n + 2] == '=')
            return cell->argv[i] + n + 3;
    return NULL;
}

static bool sweep_has(const char *option)
{
    for (const struct ddp_opt *row = ddp_command_find("sweep")->rows; row->name; row++)
        if (strcmp(row->name, option) == 0)
            return true;
    return false;
}

static int refuse_sweep_option(const struct ddp_sweep_values *v, const struct ddp_sweep_cell *cell,
                               struct ddp_err *err)
{
    for (int i = 1; i < cell->argc; i++) {
        const char *arg = cell->argv[i] + 2;
        for (int k = 0; sweep_options[k]; k++) {
            const size_t n = strlen(sweep_options[k]);
            if (strncmp(arg, sweep_options[k], n) != 0 || (arg[n] != '\0' && arg[n] != '='))
                continue;
            refuse(v, cell->run, "a single run cannot set the option", sweep_options[k], err);
            if (!sweep_has(sweep_options[k]))
                return ddp_hint(err, "this option works only outside a sweep");
            return ddp_hint(err, "give it to the sweep: ddpbench sweep --%s ...", sweep_options[k]);
        }
    }
    return 0;
}

/* Fills *item, except for its number of ranks. */
static int read_cell(const struct ddp_sweep_values *v, const struct ddp_sweep_cell *cell,
                     struct ddp_sweep_item *item, struct ddp_err *err)
{
    const char *backend = value_of(cell, "backend");
    *item = (struct ddp_sweep_item){.cmd = find_command(cell->argv[0]),
                                    .run = cell->run,
                                    .argc = cell->argc,
                                    .argv = cell->argv};
    if (!item->cmd) {
        const char *near = ddp_nearest(cell->argv[0], command_name, NULL);
        refuse(v, cell->run, "a sweep cannot run the command", cell->argv[0], err);
        return near ? ddp_hint(err, "did you mean '%s'?", near) : err->code;
    }
    DDP_TRY(refuse_sweep_option(v, cell, err));
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
    struct ddp_sweep_item *items = ddp_realloc_array(v->items, (size_t)v->count + 1, sizeof *items);
    if (!items)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a sweep");
    v->items = items;
    items[v->count] = *item;
    items[v->count].ranks = (int)ranks;
    v->count++;
    return 0;
}

/* Returns the number of ranks for an item that names none: 1 for backend self, else
 * ddp_world_default_ranks. If the backend uses GPUs, the own launcher starts one per GPU unless
 * --share-gpu is given. */
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

/* Adds an item if the cell sets the number of ranks. Otherwise adds an item per number of --ranks,
 * or one item with the default number. */
static int add_items(const struct ddp_app *app, struct ddp_sweep_values *v,
                     const struct ddp_sweep_cell *cell, struct ddp_err *err)
{
    struct ddp_sweep_item item;
    const char *own = value_of(cell, "ranks");
    const struct ddp_int_list *ranks = &v->world.ranks;
    int64_t n;
    DDP_TRY(read_cell(v, cell, &item, err));
    if (own) {
        struct ddp_err why = DDP_ERR_INIT;
        if (ddp_parse_int(own, 1, 256, &n, &why) != 0)
            return refuse(v, cell->run, "'ranks' takes one number from 1 to 256, or a list:", own,
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

/* Parses and checks the options of every item before anything is measured. */
static int check_items(const struct ddp_app *app, struct ddp_sweep_values *v, struct ddp_err *err)
{
    for (int i = 0; i < v->count; i++) {
        struct ddp_sweep_open open;
        struct ddp_sweep_item *item = &v->items[i];
        DDP_TRY(ddp_sweep_item_open(app, v, item, &open, err));
        const struct ddp_world_options *world = open.values;
        item->threads = item->cmd->threads && item->cmd->threads(open.values);
        ddp_sweep_gpu_fill(item, open.values);
        if (world->label[0])
            memcpy(v->world.label, world->label, sizeof v->world.label);
        ddp_sweep_item_close(item, &open);
    }
    return 0;
}

int ddp_sweep_read(struct ddp_app *app, struct ddp_sweep_values *v, struct ddp_err *err)
{
    char *text;
    size_t bytes;
    DDP_TRY(ddp_file_read(v->config_path, DDP_SWEEP_FILE_MAX, &text, &bytes, err));
    int rc = ddp_sweep_plan_parse(text, bytes, v->config_path, takes_list, NULL, &v->plan, err);
    free(text);
    DDP_TRY(rc);
    for (int i = 0; i < v->plan.count; i++)
        DDP_TRY(add_items(app, v, &v->plan.cells[i], err));
    DDP_TRY(gather_world(v, err));
    return check_items(app, v, err);
}
