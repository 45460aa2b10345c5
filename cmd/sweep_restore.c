/* Restores the finished work of an earlier run from the sweep's journal. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sweep_collector.h"

struct restore {
    struct ddp_sweep_values *v;
    /* pending: training runs of the item that began last. They are copied to `record` when the item
     * ends. */
    struct ddp_record *record, pending;
    const char *path;
    int points, runs; /* restored points and training runs */
};

static int refuse(const struct restore *r, const char *what, const struct ddp_journal_entry *entry,
                  struct ddp_err *err)
{
    ddp_fail(err, DDP_EINPUT, "'%.200s' has %s (launch %d, run %d) that is not part of this sweep",
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

static void discard_pending(struct restore *r)
{
    ddp_record_release(&r->pending);
}

static int take_pending(struct restore *r, const struct ddp_journal_entry *entry,
                        struct ddp_err *err)
{
    for (int i = 0; i < r->pending.train_count; i++) {
        const struct ddp_train_run *run = &r->pending.train[i];
        DDP_TRY(ddp_record_add_train(r->record, run, err));
        for (int e = 0; e < run->epoch_count; e++)
            DDP_TRY(ddp_record_add_epoch(r->record, &run->epochs[e], err));
        DDP_TRY(ddp_sweep_collector_trained(r->v->collector, entry->launch, entry->cell, err));
        memcpy(r->record->feature_blas, run->blas, sizeof run->blas);
        r->runs++;
    }
    discard_pending(r);
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
        discard_pending(r);
        return 0;
    }
}

int ddp_sweep_restore(struct ddp_sweep_values *v, const char *path, struct ddp_record *record,
                      struct ddp_err *err)
{
    struct restore r = {.v = v, .record = record, .path = path};
    struct ddp_journal_facts *facts = ddp_calloc(1, sizeof *facts);
    bool continued = false;
    if (!facts)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a journal");
    ddp_record_init(&r.pending);
    ddp_sweep_facts(v, record, facts);
    int rc = ddp_journal_open(path, facts, v->restart, visit, &r, &v->collector->journal,
                              &continued, err);
    discard_pending(&r);
    free(facts);
    ddp_sweep_done_sort(&v->done);
    if (rc == 0 && continued)
        ddp_logf(&v->app->log, DDP_LOG_NOTE,
                 "continues '%s': %d of %d runs are done, %d points and %d training runs", path,
                 v->ended, v->count * (int)v->launches, r.points, r.runs);
    return rc;
}
