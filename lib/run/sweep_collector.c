/* Chooses the next launch group of a sweep (sweep.h). Under an outside launcher each rank does
 * this. The rest of this file runs in the collector only: it restores the finished work of an
 * earlier run from the journal, writes the journal, and completes the record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "record/provenance.h"
#include "run/sweep.h"

/* The place of a training run in the sweep. */
struct ddp_sweep_trained {
    int launch; /* number of the repetition, from 1 */
    int item;   /* index in ddp_sweep_values.items, from 0 */
};

struct ddp_sweep_collector {
    struct ddp_journal *journal;       /* NULL if there is none */
    int launch, item;                  /* the repetition and item that run now */
    struct ddp_sweep_trained *trained; /* one entry per training run of the record */
    int trained_count;
    int left_out;  /* number of items that could not run */
    char why[192]; /* why the first of these items could not run */
    bool whole;    /* all items of all repetitions are finished */
};

static bool item_is_done(const struct ddp_sweep_values *v, int launch, int item)
{
    return ddp_sweep_done_has(&v->done, ddp_sweep_key(launch, item, DDP_SWEEP_END));
}

static bool group_is_done(const struct ddp_sweep_values *v, const struct ddp_sweep_launch_group *s)
{
    for (int i = 0; i < s->count; i++)
        if (!item_is_done(v, s->launch, s->items[i]))
            return false;
    return true;
}

/* Returns the number of the first unfinished repetition, or 0 if all are finished. A repetition
 * needs new processes, and an outside launcher starts the ranks only once. A run under an outside
 * launcher therefore measures only this repetition. */
static int first_launch(const struct ddp_sweep_values *v)
{
    for (int i = 0; i < v->stage_count; i++)
        if (!group_is_done(v, &v->stages[i]))
            return v->stages[i].launch;
    return 0;
}

static bool in_this_run(const struct ddp_sweep_values *v,
                        const struct ddp_sweep_launch_group *stage)
{
    if (group_is_done(v, stage))
        return false;
    return v->app->launcher.kind == DDP_LAUNCHER_NONE || stage->launch == v->only_launch;
}

static void begin(struct ddp_sweep_values *v)
{
    v->started_ns = ddp_now_ns();
    v->only_launch = first_launch(v);
    for (int s = 0; s < v->stage_count; s++) {
        const struct ddp_sweep_launch_group *stage = &v->stages[s];
        for (int i = 0; i < stage->count && in_this_run(v, stage); i++)
            if (!item_is_done(v, stage->launch, stage->items[i]))
                v->seconds_todo += v->items[stage->items[i]].estimate.seconds;
    }
}

bool ddp_sweep_next(struct ddp_sweep_values *v, int i, const char **backend, int *ranks)
{
    if (i == 0) {
        begin(v);
        v->current = -1;
    }
    do
        v->current++;
    while (v->current < v->stage_count && !in_this_run(v, &v->stages[v->current]));
    if (v->current >= v->stage_count)
        return false;
    *backend = v->stages[v->current].backend;
    *ranks = v->stages[v->current].ranks;
    return true;
}

/* Stores the repetition and item of one more training run of the record. */
static int add_trained(struct ddp_sweep_collector *collector, int launch, int item,
                       struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&collector->trained, (size_t)collector->trained_count + 1, err));
    collector->trained[collector->trained_count++] = (struct ddp_sweep_trained){launch, item};
    return 0;
}

/* Returns a hash of the running binary, because the commit does not identify a build with
 * uncommitted changes. */
static uint64_t hash_program(void)
{
    uint64_t hash = DDP_FNV_INIT;
    char block[16384];
    size_t n;
    FILE *file = fopen("/proc/self/exe", "rb");
    if (!file)
        return 0;
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        hash = ddp_fnv1a(hash, block, n);
    fclose(file);
    return hash;
}

static void add_build(const struct ddp_record *r, struct ddp_journal_facts *facts)
{
    const struct ddp_build *build = ddp_build_info();
    ddp_journal_fact(facts, "version", "%s", build->version);
    ddp_journal_fact(facts, "commit", "%s", build->commit);
    ddp_journal_fact(facts, "compiler", "%s %s", build->compiler, build->cflags);
    ddp_journal_fact(facts, "simd", "%s", r->simd);
    ddp_journal_fact(facts, "mpi", "%s", r->feature_mpi);
    ddp_journal_fact(facts, "ucx", "%s", r->feature_ucx);
    if (build->dirty)
        ddp_journal_fact(facts, "program", "%016llx", (unsigned long long)hash_program());
}

/* Adds the properties of each host that affect times, such as its usable cores and its kernel. The
 * text is truncated if there are many hosts. The hash covers all hosts. */
static void add_hosts(const struct ddp_record *r, struct ddp_journal_facts *facts)
{
    char text[480] = "", host[320];
    uint64_t hash = DDP_FNV_INIT;
    size_t n = 0;
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        snprintf(host, sizeof host, "%s%s: %s, %d of %d cores, %s, %d ranks", i ? "; " : "",
                 h->name, h->cpu, h->usable_cores, h->cores, h->kernel, h->ranks);
        hash = ddp_fnv1a(hash, host, strlen(host));
        if (n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", host);
    }
    ddp_journal_fact(facts, "hosts", "%s", text);
    ddp_journal_fact(facts, "hosts and ranks", "%d %d %016llx", r->host_count, r->world_ranks,
                     (unsigned long long)hash);
}

/* Collects the facts that must be equal for a sweep to continue the journal of an earlier run. The
 * record must already name the backend, the launcher and the hosts. */
static void gather_facts(const struct ddp_sweep_values *v, const struct ddp_record *r,
                         struct ddp_journal_facts *facts)
{
    char ranks[400] = "";
    const char *simulated = ddp_conf_get(DDP_CONF_SIMULATE_HOSTS);
    size_t n = 0;
    facts->count = 0;
    for (int i = 0; i < v->world.ranks.n && n < sizeof ranks; i++)
        n += (size_t)snprintf(ranks + n, sizeof ranks - n, "%s%lld", i ? "," : "",
                              (long long)v->world.ranks.v[i]);
    ddp_journal_fact(facts, "configuration", "%016llx", (unsigned long long)v->plan.hash);
    ddp_journal_fact(facts, "--seed", "%lld", (long long)v->world.seed);
    ddp_journal_fact(facts, "--launches", "%lld", (long long)v->launches);
    ddp_journal_fact(facts, "numbers of ranks", "%s", ranks);
    ddp_journal_fact(facts, "runs and points", "%d %d", v->count, v->points);
    ddp_journal_fact(facts, "backend", "%s", r->world_backend);
    ddp_journal_fact(facts, "launcher", "%s%s%s", r->launcher, r->launch[0] ? ", " : "", r->launch);
    ddp_journal_fact(facts, "--share-gpu", "%s", v->world.share_gpu ? "yes" : "no");
    ddp_journal_fact(facts, "--nccl-blocking", "%s", v->world.nccl_blocking ? "off" : "on");
    ddp_journal_fact(facts, "DDPBENCH_SIMULATE_HOSTS", "%s", simulated ? simulated : "");
    add_hosts(r, facts);
    add_build(r, facts);
}

struct restore {
    struct ddp_sweep_values *v;
    /* pending: training runs and left-out points of the item that began last. When the item ends,
     * these are copied to `record`. */
    struct ddp_record *record, pending;
    const char *path;
    int points, runs; /* restored points and training runs */
};

static int refuse(const struct restore *r, const char *what, const struct ddp_journal_entry *entry,
                  struct ddp_err *err)
{
    ddp_fail(err, DDP_EINPUT,
             "'%.200s' has %s (launch %d, item %d of the plan) that is not part of this sweep",
             r->path, what, entry->launch, entry->cell);
    return ddp_hint(err, "the journal was changed; --restart starts over");
}

static int take_point(struct restore *r, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    struct ddp_point p;
    char id[192];
    memcpy(&p, entry->payload, sizeof p);
    const double *samples =
        p.sample_count > 0 ? (const double *)(const void *)((const char *)entry->payload + sizeof p)
                           : NULL;
    if (p.of != r->v->points || p.place >= p.of ||
        p.launch != (r->v->launches > 1 ? entry->launch : 0))
        return refuse(r, "a point", entry, err);
    ddp_point_id(&p.spec, id, sizeof id);
    r->points++;
    r->v->measured[entry->launch - 1]++;
    DDP_TRY(ddp_sweep_done_add(&r->v->done, ddp_sweep_key(entry->launch, entry->cell, id), err));
    return ddp_record_add_point(r->record, &p, samples, err);
}

static int take_pending(struct restore *r, const struct ddp_journal_entry *entry,
                        struct ddp_err *err)
{
    for (int i = 0; i < r->pending.train_count; i++) {
        const struct ddp_train_run *run = &r->pending.train[i];
        DDP_TRY(ddp_record_add_train(r->record, run, err));
        for (int e = 0; e < run->epoch_count; e++)
            DDP_TRY(ddp_record_add_epoch(r->record, &run->epochs[e], err));
        DDP_TRY(add_trained(r->v->collector, entry->launch, entry->cell, err));
        memcpy(r->record->feature_blas, run->blas, sizeof run->blas);
        r->runs++;
    }
    for (int i = 0; i < r->pending.left_out_count; i++)
        DDP_TRY(ddp_record_add_left_out(r->record, &r->pending.left_out[i], err));
    ddp_record_release(&r->pending);
    r->v->ended++;
    return ddp_sweep_done_add(&r->v->done, ddp_sweep_key(entry->launch, entry->cell, DDP_SWEEP_END),
                              err);
}

static int visit(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    struct restore *r = arg;
    struct ddp_record *pending = &r->pending;
    if (entry->cell >= r->v->count || entry->launch > r->v->launches)
        return refuse(r, "a run", entry, err);
    switch (entry->kind) {
    case DDP_JOURNAL_POINT:
        return take_point(r, entry, err);
    case DDP_JOURNAL_CONTROL:
        return ddp_record_add_control(r->record, entry->payload, err);
    case DDP_JOURNAL_LEFT_OUT:
        return ddp_record_add_left_out(pending, entry->payload, err);
    case DDP_JOURNAL_TRAIN:
        return ddp_record_add_train(pending, entry->payload, err);
    case DDP_JOURNAL_EPOCH:
        if (pending->train_count == 0)
            return refuse(r, "an epoch", entry, err);
        return ddp_record_add_epoch(pending, entry->payload, err);
    case DDP_JOURNAL_TRAIN_END:
        if (pending->train_count == 0)
            return refuse(r, "a training run", entry, err);
        ddp_record_end_train(pending, entry->payload);
        return 0;
    case DDP_JOURNAL_END:
        return take_pending(r, entry, err);
    case DDP_JOURNAL_GATE:
        return refuse(r, "a gate", entry, err);
    default: /* an item begins, so discard the training runs of an earlier attempt */
        ddp_record_release(pending);
        return 0;
    }
}

/* Opens the journal at `path` and adds its points and training runs to the record. Training runs of
 * an unfinished item are ignored, because the item runs again. */
static int restore_journal(struct ddp_sweep_values *v, const char *path, struct ddp_record *record,
                           struct ddp_err *err)
{
    struct restore r = {.v = v, .record = record, .path = path};
    struct ddp_journal_facts *facts;
    bool continued = false;
    DDP_TRY(DDP_NEW(&facts, 1, err));
    ddp_record_init(&r.pending);
    gather_facts(v, record, facts);
    int rc = ddp_journal_open(path, facts, v->restart, visit, &r, &v->collector->journal,
                              &continued, err);
    ddp_record_release(&r.pending);
    free(facts);
    ddp_sweep_done_sort(&v->done);
    if (rc == 0 && continued)
        ddp_logf(
            &v->app->log, DDP_LOG_NOTE,
            "continues '%s': %d of %d runs are done; restored %d points and %d training results",
            path, v->ended, v->count * (int)v->launches, r.points, r.runs);
    return rc;
}

int ddp_sweep_record_event(const struct ddp_sweep_values *v, const struct ddp_sweep_event *event,
                           struct ddp_record *record, struct ddp_err *err)
{
    const struct ddp_sweep_item *item = &v->items[event->item];
    struct ddp_left_out left_out = {.ranks = item->ranks, .points = -1};
    if (event->type != DDP_SWEEP_LEFT_OUT)
        return 0;
    ddp_sweep_item_text(item, left_out.what, sizeof left_out.what);
    snprintf(left_out.reason, sizeof left_out.reason, "%s", event->text);
    return ddp_record_add_left_out(record, &left_out, err);
}

int ddp_sweep_collector_open(struct ddp_sweep_values *v, struct ddp_record *record,
                             struct ddp_err *err)
{
    const char *path = ddp_sweep_journal_path(v);
    for (int i = 0; i < v->skipped_count; i++)
        DDP_TRY(ddp_record_add_left_out(record, &v->skipped[i], err));
    DDP_TRY(DDP_NEW(&v->collector, 1, err));
    return path ? restore_journal(v, path, record, err) : 0;
}

/* Appends a journal entry about the running item. */
static int append(struct ddp_sweep_collector *collector, enum ddp_journal_kind kind, const char *id,
                  const void *payload, size_t bytes, struct ddp_err *err)
{
    struct ddp_journal_entry entry = {.kind = kind,
                                      .launch = collector->launch,
                                      .cell = collector->item,
                                      .payload = payload,
                                      .payload_bytes = bytes};
    snprintf(entry.id, sizeof entry.id, "%s", id);
    return collector->journal ? ddp_journal_append(collector->journal, &entry, err) : 0;
}

static int keep_event(struct ddp_sweep_values *v, const struct ddp_sweep_event *event,
                      struct ddp_err *err)
{
    struct ddp_sweep_collector *collector = v->collector;
    char text[192];
    collector->launch = event->launch;
    collector->item = event->item;
    ddp_sweep_item_text(&v->items[event->item], text, sizeof text);
    switch (event->type) {
    case DDP_SWEEP_BEGINS:
        return append(collector, DDP_JOURNAL_BEGIN, text, NULL, 0, err);
    case DDP_SWEEP_ENDS:
        v->ended++;
        v->seconds_done += v->items[event->item].estimate.seconds;
        return append(collector, DDP_JOURNAL_END, text, NULL, 0, err);
    default:
        if (collector->left_out++ == 0)
            snprintf(collector->why, sizeof collector->why, "%s", event->text);
        ddp_logf(&v->app->log, DDP_LOG_WARN, "left out: %s: %s", text, event->text);
        return 0;
    }
}

int ddp_sweep_collector_keep(struct ddp_sweep_values *v, uint32_t type, const void *payload,
                             size_t bytes, struct ddp_err *err)
{
    struct ddp_sweep_collector *collector = v->collector;
    const struct ddp_train_run *run = payload;
    char id[192];
    switch (type) {
    case DDP_MESSAGE_SWEEP:
        return keep_event(v, payload, err);
    case DDP_MESSAGE_POINT:
        v->measured[collector->launch - 1]++;
        ddp_point_id(&((const struct ddp_point *)payload)->spec, id, sizeof id);
        return append(collector, DDP_JOURNAL_POINT, id, payload, bytes, err);
    case DDP_MESSAGE_TRAIN:
        DDP_TRY(add_trained(collector, collector->launch, collector->item, err));
        snprintf(id, sizeof id, "%s %s %s seed %llu", run->model, run->dataset, run->sync,
                 (unsigned long long)run->seed);
        return append(collector, DDP_JOURNAL_TRAIN, id, payload, bytes, err);
    case DDP_MESSAGE_EPOCH:
        snprintf(id, sizeof id, "epoch %d", ((const struct ddp_epoch *)payload)->epoch);
        return append(collector, DDP_JOURNAL_EPOCH, id, payload, bytes, err);
    case DDP_MESSAGE_TRAIN_END:
        return append(collector, DDP_JOURNAL_TRAIN_END, run->sync, payload, bytes, err);
    case DDP_MESSAGE_CONTROL:
        return append(collector, DDP_JOURNAL_CONTROL, "", payload, bytes, err);
    case DDP_MESSAGE_LEFT_OUT:
        return append(collector, DDP_JOURNAL_LEFT_OUT, "", payload, bytes, err);
    default:
        return 0;
    }
}

static bool belongs_before(const struct ddp_sweep_trained *a, const struct ddp_sweep_trained *b)
{
    return a->launch != b->launch ? a->launch < b->launch : a->item < b->item;
}

/* Sorts the record's training runs into the order of the plan. Runs of one item keep their order.
 * There are few runs, so an insertion sort is fast enough. The points are already sorted
 * (ddp_record_add_point). */
static void sort_trained(struct ddp_sweep_collector *collector, struct ddp_record *r)
{
    const int n = DDP_MIN(collector->trained_count, r->train_count);
    for (int i = 1; i < n; i++) {
        struct ddp_sweep_trained key = collector->trained[i];
        struct ddp_train_run run = r->train[i];
        int at = i;
        for (; at > 0 && belongs_before(&key, &collector->trained[at - 1]); at--) {
            collector->trained[at] = collector->trained[at - 1];
            r->train[at] = r->train[at - 1];
        }
        collector->trained[at] = key;
        r->train[at] = run;
    }
}

int ddp_sweep_collector_close(struct ddp_sweep_values *v, struct ddp_record *record, int code,
                              struct ddp_err *err)
{
    struct ddp_sweep_collector *collector = v->collector;
    const int all = v->count * (int)v->launches;
    if (!collector)
        return code;
    sort_trained(collector, record);
    collector->whole = v->ended == all;
    if (code != 0 || collector->whole)
        return code;
    if (collector->left_out > 0) {
        ddp_fail(err, DDP_EUNAVAIL, "%d of %d runs cannot run here; reason of the first: %s",
                 collector->left_out, all, collector->why);
        return err->code;
    }
    ddp_fail(err, DDP_CLOSE_MORE,
             "launch %d of %d is finished; run the same command again for the next", v->only_launch,
             (int)v->launches);
    ddp_logf(&v->app->log, DDP_LOG_NOTE, "%s", err->text);
    return DDP_CLOSE_MORE;
}

void ddp_sweep_collector_closed(struct ddp_sweep_values *v, int code)
{
    struct ddp_sweep_collector *collector = v->collector;
    struct ddp_err err = DDP_ERR_INIT;
    if (!collector)
        return;
    /* The result now holds everything, so the journal is no longer needed. */
    if (collector->journal && code == 0 && collector->whole && !v->journal_path &&
        ddp_journal_remove(collector->journal, &err) != 0)
        ddp_logf(&v->app->log, DDP_LOG_WARN, "%s", err.text);
    ddp_journal_close(collector->journal);
    free(collector->trained);
    free(collector);
    v->collector = NULL;
}
