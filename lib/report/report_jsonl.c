/* JSON lines: one object per line, for programs that read results during the measurement.
 *
 * The first line has the kind "run" and the document's keys up to "environment". Lines of kind
 * "point" and "epoch" follow. The last line has the kind "end". It tells how the run ended, and has
 * the values that are known only then. The keys are those of the document (results/schema), except
 * that "points" of the last line is the number of points, and "sync" of an epoch is the name of the
 * strategy. A killed run has no "end". */
#include "base/json.h"
#include "report/json_head.h"
#include "report/json_point.h"
#include "report/json_train.h"
#include "report/report.h"
#include "report/table_verdict.h"

static cJSON *open_line(const char *kind)
{
    cJSON *doc = cJSON_CreateObject();
    ddp_json_str(doc, "kind", kind);
    return doc;
}

/* Prints doc as a line and deletes it. A failure marks *out as failed. */
static void close_line(cJSON *doc, struct ddp_strbuf *out)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    if (!doc || ddp_json_print_line(doc, out, &ignored) != 0)
        out->failed = true;
    cJSON_Delete(doc);
}

static void begin(const struct ddp_record *r, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    cJSON *doc = open_line("run");
    (void)style;
    ddp_json_head(doc, r);
    close_line(doc, out);
}

static void point(const struct ddp_record *r, int index, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    cJSON *doc = open_line("point");
    (void)style;
    ddp_json_point_into(doc, &r->points[index], r->samples[index]);
    close_line(doc, out);
}

static void epoch(const struct ddp_record *r, int run, int index,
                  const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    const struct ddp_train_run *t = &r->train[run];
    cJSON *doc = open_line("epoch");
    (void)style;
    ddp_json_str(doc, "model", t->model);
    ddp_json_str(doc, "dataset", t->dataset);
    ddp_json_str(doc, "sync", t->sync);
    ddp_json_count(doc, "ranks", t->ranks);
    ddp_json_bool(doc, "baseline", t->baseline);
    ddp_json_count(doc, "launch", t->launch > 0 ? t->launch : -1);
    ddp_json_count(doc, "seed", (int64_t)t->seed);
    ddp_json_epoch_into(doc, &t->epochs[index]);
    close_line(doc, out);
}

static void end(const struct ddp_record *r, const struct ddp_report_style *style,
                struct ddp_strbuf *out)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    cJSON *doc = open_line("end");
    (void)style;
    ddp_json_str(doc, "status", ddp_status_name(r->status));
    ddp_json_str(doc, "reason", r->reason);
    ddp_json_str(doc, "finished", r->finished);
    ddp_json_count(doc, "points", r->point_count);
    ddp_json_comm(doc, r);
    ddp_json_controls(doc, r);
    cJSON *train = ddp_json_arr(doc, "train");
    for (int i = 0; i < r->train_count; i++) {
        cJSON *run = ddp_json_train(&r->train[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(run, "epochs");
        cJSON_AddItemToArray(train, run);
    }
    if (ddp_json_comparison(doc, r, &ignored) != 0)
        out->failed = true;
    ddp_json_verdict(doc, r->verdict);
    close_line(doc, out);
}

extern const struct ddp_reporter ddp_reporter_jsonl;
const struct ddp_reporter ddp_reporter_jsonl = {
    .name = "jsonl",
    .summary = "JSON lines, written as they arise: run, points and epochs, end",
    .begin = begin,
    .point = point,
    .epoch = epoch,
    .end = end,
};
