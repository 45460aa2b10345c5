/* The JSON document, schema ddpbench/1, as defined in results/schema/ddpbench-1.schema.json, and
 * JSON lines.
 *
 * Every key is always present. A missing value is null. Most times are ns in the record and us in
 * the document. The keys of times name the unit. The keys of points, epochs, training runs, hosts
 * and some other objects come from the tables in record/record_fields.c. Such a key needs a row in
 * a table and an entry in the schema. tests/unit/test_record_fields.c fails until the two agree. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/across.h"
#include "record/field.h"
#include "record/provenance.h"
#include "record/strategy_table.h"
#include "record/verdict_record.h"
#include "report/report.h"

static void add_us(cJSON *obj, const char *key, double ns)
{
    ddp_json_num(obj, key, ns / 1e3);
}

static void add_tool(cJSON *doc, const struct ddp_record *r)
{
    const struct ddp_build *build = ddp_record_build(r);
    cJSON *tool = ddp_json_obj(doc, "tool");
    ddp_json_str(tool, "version", build->version);
    ddp_json_str(tool, "commit", build->commit);
    ddp_json_bool(tool, "dirty", build->dirty);
    ddp_json_str(tool, "compiler", build->compiler);
    ddp_json_str(tool, "cflags", build->cflags);
    ddp_json_str(tool, "simd", r->simd);
    cJSON *features = ddp_json_obj(tool, "features");
    ddp_json_str(features, "mpi", r->feature_mpi);
    ddp_json_str(features, "ucx", r->feature_ucx);
    ddp_json_str(features, "nccl", r->feature_nccl);
    ddp_json_str(features, "cuda", r->feature_cuda);
    ddp_json_str(features, "blas", r->feature_blas);
}

/* Adds a string to an array. ddp_json_str makes the string, because it replaces bytes that are not
 * valid UTF-8. */
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

static void add_comm(cJSON *parent, const struct ddp_record *r)
{
    cJSON *comm = ddp_json_obj(parent, "comm_us");
    add_us(comm, "init", r->comm_init_ns);
    add_us(comm, "split", r->comm_split_ns);
    add_us(comm, "destroy", r->comm_destroy_ns);
}

static void add_ranks(cJSON *parent, const struct ddp_record *r)
{
    cJSON *ranks = ddp_json_arr(parent, "rank_devices");
    for (int i = 0; i < r->rank_count; i++)
        ddp_fields_show(&ddp_rank_fields, &r->ranks[i], ddp_json_append(ranks));
}

static void add_world(cJSON *doc, const struct ddp_record *r)
{
    cJSON *world = ddp_json_obj(doc, "world");
    ddp_json_count(world, "ranks", r->world_ranks);
    ddp_json_str(world, "backend", r->world_backend);
    ddp_json_str(world, "nccl_blocking", r->nccl_blocking);
    ddp_json_str(world, "launcher", r->launcher);
    ddp_json_str(world, "launch", r->launch);
    ddp_json_str(world, "transports", r->transports);
    ddp_json_str(world, "subset", r->subset);
    add_comm(world, r);
    cJSON *hosts = ddp_json_arr(world, "hosts");
    for (int i = 0; i < r->host_count; i++) {
        cJSON *host = ddp_json_append(hosts);
        ddp_fields_show(&ddp_host_fields, &r->hosts[i], host);
        cJSON *gpus = cJSON_GetObjectItemCaseSensitive(host, "gpus");
        for (int g = 0; g < r->hosts[i].gpu_count; g++)
            ddp_fields_show(&ddp_gpu_fields, &r->hosts[i].gpus[g], ddp_json_append(gpus));
    }
    add_ranks(world, r);
}

/* Adds the first keys of the document, from "schema" to "environment". */
static void add_head(cJSON *doc, const struct ddp_record *r)
{
    ddp_json_str(doc, "schema", "ddpbench/1");
    ddp_json_str(doc, "status", ddp_status_name(r->status));
    ddp_json_str(doc, "reason", r->reason);
    ddp_json_str(doc, "label", r->label);
    ddp_json_str(doc, "note", r->note);
    add_tool(doc, r);
    cJSON *command = ddp_json_obj(doc, "command");
    ddp_json_str(command, "name", r->command);
    cJSON *argv = ddp_json_arr(command, "argv");
    for (int i = 0; i < r->argc; i++)
        add_string_item(argv, r->argv[i]);
    ddp_json_str(doc, "started", r->started);
    ddp_json_str(doc, "finished", r->finished);
    ddp_json_count(doc, "seed", r->seed);
    add_world(doc, r);
    cJSON *environment = ddp_json_obj(doc, "environment");
    for (int i = 0; i < r->environment_count; i++) {
        const struct ddp_env_entry *e = &r->environment[i];
        if (e->value[0] == '\0') /* A variable may be empty; ddp_json_str would write null. */
            cJSON_AddStringToObject(environment, e->key, "");
        else
            ddp_json_str(environment, e->key, e->value);
    }
}

/* Adds "timer", and "control": the speeds of copying and reading memory. */
static void add_controls(cJSON *doc, const struct ddp_record *r)
{
    cJSON *timer = ddp_json_obj(doc, "timer");
    ddp_json_str(timer, "clock", "CLOCK_MONOTONIC");
    ddp_json_num(timer, "cost_ns", r->timer_cost_ns);
    ddp_json_num(timer, "resolution_ns", r->timer_resolution_ns);
    cJSON *controls = ddp_json_arr(doc, "control");
    for (int i = 0; i < r->control_count; i++)
        ddp_fields_show(&ddp_control_fields, &r->controls[i], ddp_json_append(controls));
}

/* Adds the members of a point. `samples` is NULL or holds the times of its iterations, in ns. */
static void add_point(cJSON *point, const struct ddp_point *p, const double *samples)
{
    ddp_fields_show(&ddp_point_fields, p, point);
    cJSON *list = cJSON_GetObjectItemCaseSensitive(point, "samples_us");
    for (int64_t i = 0; samples && i < p->sample_count; i++)
        ddp_json_append_num(list, samples[i] / 1e3);
}

/* Appends a point to the array "points" of a document. The document is written again after each
 * point, so the text of a point is made once and kept, unless many samples make it large. */
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
    cJSON *epochs = cJSON_GetObjectItemCaseSensitive(train, "epochs");
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

static void add_unjudged(cJSON *list, const struct ddp_unjudged *item)
{
    cJSON *obj = ddp_json_append(list);
    ddp_json_str(obj, "name", item->name);
    ddp_json_str(obj, "kind", item->train ? "train" : "cell");
    ddp_json_str(obj, "side", item->base ? "base" : "new");
}

static void add_cell(cJSON *list, const struct ddp_verdict_cell *c)
{
    cJSON *item = ddp_json_append(list);
    ddp_json_str(item, "id", c->id);
    ddp_json_str(item, "state", ddp_cell_state_name(c->cell.state));
    ddp_json_count(item, "pairs", (int64_t)c->cell.pairs);
    add_us(item, "base_us", c->base_ns);
    add_us(item, "new_us", c->next_ns);
    ddp_json_num(item, "ratio", c->cell.ratio);
    ddp_json_num(item, "lower", c->cell.lower);
    ddp_json_num(item, "upper", c->cell.upper);
    ddp_json_num(item, "p", c->cell.p);
    ddp_json_num(item, "p_holm", c->cell.p_holm);
}

static void add_accuracy(cJSON *list, const struct ddp_verdict_accuracy *a, double margin)
{
    cJSON *item = ddp_json_append(list);
    ddp_json_str(item, "name", a->name);
    ddp_json_str(item, "state", ddp_noninferior_name(a->test.state));
    ddp_json_count(item, "seeds", (int64_t)a->test.seeds);
    ddp_json_num(item, "base", a->base);
    ddp_json_num(item, "new", a->next);
    ddp_json_num(item, "difference", a->test.mean);
    ddp_json_num(item, "deviation", a->test.deviation);
    ddp_json_num(item, "lower", a->test.lower);
    ddp_json_num(item, "upper", a->test.upper);
    ddp_json_num(item, "margin", margin);
    ddp_json_count(item, "seeds_needed",
                   a->test.seeds_needed > 0 ? (int64_t)a->test.seeds_needed : -1);
    ddp_json_num(item, "diverged_seed", a->diverged_seed);
}

static void add_side(cJSON *obj, const char *key, const char *command, const char *build,
                     bool edited)
{
    cJSON *side = ddp_json_obj(obj, key);
    ddp_json_str(side, "command", command);
    ddp_json_str(side, "build", build);
    ddp_json_bool(side, "edited", edited);
}

static void add_varied(cJSON *verdict, unsigned vary)
{
    cJSON *list = ddp_json_arr(verdict, "varied");
    for (int k = 0; ddp_vary_names[k]; k++)
        if (vary >> k & 1)
            add_string_item(list, ddp_vary_names[k]);
}

/* Adds the documents, differences and ratios of `compare --across`. */
static void add_across(cJSON *verdict, const struct ddp_across *x)
{
    cJSON *across = ddp_json_obj(verdict, "across");
    cJSON *list = ddp_json_arr(across, "documents");
    for (size_t d = 0; d < x->document_count; d++) {
        const struct ddp_result *r = x->documents[d].result;
        cJSON *item = ddp_json_append(list);
        ddp_json_str(item, "name", x->documents[d].name);
        ddp_json_str(item, "status", r->status);
        ddp_json_str(item, "build", r->build);
        ddp_json_str(item, "fingerprint", r->fingerprint);
        ddp_json_str(item, "hosts", r->hosts);
        ddp_json_bool(item, "edited", r->edited);
    }
    list = ddp_json_arr(across, "differences");
    for (size_t i = 0; i < x->difference_count; i++) {
        cJSON *item = ddp_json_append(list);
        ddp_json_count(item, "document", (int64_t)x->differences[i].document);
        ddp_json_str(item, "key", x->differences[i].key);
        ddp_json_str(item, "base", x->differences[i].base);
        ddp_json_str(item, "value", x->differences[i].next);
    }
    list = ddp_json_arr(across, "ratios");
    for (size_t i = 0; i < x->count; i++) {
        const struct ddp_across_cell *c = &x->cells[i];
        cJSON *item = ddp_json_append(list);
        ddp_json_str(item, "id", c->id);
        ddp_json_count(item, "document", (int64_t)c->document);
        add_us(item, "base_us", c->base_ns);
        add_us(item, "time_us", c->next_ns);
        ddp_json_num(item, "ratio", c->ratio);
        ddp_json_num(item, "lower", c->lower);
        ddp_json_num(item, "upper", c->upper);
    }
}

static void add_control(cJSON *obj, const char *key, double ratio, double p)
{
    cJSON *control = ddp_json_obj(obj, key);
    ddp_json_num(control, "ratio", ratio);
    ddp_json_num(control, "p", p);
}

/* Sets obj["verdict"] to an object, or to null if v is NULL. */
static void add_verdict(cJSON *obj, const struct ddp_verdict_record *v)
{
    if (!v) {
        ddp_json_null(obj, "verdict");
        return;
    }
    cJSON *verdict = ddp_json_obj(obj, "verdict");
    ddp_json_str(verdict, "kind", v->kind);
    ddp_json_str(verdict, "outcome",
                 v->outcome == DDP_VERDICT_NONE ? NULL : ddp_verdict_name(v->outcome));
    ddp_json_str(verdict, "reason", v->reason);
    ddp_json_num(verdict, "level", v->level);
    ddp_json_num(verdict, "min_effect", v->min_effect);
    ddp_json_str(verdict, "min_effect_from", v->effect_from);
    ddp_json_num(verdict, "noise_floor", v->noise_floor);
    ddp_json_count(verdict, "pairs", v->pairs > 0 ? v->pairs : -1);
    ddp_json_count(verdict, "max_pairs", v->max_pairs > 0 ? v->max_pairs : -1);
    ddp_json_count(verdict, "runs", v->runs > 0 ? v->runs : -1);
    ddp_json_count(verdict, "pairs_rerun", v->rerun);
    ddp_json_count(verdict, "pairs_mixed", v->mixed);
    add_varied(verdict, v->vary);
    add_side(verdict, "base", v->base_command, v->base_build, v->edited[0]);
    add_side(verdict, "new", v->next_command, v->next_build, v->edited[1]);
    ddp_json_str(verdict, "fingerprint", v->fingerprint);
    cJSON *control = ddp_json_obj(verdict, "control");
    add_control(control, "pingpong", v->pingpong_ratio, v->pingpong_p);
    add_control(control, "memory", v->memory_ratio, v->memory_p);
    if (v->noise)
        ddp_fields_show(&ddp_noise_fields, v->noise, ddp_json_obj(verdict, "selftest"));
    else
        ddp_json_null(verdict, "selftest");
    if (v->across)
        add_across(verdict, v->across);
    else
        ddp_json_null(verdict, "across");
    cJSON *list = ddp_json_arr(verdict, "cells");
    for (size_t i = 0; i < v->count; i++)
        add_cell(list, &v->cells[i]);
    list = ddp_json_arr(verdict, "unjudged");
    for (size_t i = 0; i < v->unjudged.count; i++)
        add_unjudged(list, &v->unjudged.items[i]);
    list = ddp_json_arr(verdict, "accuracy");
    for (size_t i = 0; i < v->accuracy_count; i++)
        add_accuracy(list, &v->accuracy[i], v->accuracy_margin);
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
    ddp_json_str(matrix, "by", m->by_host ? "host" : "rank");
    ddp_json_count(matrix, "message_bytes", (int64_t)m->bytes);
    ddp_json_count(matrix, "rounds", m->rounds);
    ddp_json_count(matrix, "all_rounds", m->all_rounds);
    cJSON *ends = ddp_json_arr(matrix, "ends");
    for (int i = 0; i < m->ends; i++) {
        cJSON *end = ddp_json_append(ends);
        ddp_json_count(end, "rank", m->rank[i]);
        ddp_json_str(end, "host", ddp_record_host_of(r, m->rank[i]));
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
        cJSON *link = ddp_json_append(cJSON_GetObjectItemCaseSensitive(pays, "links"));
        ddp_fields_show(&ddp_pays_link_fields, &p->links[l], link);
        cJSON *methods = cJSON_GetObjectItemCaseSensitive(link, "methods");
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
 * and has the values that are known only at the end. The keys are those of the document
 * (results/schema), except that "points" of the last line is the number of points, and "sync" of an
 * epoch is the name of the strategy. A killed run has no "end". */
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
    const struct ddp_train_run *t = &r->train[run];
    cJSON *doc = open_line("epoch");
    ddp_json_str(doc, "model", t->model);
    ddp_json_str(doc, "dataset", t->dataset);
    ddp_json_str(doc, "sync", t->sync);
    ddp_json_count(doc, "ranks", t->ranks);
    ddp_json_bool(doc, "baseline", t->baseline);
    ddp_json_count(doc, "launch", t->launch > 0 ? t->launch : -1);
    ddp_json_count(doc, "seed", (int64_t)t->seed);
    ddp_fields_show(&ddp_epoch_fields, &t->epochs[index], doc);
    close_line(doc, out);
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    cJSON *doc = open_line("end");
    ddp_json_str(doc, "status", ddp_status_name(r->status));
    ddp_json_str(doc, "reason", r->reason);
    ddp_json_str(doc, "finished", r->finished);
    ddp_json_count(doc, "points", r->point_count);
    add_comm(doc, r);
    add_ranks(doc, r);
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
    .summary = "JSON lines, written as they arise: run, points and epochs, end",
    .shows = DDP_RECORD_ALL,
    .begin = begin,
    .point = point,
    .epoch = epoch,
    .end = end,
};
