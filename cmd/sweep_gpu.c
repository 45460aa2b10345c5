/* Finds which items of a sweep can run on GPUs, and which GPU options their backend needs. */
#include <stdio.h>
#include <string.h>

#include "sweep.h"

void ddp_sweep_gpu_fill(struct ddp_sweep_item *item, const void *values)
{
    struct ddp_err why = DDP_ERR_INIT;
    item->no_gpu[0] = '\0';
    item->gpu = (struct ddp_gpu_options){.share = false};
    if (!item->cmd->gpu)
        snprintf(item->no_gpu, sizeof item->no_gpu, "'%s' does not run on GPUs yet",
                 item->cmd->name);
    else if (item->cmd->gpu(values, &item->gpu, &why) != 0)
        snprintf(item->no_gpu, sizeof item->no_gpu, "%.255s", why.text);
}

static bool is_device(const char *backend)
{
    const struct ddp_backend *b = ddp_backend_find(backend);
    return b && (b->caps & DDP_CAP_DEVICE);
}

static int refuse(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item, int code,
                  const char *why, struct ddp_err *err)
{
    return ddp_fail(err, code, "'%.160s', runs[%d]: %s", v->config_path, item->run, why);
}

static int check_on_device(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                           const struct ddp_app *app, struct ddp_err *err)
{
    const struct ddp_backend *b = ddp_backend_find(item->backend);
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    char why[128];
    if (item->no_gpu[0])
        return refuse(v, item, DDP_EUNAVAIL, item->no_gpu, err);
    /* An outside launcher starts the ranks once, so all items share one communicator and its GPU
     * options. */
    if (!own &&
        (item->gpu.graph != v->items[0].gpu.graph || item->gpu.window != v->items[0].gpu.window))
        return refuse(
            v, item, DDP_ECONFIG,
            "under an outside launcher all runs must agree on 'graph' and 'memory window'", err);
    if (!own || v->world.share_gpu || !b->places)
        return 0;
    DDP_TRY(b->probe(NULL, err));
    const int gpus = b->places();
    if (item->ranks <= gpus)
        return 0;
    snprintf(why, sizeof why, "%d ranks: each needs a GPU, but there %s %d usable", item->ranks,
             gpus == 1 ? "is" : "are", gpus);
    refuse(v, item, DDP_EUNAVAIL, why, err);
    return ddp_hint(err, "--share-gpu lets ranks share a GPU, to check results only");
}

int ddp_sweep_gpu_check(const struct ddp_sweep_values *v, const struct ddp_sweep_item *item,
                        const struct ddp_app *app, struct ddp_err *err)
{
    char why[96];
    if (is_device(item->backend))
        return check_on_device(v, item, app, err);
    const char *option = v->world.share_gpu ? "share-gpu" : item->gpu.graph ? "graph" : NULL;
    if (!option)
        return 0;
    snprintf(why, sizeof why, "--%s: backend '%s' uses no GPU", option, item->backend);
    return refuse(v, item, DDP_ECONFIG, why, err);
}

/* Combines the GPU options of all items that use, or may use, GPUs. */
static int gpu_of_all(const struct ddp_sweep_values *v, struct ddp_gpu_options *out,
                      struct ddp_err *err)
{
    for (int i = 0; i < v->count; i++) {
        const struct ddp_sweep_item *item = &v->items[i];
        if (strcmp(item->backend, "auto") != 0 && !is_device(item->backend))
            continue;
        if (item->no_gpu[0])
            return refuse(v, item, DDP_EUNAVAIL, item->no_gpu, err);
        out->graph |= item->gpu.graph;
        out->window |= item->gpu.window;
    }
    return 0;
}

int ddp_sweep_gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    const struct ddp_sweep_values *v = values;
    if (v->current < 0 || v->current >= v->stage_count)
        return gpu_of_all(v, out, err);
    out->graph = v->stages[v->current].gpu.graph;
    out->window = v->stages[v->current].gpu.window;
    return 0;
}
