/* The two JSON formats that github-action-benchmark charts: customSmallerIsBetter (times, and time
 * ratios and accuracy losses of a verdict) and customBiggerIsBetter (bus bandwidth, accuracy). Each
 * is an array of {name, unit, value, range, extra}. "range" is absent if it is not known. "extra"
 * has the commit, the label of the run, and the codes of a doubtful point. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "record/quality.h"
#include "record/verdict_record.h"
#include "report/report.h"

/* Adds an entry if the value is finite. `quality` has the quality codes of a point or is 0. "extra"
 * shows these codes. */
static void entry(const struct ddp_record *r, cJSON *list, const char *name, const char *unit,
                  double value, double lo, double hi, unsigned quality)
{
    char range[64], codes[160], extra[400];
    if (!isfinite(value))
        return;
    cJSON *item = ddp_json_append(list);
    ddp_json_str(item, "name", name);
    ddp_json_str(item, "unit", unit);
    ddp_json_num(item, "value", value);
    if (isfinite(lo) && isfinite(hi)) {
        snprintf(range, sizeof range, "%.6g to %.6g", lo, hi);
        ddp_json_str(item, "range", range);
    }
    ddp_quality_list(quality, ",", codes, sizeof codes);
    snprintf(extra, sizeof extra, "%s%s%s%s%s", r->build.commit, r->label[0] ? ", label: " : "",
             r->label, codes[0] ? ", doubtful: " : "", codes);
    ddp_json_str(item, "extra", extra);
}

static int print(cJSON *list, struct ddp_strbuf *out, struct ddp_err *err)
{
    int rc = ddp_json_print(list, out, err);
    cJSON_Delete(list);
    return rc;
}

/* Adds the number of cells and training runs of base that were not judged, with the reason of the
 * verdict. These cells and runs have no ratio, so a chart can only show their number. */
static void add_unjudged(cJSON *list, const struct ddp_verdict_record *v)
{
    size_t count = 0;
    for (size_t i = 0; i < v->count; i++)
        count += v->cells[i].cell.state == DDP_CELL_MISSING;
    for (size_t i = 0; i < v->unjudged.count; i++)
        count += v->unjudged.items[i].base;
    if (count == 0)
        return;
    cJSON *item = ddp_json_append(list);
    ddp_json_str(item, "name", "not judged");
    ddp_json_str(item, "unit", "cells and training runs");
    ddp_json_num(item, "value", (double)count);
    ddp_json_str(item, "extra", v->reason);
}

static int render_smaller(const struct ddp_record *r, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_summary *t = &r->points[i].time_ns;
        char id[192];
        ddp_point_id(&r->points[i].spec, id, sizeof id);
        entry(r, list, id, "us", t->median / 1e3, t->ci95_lo / 1e3, t->ci95_hi / 1e3,
              r->points[i].quality);
    }
    for (size_t i = 0; r->verdict && i < r->verdict->count; i++) {
        const struct ddp_verdict_cell *c = &r->verdict->cells[i];
        entry(r, list, c->id, "new/base", c->cell.ratio, c->cell.lower, c->cell.upper, 0);
    }
    for (size_t i = 0; r->verdict && i < r->verdict->accuracy_count; i++) {
        const struct ddp_verdict_accuracy *a = &r->verdict->accuracy[i];
        char name[224];
        snprintf(name, sizeof name, "%s accuracy loss", a->name);
        entry(r, list, name, "base - new", -a->test.mean, -a->test.upper, -a->test.lower, 0);
    }
    if (r->verdict)
        add_unjudged(list, r->verdict);
    return print(list, out, err);
}

static int render_bigger(const struct ddp_record *r, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        char id[192];
        ddp_point_id(&p->spec, id, sizeof id);
        entry(r, list, id, "GB/s", ddp_point_busbw_GBps(p, p->time_ns.median),
              ddp_point_busbw_GBps(p, p->time_ns.ci95_hi),
              ddp_point_busbw_GBps(p, p->time_ns.ci95_lo), p->quality);
    }
    for (int i = 0; i < r->train_count; i++) {
        const struct ddp_train_run *t = &r->train[i];
        char name[96];
        snprintf(name, sizeof name, "%s %s seed %llu", t->model, t->sync,
                 (unsigned long long)t->seed);
        if (t->epoch_count > 0)
            entry(r, list, name, "eval accuracy", t->epochs[t->epoch_count - 1].eval_accuracy, NAN,
                  NAN, 0);
    }
    return print(list, out, err);
}

const struct ddp_reporter ddp_reporter_action_smaller = {
    .name = "action-smaller",
    .summary = "github-action-benchmark's customSmallerIsBetter: times",
    .shows = DDP_RECORD_POINTS | DDP_RECORD_VERDICT,
    .document = true,
    .render = render_smaller,
};
const struct ddp_reporter ddp_reporter_action_bigger = {
    .name = "action-bigger",
    .summary = "github-action-benchmark's customBiggerIsBetter: bandwidths, accuracy",
    .shows = DDP_RECORD_POINTS | DDP_RECORD_TRAINING,
    .document = true,
    .render = render_bigger,
};
