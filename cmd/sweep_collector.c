/* The part of a sweep that runs in the collector. It chooses the next launch group, writes the
 * journal, and completes the record. */
#include "sweep_collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

const char *ddp_sweep_journal_path(const struct ddp_sweep_values *v)
{
    return v->journal_path ? v->journal_path : v->default_journal[0] ? v->default_journal : NULL;
}

static bool item_is_done(const struct ddp_sweep_values *v, int launch, int item)
{
    return ddp_sweep_done_has(&v->done, ddp_sweep_key(launch, item, DDP_SWEEP_END));
}

/* Returns the first unfinished repetition, or 0 if all are finished. An outside launcher starts the
 * ranks only once, so a run under an outside launcher measures only this repetition. */
static int first_launch(const struct ddp_sweep_values *v)
{
    for (int i = 0; i < v->stage_count; i++)
        if (!ddp_sweep_launch_group_is_done(v, &v->stages[i]))
            return v->stages[i].launch;
    return 0;
}

static bool in_this_run(const struct ddp_sweep_values *v,
                        const struct ddp_sweep_launch_group *stage)
{
    if (ddp_sweep_launch_group_is_done(v, stage))
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
                v->seconds_todo += v->items[stage->items[i]].seconds;
    }
}

bool ddp_sweep_next(void *values, int i, const char **backend, int *ranks)
{
    struct ddp_sweep_values *v = values;
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

int ddp_sweep_collector_open(void *values, struct ddp_record *record, struct ddp_err *err)
{
    struct ddp_sweep_values *v = values;
    const char *path = ddp_sweep_journal_path(v);
    v->collector = ddp_calloc(1, sizeof *v->collector);
    if (!v->collector)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the journal");
    return path ? ddp_sweep_restore(v, path, record, err) : 0;
}

int ddp_sweep_collector_trained(struct ddp_sweep_collector *collector, int launch, int item,
                                struct ddp_err *err)
{
    struct ddp_sweep_trained *more =
        ddp_realloc_array(collector->trained, (size_t)collector->trained_count + 1, sizeof *more);
    if (!more)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a training run");
    collector->trained = more;
    more[collector->trained_count++] = (struct ddp_sweep_trained){launch, item};
    return 0;
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
        v->seconds_done += v->items[event->item].seconds;
        return append(collector, DDP_JOURNAL_END, text, NULL, 0, err);
    default:
        if (collector->left_out++ == 0)
            snprintf(collector->why, sizeof collector->why, "%s", event->text);
        ddp_logf(&v->app->log, DDP_LOG_WARN, "left out: %s: %s", text, event->text);
        return 0;
    }
}

int ddp_sweep_collector_keep(void *values, uint32_t type, const void *payload, size_t bytes,
                             struct ddp_err *err)
{
    struct ddp_sweep_values *v = values;
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
        DDP_TRY(ddp_sweep_collector_trained(collector, collector->launch, collector->item, err));
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
    default:
        return 0;
    }
}

static bool belongs_before(const struct ddp_sweep_trained *a, const struct ddp_sweep_trained *b)
{
    return a->launch != b->launch ? a->launch < b->launch : a->item < b->item;
}

/* Sorts the record's training runs into the order of the plan. Runs of one item keep their order.
 * Insertion sort suffices for these few entries. The points are sorted already (record.h). */
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

int ddp_sweep_collector_close(void *values, struct ddp_record *record, int code,
                              struct ddp_err *err)
{
    struct ddp_sweep_values *v = values;
    struct ddp_sweep_collector *collector = v->collector;
    const int all = v->count * (int)v->launches;
    if (!collector)
        return code;
    sort_trained(collector, record);
    collector->whole = v->ended == all;
    if (code != 0 || collector->whole)
        return code;
    if (collector->left_out > 0) {
        ddp_fail(err, DDP_EUNAVAIL, "%d of %d runs cannot run here; the first: %s",
                 collector->left_out, all, collector->why);
        return err->code;
    }
    ddp_fail(err, DDP_CLOSE_MORE,
             "launch %d of %d is finished; run the same command again for the next", v->only_launch,
             (int)v->launches);
    ddp_logf(&v->app->log, DDP_LOG_NOTE, "%s", err->text);
    return DDP_CLOSE_MORE;
}

void ddp_sweep_collector_closed(void *values, int code)
{
    struct ddp_sweep_values *v = values;
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
