/* The job of a sweep. Before the ranks start, it computes the memory and the points of all items,
 * loads their data sets, and chooses the order of the items. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/plan.h"
#include "run/sweep.h"
#include "run/world.h"

const char *ddp_sweep_journal_path(const struct ddp_sweep_values *v)
{
    return v->journal_path ? v->journal_path : v->default_journal[0] ? v->default_journal : NULL;
}

uint64_t ddp_sweep_key(int launch, int item, const char *id)
{
    const int32_t position[2] = {launch, item};
    return ddp_fnv1a(ddp_fnv1a(DDP_FNV_INIT, position, sizeof position), id, strlen(id));
}

int ddp_sweep_done_add(struct ddp_sweep_done *done, uint64_t key, struct ddp_err *err)
{
    if (done->count == done->capacity) {
        size_t capacity = done->capacity ? 2 * done->capacity : 64;
        DDP_TRY(DDP_RESIZE(&done->keys, capacity, err));
        done->capacity = capacity;
    }
    done->keys[done->count++] = key;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void ddp_sweep_done_sort(struct ddp_sweep_done *done)
{
    if (done->count > 1)
        qsort(done->keys, done->count, sizeof *done->keys, compare_keys);
}

bool ddp_sweep_done_has(const struct ddp_sweep_done *done, uint64_t key)
{
    return done->count > 0 &&
           bsearch(&key, done->keys, done->count, sizeof key, compare_keys) != NULL;
}

static bool is_device(const char *backend)
{
    const struct ddp_backend *b = ddp_backend_find(backend);
    return b && (b->caps & DDP_CAP_DEVICE);
}

/* Checks that the item can run on its backend's GPUs. */
static int check_on_device(const struct ddp_sweep_values *v, struct ddp_sweep_item *item,
                           const struct ddp_app *app, struct ddp_err *err)
{
    const struct ddp_backend *b = ddp_backend_find(item->backend);
    const struct ddp_gpu_options *first = &v->items[0].gpu;
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    char subject[32];
    DDP_TRY(item->cmd->job->gpu(item->values, &item->gpu, err));
    /* An outside launcher starts the ranks once, so all items share one communicator and its GPU
     * options. */
    if (!own && (item->gpu.graph != first->graph || item->gpu.window != first->window))
        return ddp_fail(err, DDP_ECONFIG,
                        "under an outside launcher all runs must agree on 'graph' and 'memory "
                        "window'");
    if (!own || v->world.share_gpu || !b->places)
        return 0;
    DDP_TRY(b->probe(NULL, err));
    snprintf(subject, sizeof subject, "%d ranks", item->ranks);
    return ddp_world_check_gpus(b, subject, item->ranks, err);
}

/* Checks that the item's options and its chosen backend agree about GPUs. */
static int check_gpu(const struct ddp_sweep_values *v, struct ddp_sweep_item *item,
                     const struct ddp_app *app, struct ddp_err *err)
{
    const struct ddp_gpu_options asked = {.share = v->world.share_gpu, .graph = item->gpu.graph};
    if (is_device(item->backend))
        return check_on_device(v, item, app, err);
    return ddp_world_check_no_gpu(ddp_backend_find(item->backend), &asked, err);
}

/* If the item's backend is "auto", replaces it by the sweep's backend. Checks that the backend fits
 * the launcher and the GPU options, and that there are enough GPUs. */
static int choose_backend(const struct ddp_sweep_values *v, struct ddp_sweep_item *item,
                          const struct ddp_app *app, struct ddp_err *err)
{
    if (strcmp(item->backend, "auto") == 0)
        snprintf(item->backend, sizeof item->backend, "%s", v->backend);
    const struct ddp_backend *b = ddp_backend_find(item->backend);
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    if (!own && strcmp(item->backend, v->backend) != 0)
        return ddp_fail(err, DDP_ECONFIG, "backend '%s' cannot run under %s, whose ranks use '%s'",
                        item->backend, app->launcher.name, v->backend);
    if (own && (b->caps & DDP_CAP_LAUNCHED))
        return ddp_fail(err, DDP_EUNAVAIL, "backend '%s' needs an outside launcher", item->backend);
    return check_gpu(v, item, app, err);
}

const struct ddp_bench_plan *ddp_sweep_item_plan(const struct ddp_sweep_item *item)
{
    const struct ddp_job *job = item->cmd->job;
    return job->plan ? job->plan(item->values, item->ranks) : NULL;
}

/* Prepares items[i]. The item borrows the data of an earlier item if both need the same data. */
static int prepare_item(const struct ddp_app *app, struct ddp_sweep_values *v, int i,
                        struct ddp_err *err)
{
    struct ddp_sweep_item *item = &v->items[i];
    struct ddp_app item_app = ddp_sweep_item_app(app, item);
    const struct ddp_job *job = item->cmd->job;
    DDP_TRY(choose_backend(v, item, app, err));
    bool found = !job->borrow;
    for (int k = 0; k < i && !found; k++)
        found = v->items[k].cmd->job == job && job->borrow(item->values, v->items[k].values);
    DDP_TRY(job->prepare(&item_app, item->values, item->backend, item->ranks, err));
    job->estimate(item->values, item->ranks, ddp_app_local_ranks(app, item->ranks),
                  &item->estimate);
    const struct ddp_bench_plan *plan = ddp_sweep_item_plan(item);
    item->first_place = v->points;
    v->points += plan ? plan->count : 0;
    return 0;
}

static int prepare_items(const struct ddp_app *app, struct ddp_sweep_values *v, struct ddp_err *err)
{
    for (int i = 0; i < v->count; i++) {
        struct ddp_err cause = DDP_ERR_INIT;
        if (prepare_item(app, v, i, &cause) != 0)
            return ddp_sweep_locate(v, &v->items[i], &cause, err);
        if (v->points > DDP_PLAN_POINTS_MAX)
            return ddp_fail(err, DDP_ECONFIG, "'%.160s' asks for more than %d points",
                            v->config_path, DDP_PLAN_POINTS_MAX);
    }
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Fails if two points have the same id, because a reader of the result could not tell these points
 * apart. */
static int refuse_duplicate_ids(const struct ddp_sweep_values *v, struct ddp_err *err)
{
    char(*ids)[192];
    int rc = 0, n = 0;
    DDP_TRY(DDP_NEW(&ids, (size_t)v->points, err));
    for (int i = 0; i < v->count; i++) {
        const struct ddp_bench_plan *plan = ddp_sweep_item_plan(&v->items[i]);
        for (int k = 0; plan && k < plan->count; k++)
            ddp_point_id(&plan->points[k], ids[n++], sizeof ids[0]);
    }
    if (n > 1)
        qsort(ids, (size_t)n, sizeof *ids, compare_ids);
    for (int i = 1; i < n && rc == 0; i++)
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
 * except that the items of a launch group directly follow the first item of the group. order[count]
 * receives the indices of the items in the new order. */
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
    uint32_t *shuffled;
    DDP_TRY(DDP_NEW(&v->order, count * launches, err));
    DDP_TRY(DDP_NEW(&v->measured, launches, err));
    DDP_TRY(DDP_NEW(&v->stages, count * launches, err));
    DDP_TRY(DDP_NEW(&shuffled, count, err));
    for (size_t launch = 0; launch < launches; launch++) {
        struct ddp_rng rng;
        for (size_t i = 0; i < count; i++)
            shuffled[i] = (uint32_t)i;
        ddp_rng_init(&rng, (uint64_t)v->world.seed, launch + 1);
        ddp_rng_shuffle(&rng, shuffled, count);
        make_launch(v, (int)launch + 1, shuffled, v->order + launch * count);
    }
    free(shuffled);
    return 0;
}

static int prepare(struct ddp_app *app, void *values, const char *backend, int ranks,
                   struct ddp_err *err)
{
    struct ddp_sweep_values *v = values;
    (void)ranks; /* each item has its own number */
    v->app = app;
    snprintf(v->backend, sizeof v->backend, "%s", backend);
    DDP_TRY(prepare_items(app, v, err));
    DDP_TRY(refuse_duplicate_ids(v, err));
    DDP_TRY(make_stages(v, err));
    if (!v->dry_run && ddp_app_is_root(app) && !ddp_sweep_journal_path(v))
        ddp_logf(&app->log, DDP_LOG_NOTE,
                 "no journal: without --json FILE or --journal FILE an interrupted sweep "
                 "starts over");
    return 0;
}

/* Returns the launch group that runs, or NULL before the groups are made. */
static const struct ddp_sweep_launch_group *current(const struct ddp_sweep_values *v)
{
    return v->current >= 0 && v->current < v->stage_count ? &v->stages[v->current] : NULL;
}

/* Returns the largest heap that any item of the current launch group needs. */
static uint64_t heap_bytes(const void *values, int ranks)
{
    const struct ddp_sweep_values *v = values;
    const struct ddp_sweep_launch_group *stage = current(v);
    uint64_t most = 0;
    for (int i = 0; stage && i < stage->count; i++) {
        const struct ddp_sweep_item *item = &v->items[stage->items[i]];
        most = DDP_MAX(most, ddp_job_heap_bytes(item->cmd->job, item->values, ranks));
    }
    return most;
}

static bool threads(const void *values)
{
    const struct ddp_sweep_values *v = values;
    for (int i = 0; i < v->count; i++)
        if (ddp_job_threads(v->items[i].cmd->job, v->items[i].values))
            return true;
    return false;
}

/* Fills *out with the GPU options of the current launch group. Before the groups are made, combines
 * the options of all items that use GPUs or may use them. */
static int gpu(const void *values, struct ddp_gpu_options *out, struct ddp_err *err)
{
    const struct ddp_sweep_values *v = values;
    const struct ddp_sweep_launch_group *stage = current(v);
    for (int i = 0; !stage && i < v->count; i++) {
        const struct ddp_sweep_item *item = &v->items[i];
        struct ddp_gpu_options of_item = {.share = false};
        struct ddp_err cause = DDP_ERR_INIT;
        if (strcmp(item->backend, "auto") != 0 && !is_device(item->backend))
            continue;
        if (item->cmd->job->gpu(item->values, &of_item, &cause) != 0)
            return ddp_sweep_locate(v, item, &cause, err);
        out->graph |= of_item.graph;
        out->window |= of_item.window;
    }
    if (stage) {
        out->graph = stage->gpu.graph;
        out->window = stage->gpu.window;
    }
    return 0;
}

static void release(void *values)
{
    struct ddp_sweep_values *v = values;
    ddp_sweep_release_items(v);
    ddp_sweep_plan_release(&v->plan);
    free(v->order);
    free(v->measured);
    free(v->stages);
    free(v->done.keys);
}

const struct ddp_job ddp_sweep_job = {
    .prepare = prepare,
    .heap_bytes = heap_bytes,
    .threads = threads,
    .gpu = gpu,
    .rank_main = ddp_sweep_rank_main,
    .release = release,
};
