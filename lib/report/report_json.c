/* The JSON document (schema ddpbench/1, results/schema/ddpbench-1.schema.json), and JSON lines.
 *
 * Every key is always present. A missing value is null. Most times are ns in the record and us in
 * the document. The keys of times name the unit. The keys come from the tables of the structs
 * (record/field.h). A new key needs a row in a table and an entry in the schema.
 * tests/unit/test_record_fields.c fails until the table and the schema agree. tests/structure.bats
 * lists the few keys that are written in this file. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/across.h"
#include "record/field.h"
#include "record/strategy_table.h"
#include "record/verdict_record.h"
#include "report/report.h"

/* Returns the list or object that ddp_fields_show has created at the key. */
static cJSON *part(const cJSON *obj, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(obj, key);
}

/* Adds a string to an array. ddp_json_str makes the string, because this function replaces bytes
 * that are not valid UTF-8. */
static void add_string_item(cJSON *array, const char *text)
{
    cJSON *holder = cJSON_CreateObject();
    ddp_json_str(holder, "s", text);
    cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(holder, "s");
    if (item && cJSON_IsNull(item)) {
        cJSON_Delete(item);
        item = cJSON_CreateString("");
    }
    cJSON_AddItemToArray(array, item);
    cJSON_Delete(holder);
}

static void add_ranks(cJSON *ranks, const struct ddp_record *r)
{
    for (int i = 0; i < r->rank_count; i++)
        ddp_fields_show(&ddp_rank_fields, &r->ranks[i], ddp_json_append(ranks));
}

static void add_hosts(cJSON *hosts, const struct ddp_record *r)
{
    for (int i = 0; i < r->host_count; i++) {
        cJSON *host = ddp_json_append(hosts);
        ddp_fields_show(&ddp_host_fields, &r->hosts[i], host);
        for (int g = 0; g < r->hosts[i].gpu_count; g++)
            ddp_fields_show(&ddp_gpu_fields, &r->hosts[i].gpus[g],
                            ddp_json_append(part(host, "gpus")));
    }
}

/* Adds the first keys of the document, from "schema" to "environment". */
static void add_head(cJSON *doc, const struct ddp_record *r)
{
    ddp_fields_show(&ddp_record_fields, r, doc);
    for (int i = 0; i < r->argc; i++)
        add_string_item(part(part(doc, "command"), "argv"), r->argv[i]);
    add_hosts(part(part(doc, "world"), "hosts"), r);
    add_ranks(part(part(doc, "world"), "rank_devices"), r);
    cJSON *environment = part(doc, "environment");
    for (int i = 0; i < r->environment_count; i++) {
        const struct ddp_env_entry *e = &r->environment[i];
        if (e->value[0] == '\0') /* A variable may be empty; ddp_json_str would write null. */
            cJSON_AddStringToObject(environment, e->key, "");
        else
            ddp_json_str(environment, e->key, e->value);
    }
}

/* Adds "timer", and adds "control" with the speeds of copying and reading memory. */
static void add_controls(cJSON *doc, const struct ddp_record *r)
{
    ddp_fields_show(&ddp_timer_fields, r, doc);
    cJSON *controls = ddp_json_arr(doc, "control");
    for (int i = 0; i < r->control_count; i++)
        ddp_fields_show(&ddp_control_fields, &r->controls[i], ddp_json_append(controls));
}

/* Adds the members of a point. `samples` is NULL, or has the times of the point's iterations in ns.
 */
static void add_point(cJSON *point, const struct ddp_point *p, const double *samples)
{
    ddp_fields_show(&ddp_point_fields, p, point);
    cJSON *list = part(point, "samples_us");
    for (int64_t i = 0; samples && i < p->sample_count; i++)
        ddp_json_append_num(list, samples[i] / 1e3);
}

/* Appends a point to the array "points" of a document. The document is written again after each
 * point. Therefore the text of a point is made once and kept, unless the point has so many samples
 * that its text is large. */
static int append_point(cJSON *points, const struct ddp_record *r, int index, struct ddp_err *err)
{
    enum { INDENT = 4, KEPT_SAMPLES = 1000 };
    if (r->texts[index] == NULL) {
        cJSON *point = ddp_json_append(points);
        add_point(point, &r->points[index], r->samples[index]);
        if (r->points[index].sample_count > KEPT_SAMPLES)
            return 0;
        const int rc = ddp_json_preprint(point, INDENT, &r->texts[index], err);
        cJSON_Delete(cJSON_DetachItemViaPointer(points, point));
        DDP_TRY(rc);
    }
    ddp_json_append_printed(points, r->texts[index]);
    return 0;
}

/* Adds the members of a training run. */
static void add_train(cJSON *train, const struct ddp_train_run *r)
{
    ddp_fields_show(&ddp_train_fields, r, train);
    cJSON *epochs = part(train, "epochs");
    for (int i = 0; i < r->epoch_count; i++)
        ddp_fields_show(&ddp_epoch_fields, &r->epochs[i], ddp_json_append(epochs));
}

static void add_left_out(cJSON *doc, const struct ddp_record *r)
{
    cJSON *list = ddp_json_arr(doc, "left_out");
    for (int i = 0; i < r->left_out_count; i++)
        ddp_fields_show(&ddp_left_out_fields, &r->left_out[i], ddp_json_append(list));
}

/* Sets doc["comparison"] to the rows of record/strategy_table.h, or to null if there is nothing to
 * compare. Returns 0 or DDP_ENOMEM. */
static int add_comparison(cJSON *doc, const struct ddp_record *r, struct ddp_err *err)
{
    struct ddp_strategy_row *rows;
    int count;
    DDP_TRY(ddp_strategy_table(r, &rows, &count, err));
    if (count == 0) {
        ddp_json_null(doc, "comparison");
        return 0;
    }
    cJSON *items = ddp_json_arr(doc, "comparison");
    for (int i = 0; i < count; i++)
        ddp_fields_show(&ddp_strategy_fields, &rows[i], ddp_json_append(items));
    free(rows);
    return 0;
}

/* Adds the documents, differences and ratios of `compare --across`. */
static void add_across(cJSON *across, const struct ddp_across *x)
{
    cJSON *list = ddp_json_arr(across, "documents");
    for (size_t d = 0; d < x->document_count; d++) {
        cJSON *item = ddp_json_append(list);
        ddp_fields_show(&ddp_across_document_fields, &x->documents[d], item);
        ddp_fields_show(&ddp_result_fields, x->documents[d].result, item);
    }
    list = ddp_json_arr(across, "differences");
    for (size_t i = 0; i < x->difference_count; i++)
        ddp_fields_show(&ddp_across_difference_fields, &x->differences[i], ddp_json_append(list));
    list = ddp_json_arr(across, "ratios");
    for (size_t i = 0; i < x->count; i++)
        ddp_fields_show(&ddp_across_cell_fields, &x->cells[i], ddp_json_append(list));
}

/* Sets obj["verdict"] to an object, or to null if v is NULL. */
static void add_verdict(cJSON *obj, const struct ddp_verdict_record *v)
{
    if (!v) {
        ddp_json_null(obj, "verdict");
        return;
    }
    cJSON *verdict = ddp_json_obj(obj, "verdict");
    ddp_fields_show(&ddp_verdict_fields, v, verdict);
    if (v->noise)
        ddp_fields_show(&ddp_noise_fields, v->noise, part(verdict, "selftest"));
    if (v->across)
        add_across(part(verdict, "across"), v->across);
    for (size_t i = 0; i < v->count; i++)
        ddp_fields_show(&ddp_verdict_cell_fields, &v->cells[i],
                        ddp_json_append(part(verdict, "cells")));
    for (size_t i = 0; i < v->unjudged.count; i++)
        ddp_fields_show(&ddp_unjudged_fields, &v->unjudged.items[i],
                        ddp_json_append(part(verdict, "unjudged")));
    for (size_t i = 0; i < v->accuracy_count; i++)
        ddp_fields_show(&ddp_verdict_accuracy_fields, &v->accuracy[i],
                        ddp_json_append(part(verdict, "accuracy")));
}

static void add_figure(cJSON *matrix, const struct ddp_matrix *m,
                       const struct ddp_matrix_figure *figure)
{
    cJSON *rows = ddp_json_arr(matrix, figure->key);
    for (int from = 0; from < m->ends; from++) {
        cJSON *row = ddp_json_append_arr(rows);
        for (int to = 0; to < m->ends; to++)
            ddp_json_append_num(
                row, *ddp_matrix_figure_of(ddp_matrix_cell_of(m, from, to), figure) / figure->unit);
    }
}

/* Sets doc["matrix"] to an object, or to null if the record has no matrix. */
static void add_matrix(cJSON *doc, const struct ddp_record *r)
{
    const struct ddp_matrix *m = &r->matrix;
    if (m->ends == 0) {
        ddp_json_null(doc, "matrix");
        return;
    }
    cJSON *matrix = ddp_json_obj(doc, "matrix");
    ddp_fields_show(&ddp_matrix_fields, m, matrix);
    for (int i = 0; i < m->ends; i++) {
        const struct ddp_matrix_end end = {m->rank[i], ddp_record_host_of(r, m->rank[i])};
        ddp_fields_show(&ddp_matrix_end_fields, &end, ddp_json_append(part(matrix, "ends")));
    }
    for (int f = 0; f < DDP_MATRIX_FIGURES; f++)
        add_figure(matrix, m, &ddp_matrix_figures[f]);
}

/* Sets doc["health"] to an object, or to null if there is no verdict. */
static void add_health(cJSON *doc, const struct ddp_record *r)
{
    const struct ddp_health *h = &r->health;
    char text[1200];
    if (h->verdict == DDP_HEALTH_NONE) {
        ddp_json_null(doc, "health");
        return;
    }
    cJSON *health = ddp_json_obj(doc, "health");
    ddp_fields_show(&ddp_health_fields, h, health);
    cJSON *list = ddp_json_arr(health, "power");
    for (int f = 0; f < DDP_HEALTH_FIGURES; f++)
        if ((f == DDP_HEALTH_COLLECTIVE) == (h->rounds >= 0))
            ddp_fields_show(&ddp_health_power_fields, &h->power[f], ddp_json_append(list));
    list = ddp_json_arr(health, "findings");
    for (int i = 0; i < h->finding_count; i++) {
        cJSON *item = ddp_json_append(list);
        ddp_fields_show(&ddp_health_finding_fields, &h->finding[i], item);
        ddp_json_str(item, "host", ddp_record_host_of(r, h->finding[i].rank));
        ddp_json_str(item, "to_host", ddp_record_host_of(r, h->finding[i].to));
        ddp_health_sentence(r, i, text, sizeof text);
        ddp_json_str(item, "text", text);
    }
    list = ddp_json_arr(health, "ranks");
    for (int i = 0; i < h->ranks; i++)
        ddp_fields_show(&ddp_health_rank_fields, &h->rank[i], ddp_json_append(list));
    list = ddp_json_arr(health, "differences");
    for (int i = 0; ddp_health_difference(r, i, text, sizeof text); i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

/* Sets doc["pays"] to an object, or to null if the record has no answer. */
static void add_pays(cJSON *doc, const struct ddp_pays_record *p)
{
    if (p->link_count == 0) {
        ddp_json_null(doc, "pays");
        return;
    }
    cJSON *pays = ddp_json_obj(doc, "pays");
    ddp_fields_show(&ddp_pays_fields, p, pays);
    for (int l = 0; l < p->link_count; l++) {
        cJSON *link = ddp_json_append(part(pays, "links"));
        ddp_fields_show(&ddp_pays_link_fields, &p->links[l], link);
        cJSON *methods = part(link, "methods");
        for (int m = 0; m < p->method_count; m++)
            ddp_fields_show(&ddp_pays_method_fields, ddp_pays_at(p, l, m),
                            ddp_json_append(methods));
    }
}

static int render(const struct ddp_record *record, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    if (!doc)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the JSON document");
    add_head(doc, record);
    add_controls(doc, record);
    cJSON *points = ddp_json_arr(doc, "points");
    int rc = 0;
    for (int i = 0; i < record->point_count && rc == 0; i++)
        rc = append_point(points, record, i, err);
    cJSON *train = ddp_json_arr(doc, "train");
    for (int i = 0; i < record->train_count; i++)
        add_train(ddp_json_append(train), &record->train[i]);
    add_left_out(doc, record);
    if (rc == 0)
        rc = add_comparison(doc, record, err);
    add_verdict(doc, record->verdict);
    add_matrix(doc, record);
    add_health(doc, record);
    add_pays(doc, &record->pays);
    if (rc == 0)
        rc = ddp_json_print_digest(doc, out, err);
    cJSON_Delete(doc);
    return rc;
}

const struct ddp_reporter ddp_reporter_json = {
    .name = "json",
    .summary = "one document, schema ddpbench/1; valid after every point",
    .shows = DDP_RECORD_ALL,
    .document = true,
    .render = render,
};

/* JSON lines: one object per line, for programs that read results during the measurement.
 *
 * The first line has the kind "run" and the document's keys up to "environment". Lines of kind
 * "point" and "epoch" follow. The last line has the kind "end". This line states how the run ended,
 * and has the values that are known only at the end. A killed run has no such line.
 *
 * The keys have the same meaning as in the document (results/schema), with these exceptions:
 *   - A line of kind "epoch" also has settings of its training run. "sync" is the name of the
 *     strategy.
 *   - In the last line, "points" is the number of points.
 *   - In the last line, "comm_us" and "rank_devices" are not inside "world".
 *   - In the last line, the training runs in "train" have no "epochs". */
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

static void begin(const struct ddp_record *r, struct ddp_strbuf *out)
{
    cJSON *doc = open_line("run");
    add_head(doc, r);
    close_line(doc, out);
}

static void point(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    cJSON *doc = open_line("point");
    add_point(doc, &r->points[index], r->samples[index]);
    close_line(doc, out);
}

static void epoch(const struct ddp_record *r, int run, int index, struct ddp_strbuf *out)
{
    /* The settings of the run that the line repeats: the path in the document, and the key. */
    static const char *const paths[][2] = {{"model", "model"},        {"dataset", "dataset"},
                                           {"sync.strategy", "sync"}, {"ranks", "ranks"},
                                           {"baseline", "baseline"},  {"launch", "launch"},
                                           {"seed", "seed"}};
    const struct ddp_train_run *t = &r->train[run];
    cJSON *doc = open_line("epoch");
    for (size_t i = 0; i < DDP_COUNT_OF(paths); i++)
        ddp_fields_show_one(&ddp_train_fields, paths[i][0], t, paths[i][1], doc);
    ddp_fields_show(&ddp_epoch_fields, &t->epochs[index], doc);
    close_line(doc, out);
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    static const char *const keys[] = {"status", "reason", "finished"};
    static const char *const times[][2] = {{"world.comm_us.init", "init"},
                                           {"world.comm_us.split", "split"},
                                           {"world.comm_us.destroy", "destroy"}};
    struct ddp_err ignored = DDP_ERR_INIT;
    cJSON *doc = open_line("end");
    for (size_t i = 0; i < DDP_COUNT_OF(keys); i++)
        ddp_fields_show_one(&ddp_record_fields, keys[i], r, keys[i], doc);
    ddp_json_count(doc, "points", r->point_count);
    cJSON *comm = ddp_json_obj(doc, "comm_us");
    for (size_t i = 0; i < DDP_COUNT_OF(times); i++)
        ddp_fields_show_one(&ddp_record_fields, times[i][0], r, times[i][1], comm);
    add_ranks(ddp_json_arr(doc, "rank_devices"), r);
    add_controls(doc, r);
    cJSON *train = ddp_json_arr(doc, "train");
    for (int i = 0; i < r->train_count; i++) {
        cJSON *run = ddp_json_append(train);
        add_train(run, &r->train[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(run, "epochs");
    }
    add_left_out(doc, r);
    if (add_comparison(doc, r, &ignored) != 0)
        out->failed = true;
    add_verdict(doc, r->verdict);
    add_matrix(doc, r);
    add_health(doc, r);
    add_pays(doc, &r->pays);
    close_line(doc, out);
}

const struct ddp_reporter ddp_reporter_jsonl = {
    .name = "jsonl",
    .summary = "JSON lines: the run, each point or epoch, the end",
    .shows = DDP_RECORD_ALL,
    .begin = begin,
    .point = point,
    .epoch = epoch,
    .end = end,
};
