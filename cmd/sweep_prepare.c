/* Prepares a sweep before ranks start. Computes memory and points, loads data sets, and chooses the
 * order of the items. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/sysinfo.h"
#include "collective.h"
#include "sweep.h"

/* Returns true in the process that prints notes before the run begins. This is the parent of the
 * ranks or, under an outside launcher, rank 0. */
static bool is_root(const struct ddp_app *app)
{
    return app->launcher.kind == DDP_LAUNCHER_NONE || app->launcher.rank_info.rank == 0;
}

static int local_ranks(const struct ddp_app *app, int ranks)
{
    bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    return own ? ranks : DDP_MIN(ranks, app->launcher.rank_info.local_size);
}

/* Replaces the item's "auto" by the chosen backend, and checks that the item's backend fits the
 * launcher and the number of ranks. */
static int choose_backend(const struct ddp_sweep_values *v, struct ddp_sweep_item *item,
                          const struct ddp_app *app, struct ddp_err *err)
{
    if (strcmp(item->backend, "auto") == 0)
        snprintf(item->backend, sizeof item->backend, "%s", v->backend);
    const struct ddp_backend *b = ddp_backend_find(item->backend);
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    if (!own && strcmp(item->backend, v->backend) != 0)
        return ddp_fail(err, DDP_ECONFIG,
                        "'%.160s', runs[%d]: backend '%s' cannot run under %s, which runs '%s'",
                        v->config_path, item->run, item->backend, app->launcher.name, v->backend);
    if (own && (b->caps & DDP_CAP_LAUNCHED))
        return ddp_fail(err, DDP_EUNAVAIL,
                        "'%.160s', runs[%d]: backend '%s' needs an outside launcher",
                        v->config_path, item->run, item->backend);
    return ddp_sweep_gpu_check(v, item, app, err);
}

static int add_points(struct ddp_sweep_values *v, struct ddp_sweep_item *item,
                      const struct ddp_bench_plan *plan, struct ddp_err *err)
{
    const int count = v->points + plan->count;
    if (count > DDP_PLAN_POINTS_MAX)
        return ddp_fail(err, DDP_ECONFIG, "'%.160s' asks for more than %d points", v->config_path,
                        DDP_PLAN_POINTS_MAX);
    ddp_sweep_id *ids = ddp_realloc_array(v->ids, (size_t)count, sizeof *ids);
    if (!ids)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %d points", count);
    v->ids = ids;
    item->points = plan->count;
    for (int i = 0; i < plan->count; i++)
        ddp_point_id(&plan->points[i], ids[v->points++], sizeof ids[0]);
    return 0;
}

static int prepare_item(struct ddp_app *app, struct ddp_sweep_values *v,
                        struct ddp_sweep_item *item, struct ddp_err *err)
{
    struct ddp_sweep_open open;
    struct ddp_err cause = DDP_ERR_INIT;
    DDP_TRY(choose_backend(v, item, app, err));
    DDP_TRY(ddp_sweep_item_open(app, v, item, &open, err));
    int rc = ddp_sweep_load_data(v, item, &open, &cause);
    if (rc == 0)
        rc = item->cmd->prepare(&open.app, open.values, item->backend, item->ranks, &cause);
    if (rc != 0) {
        ddp_fail(err, rc == DDP_EUSAGE ? DDP_ECONFIG : rc, "'%.160s', runs[%d]: %.320s",
                 v->config_path, item->run, cause.text);
        rc = cause.hint[0] ? ddp_hint(err, "%s", cause.hint) : err->code;
    } else {
        item->first_place = v->points;
        ddp_sweep_keep_device(item, open.values);
        item->heap_bytes = item->cmd->heap_bytes(open.values, item->ranks);
        ddp_sweep_estimate(item, open.values, local_ranks(app, item->ranks), &item->seconds,
                           &item->bytes);
        if (item->cmd->flags & DDP_CMD_COLLECTIVE)
            rc = add_points(v, item, &((struct ddp_collective_values *)open.values)->plan, err);
    }
    ddp_sweep_item_close(item, &open);
    return rc;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuses two points with the same id, because a reader of the result could not tell them apart. */
static int refuse_duplicate_ids(const struct ddp_sweep_values *v, struct ddp_err *err)
{
    const char **ids = ddp_calloc((size_t)v->points, sizeof *ids);
    int rc = 0;
    if (!ids)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %d points", v->points);
    for (int i = 0; i < v->points; i++)
        ids[i] = v->ids[i];
    if (v->points > 1)
        qsort(ids, (size_t)v->points, sizeof *ids, compare_ids);
    for (int i = 1; i < v->points && rc == 0; i++)
        if (strcmp(ids[i - 1], ids[i]) == 0)
            rc = ddp_fail(err, DDP_ECONFIG, "'%.160s' asks for '%s' twice", v->config_path, ids[i]);
    free(ids);
    return rc;
}

static bool same_stage(const struct ddp_sweep_item *a, const struct ddp_sweep_item *b)
{
    return a->ranks == b->ranks && strcmp(a->backend, b->backend) == 0 &&
           a->gpu.graph == b->gpu.graph && a->gpu.window == b->gpu.window;
}

/* Makes the launch groups of one repetition. The items keep the random order of shuffled[count],
 * except that all items of a launch group directly follow the first one. order[count] receives the
 * indices of the items. */
static void make_launch(struct ddp_sweep_values *v, int launch, const uint32_t *shuffled,
                        int *order)
{
    int n = 0;
    for (int i = 0; i < v->count; i++) {
        const struct ddp_sweep_item *first = &v->items[shuffled[i]];
        bool earlier = false;
        for (int k = 0; k < i && !earlier; k++)
            earlier = same_stage(&v->items[shuffled[k]], first);
        if (earlier)
            continue;
        struct ddp_sweep_launch_group *stage = &v->stages[v->stage_count++];
        *stage = (struct ddp_sweep_launch_group){.launch = launch,
                                                 .backend = first->backend,
                                                 .ranks = first->ranks,
                                                 .gpu = first->gpu,
                                                 .items = order + n};
        for (int k = i; k < v->count; k++)
            if (same_stage(&v->items[shuffled[k]], first)) {
                order[n++] = (int)shuffled[k];
                stage->count++;
            }
    }
}

static int make_stages(struct ddp_sweep_values *v, struct ddp_err *err)
{
    const size_t count = (size_t)v->count, launches = (size_t)v->launches;
    v->order = ddp_calloc(count * launches, sizeof *v->order);
    v->measured = ddp_calloc(launches, sizeof *v->measured);
    v->stages = ddp_calloc(count * launches, sizeof *v->stages);
    uint32_t *shuffled = ddp_calloc(count, sizeof *shuffled);
    int rc = v->order && v->measured && v->stages && shuffled
                 ? 0
                 : ddp_fail(err, DDP_ENOMEM, "no memory for a sweep");
    for (size_t launch = 0; launch < launches && rc == 0; launch++) {
        struct ddp_rng rng;
        for (size_t i = 0; i < count; i++)
            shuffled[i] = (uint32_t)i;
        ddp_rng_init(&rng, (uint64_t)v->world.seed, launch + 1);
        ddp_rng_shuffle(&rng, shuffled, count);
        make_launch(v, (int)launch + 1, shuffled, v->order + launch * count);
    }
    free(shuffled);
    return rc;
}

int ddp_sweep_prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                      struct ddp_err *err)
{
    struct ddp_sweep_values *v = values;
    (void)ranks; /* each item has its own number */
    v->app = app;
    snprintf(v->backend, sizeof v->backend, "%s", backend);
    for (int i = 0; i < v->count; i++)
        DDP_TRY(prepare_item(app, v, &v->items[i], err));
    DDP_TRY(refuse_duplicate_ids(v, err));
    DDP_TRY(make_stages(v, err));
    if (!v->dry_run) {
        if (is_root(app) && !v->journal_path && !v->default_journal[0])
            ddp_logf(&app->log, DDP_LOG_NOTE,
                     "no journal: without --json FILE or --journal FILE an interrupted sweep "
                     "starts over");
        return 0;
    }
    if (is_root(app))
        ddp_sweep_print(v, app->out);
    return DDP_PREPARE_DONE;
}
