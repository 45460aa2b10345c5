/* The tables of the record agree with results/schema: the same keys, types and names of choices. A
 * document has no key that is not in a table. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/mem.h"
#include "record/across.h"
#include "record/field.h"
#include "record/quality.h"
#include "record/strategy_table.h"
#include "record/verdict_record.h"
#include "report_sample.h"

static cJSON *schema;

/* Opens the schema relative to this program, which lies in build/HASH/tests/unit. */
static int load_schema(void **state)
{
    static const char name[] = "results/schema/ddpbench-1.schema.json";
    struct ddp_err err = DDP_ERR_INIT;
    char path[4096];
    size_t bytes;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof name - 1);
    (void)state;
    assert_true(n > 0);
    path[n] = '\0';
    for (int up = 0; up < 5; up++)
        *strrchr(path, '/') = '\0';
    snprintf(path + strlen(path), sizeof name + 1, "/%s", name);
    char *text = slurp(path, &bytes);
    const int rc = ddp_json_parse(text, bytes, path, &schema, &err);
    free(text);
    return rc;
}

static int release_schema(void **state)
{
    (void)state;
    cJSON_Delete(schema);
    return 0;
}

/* Follows "$ref", and takes the object of an object that may be null. */
static const cJSON *resolve(const cJSON *node)
{
    const cJSON *ref = cJSON_GetObjectItemCaseSensitive(node, "$ref");
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(node, "anyOf");
    if (cJSON_IsString(ref))
        return resolve(get(get(schema, "$defs"), strrchr(ref->valuestring, '/') + 1));
    return cJSON_GetArraySize(choices) == 2 ? cJSON_GetArrayItem(choices, 1) : node;
}

static bool has_keys(const cJSON *node)
{
    return cJSON_GetObjectItemCaseSensitive(resolve(node), "properties") != NULL;
}

/* Returns the schema of the value at a path, below the schema of an object. */
static const cJSON *node_at(const cJSON *node, const char *path)
{
    char key[64];
    while (path) {
        const size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        node = cJSON_GetObjectItemCaseSensitive(get(resolve(node), "properties"), key);
        if (!node)
            fail_msg("the schema has no '%s'", key);
        path = path[n] ? path + n + 1 : NULL;
    }
    return node;
}

/* True if the text is in the list, or is the list. */
static bool lists(const cJSON *list, const char *text)
{
    const cJSON *item;
    if (cJSON_IsString(list))
        return strcmp(list->valuestring, text) == 0;
    cJSON_ArrayForEach(item, list) if (cJSON_IsString(item) &&
                                       strcmp(item->valuestring, text) == 0) return true;
    return false;
}

static const char *type_of(const struct ddp_field *f)
{
    static const char *const types[] = {
        [DDP_FIELD_TEXT] = "string",     [DDP_FIELD_PATH] = "string",
        [DDP_FIELD_BORROWED] = "string", [DDP_FIELD_BOOL] = "boolean",
        [DDP_FIELD_ENUM] = "string",     [DDP_FIELD_HASH] = "string",
        [DDP_FIELD_COUNT] = "integer",   [DDP_FIELD_RANGE] = "array",
        [DDP_FIELD_LIST] = "array",      [DDP_FIELD_TIME_RANGE] = "array",
        [DDP_FIELD_NUMBER] = "number",   [DDP_FIELD_TIME] = "number",
        [DDP_FIELD_OBJECT] = "object",   [DDP_FIELD_SET] = "array"};
    return types[f->kind];
}

/* An ENUM or SET has exactly the names of the schema. */
static void check_choices(const struct ddp_field *f, const cJSON *legal)
{
    const cJSON *item;
    const int count = (int)(f->most - f->least) + 1;
    int names = 0;
    cJSON_ArrayForEach(item, legal) names += cJSON_IsString(item);
    if (names != count)
        fail_msg("'%s' has %d names in the schema, not %d", f->path, names, count);
    for (int i = (int)f->least; i <= f->most; i++)
        if (!lists(legal, f->choices[i]))
            fail_msg("'%s': the schema lacks '%s'", f->path, f->choices[i]);
}

/* A text may have a list of legal values in the schema, or only one. */
static void check_type(const struct ddp_field *f, const cJSON *node)
{
    const cJSON *legal = cJSON_GetObjectItemCaseSensitive(resolve(node), "enum");
    const cJSON *constant = cJSON_GetObjectItemCaseSensitive(node, "const");
    struct ddp_field_value value;
    if (constant) {
        ddp_field_get(f, NULL, &value);
        assert_string_equal(value.text, constant->valuestring);
        return;
    }
    if (f->kind == DDP_FIELD_SET)
        check_choices(f, get(get(node, "items"), "enum"));
    if (!legal) {
        if (!lists(get(resolve(node), "type"), type_of(f)) || f->kind == DDP_FIELD_ENUM)
            fail_msg("'%s' has another type in the schema", f->path);
        return;
    }
    if (f->kind == DDP_FIELD_ENUM)
        check_choices(f, legal);
}

/* True for keys that older documents of the same schema lack. */
static bool added_later(const char *path)
{
    static const char *const paths[] = {"gpus",
                                        "pays_below_GBps",
                                        "verdict",
                                        "quality",
                                        "series.shift",
                                        "nic",
                                        "nic.name",
                                        "congestion_control",
                                        "conditions.tcp_segments",
                                        "conditions.retransmits",
                                        "conditions.tcp_timeouts",
                                        "conditions.tcp_drops",
                                        "conditions.nic_errors",
                                        "conditions.nic_drops",
                                        "conditions.clock_MHz",
                                        "conditions.oversubscribed",
                                        "check.operations",
                                        "epochs.exchange_busbw_GBps",
                                        "exchange_busbw_GBps",
                                        "device_max_us",
                                        "compress.block",
                                        "compress.rank",
                                        "compress.stochastic",
                                        "sends_less",
                                        "phase_us.encode_ci95",
                                        "phase_us.exchange_ci95",
                                        "phase_us.decode_ci95",
                                        "split",
                                        "busiest_bytes",
                                        "imbalance",
                                        "symmetric",
                                        "note",
                                        "tool.features.ucx",
                                        "world.nccl_blocking",
                                        "world.transports",
                                        "world.rank_devices",
                                        "max_pairs",
                                        "runs",
                                        "varied",
                                        "unjudged",
                                        "accuracy",
                                        "base.edited",
                                        "new.edited",
                                        "resent_percent",
                                        "rounds",
                                        "group_ends",
                                        "collective",
                                        "median_pairs",
                                        "median_seconds",
                                        "optimizer.state_bytes",
                                        "arrival",
                                        "straggler"};
    for (size_t i = 0; i < DDP_COUNT_OF(paths); i++)
        if (strcmp(path, paths[i]) == 0)
            return true;
    return false;
}

/* True if the text is in a list that ends with NULL. The list may be NULL. */
static bool contains(const char *const *list, const char *text)
{
    for (; list && *list; list++)
        if (strcmp(*list, text) == 0)
            return true;
    return false;
}

/* Checks that every value of the schema is in the table, and that every key is required.
 * elsewhere: NULL, or the keys that other tables have. */
static void check_keys(const struct ddp_fields *fields, const cJSON *node, const char *prefix,
                       const char *const *elsewhere)
{
    const cJSON *keys = get(resolve(node), "properties"), *key;
    cJSON_ArrayForEach(key, keys)
    {
        char path[256];
        snprintf(path, sizeof path, "%s%s", prefix, key->string);
        if (contains(elsewhere, path))
            continue;
        if (!lists(get(resolve(node), "required"), key->string) && !added_later(path))
            fail_msg("'%s' is not required", path);
        if (has_keys(key)) {
            snprintf(path + strlen(path), 2, ".");
            check_keys(fields, key, path, elsewhere);
        } else if (!ddp_fields_find(fields, path)) {
            fail_msg("the table lacks '%s'", path);
        }
    }
}

static void check_part(const struct ddp_fields *fields, const cJSON *node,
                       const char *const *elsewhere)
{
    for (size_t i = 0; i < fields->count; i++)
        if (fields->field[i].path)
            check_type(&fields->field[i], node_at(node, fields->field[i].path));
    check_keys(fields, node, "", elsewhere);
}

static void check_table(const struct ddp_fields *fields, const cJSON *node)
{
    check_part(fields, node, NULL);
}

/* Returns a table with the rows of both tables. It is valid until the next call. */
static const struct ddp_fields *joined(const struct ddp_fields *a, const struct ddp_fields *b)
{
    static struct ddp_field rows[64];
    static struct ddp_fields both = {.field = rows};
    both.count = a->count + b->count;
    assert_true(both.count <= DDP_COUNT_OF(rows));
    memcpy(rows, a->field, a->count * sizeof *rows);
    memcpy(rows + a->count, b->field, b->count * sizeof *rows);
    return &both;
}

/* Returns the rows of the figures of a matrix. */
static const struct ddp_fields *figures(void)
{
    static struct ddp_field rows[DDP_MATRIX_FIGURES];
    static const struct ddp_fields fields = {rows, DDP_MATRIX_FIGURES};
    for (int i = 0; i < DDP_MATRIX_FIGURES; i++)
        rows[i] = (struct ddp_field){.kind = DDP_FIELD_LIST, .path = ddp_matrix_figures[i].key};
    return &fields;
}

/* Keys of a document, of its verdict and of a finding that belong to other tables or to none. */
static const char *const in_document[] = {"control",    "points",  "train",  "left_out",
                                          "comparison", "verdict", "matrix", "health",
                                          "pays",       "digest",  NULL};
static const char *const in_verdict[] = {"selftest", "across", NULL};
static const char *const in_health[] = {"power", "findings", "ranks", "differences", NULL};
static const char *const in_finding[] = {"host", "to_host", "text", NULL};

static const cJSON *def(const char *name)
{
    return get(get(schema, "$defs"), name);
}

static void test_schema(void **state)
{
    (void)state;
    check_table(&ddp_point_fields, def("point"));
    check_table(&ddp_train_fields, def("train"));
    check_table(&ddp_epoch_fields, get(node_at(def("train"), "epochs"), "items"));
    check_table(&ddp_control_fields, get(node_at(schema, "control"), "items"));
    check_table(&ddp_left_out_fields, get(node_at(schema, "left_out"), "items"));
    check_table(&ddp_strategy_fields, def("strategy"));
    const cJSON *host = get(node_at(schema, "world.hosts"), "items");
    check_table(&ddp_host_fields, host);
    check_table(&ddp_gpu_fields, get(node_at(host, "gpus"), "items"));
    check_table(&ddp_rank_fields, get(node_at(schema, "world.rank_devices"), "items"));
    const cJSON *pays = node_at(schema, "pays");
    const cJSON *link = get(node_at(pays, "links"), "items");
    for (size_t i = 0; i < ddp_pays_fields.count; i++)
        check_type(&ddp_pays_fields.field[i], node_at(pays, ddp_pays_fields.field[i].path));
    for (size_t i = 0; i < ddp_pays_link_fields.count; i++)
        check_type(&ddp_pays_link_fields.field[i],
                   node_at(link, ddp_pays_link_fields.field[i].path));
    check_table(&ddp_pays_method_fields, def("pays_method"));
}

static void test_schema_of_the_head(void **state)
{
    (void)state;
    check_part(joined(&ddp_record_fields, &ddp_timer_fields), schema, in_document);
    const cJSON *matrix = node_at(schema, "matrix");
    check_table(joined(&ddp_matrix_fields, figures()), matrix);
    check_table(&ddp_matrix_end_fields, get(node_at(matrix, "ends"), "items"));
    const cJSON *health = node_at(schema, "health");
    check_part(&ddp_health_fields, health, in_health);
    check_table(&ddp_health_power_fields, get(node_at(health, "power"), "items"));
    check_table(&ddp_health_rank_fields, get(node_at(health, "ranks"), "items"));
    check_part(&ddp_health_finding_fields, get(node_at(health, "findings"), "items"), in_finding);
}

static void test_schema_of_the_verdict(void **state)
{
    const cJSON *verdict = node_at(schema, "verdict");
    const cJSON *across = node_at(verdict, "across");
    (void)state;
    check_part(&ddp_verdict_fields, verdict, in_verdict);
    check_table(&ddp_noise_fields, node_at(verdict, "selftest"));
    check_table(&ddp_verdict_cell_fields, get(node_at(verdict, "cells"), "items"));
    check_table(&ddp_unjudged_fields, get(node_at(verdict, "unjudged"), "items"));
    check_table(&ddp_verdict_accuracy_fields, get(node_at(verdict, "accuracy"), "items"));
    check_table(joined(&ddp_across_document_fields, &ddp_result_fields),
                get(node_at(across, "documents"), "items"));
    check_table(&ddp_across_difference_fields, get(node_at(across, "differences"), "items"));
    check_table(&ddp_across_cell_fields, get(node_at(across, "ratios"), "items"));
}

/* Checks that every key of an object is the path of a row. */
static void check_shown(const struct ddp_fields *fields, const cJSON *object, const char *prefix,
                        const char *const *elsewhere)
{
    const cJSON *item;
    assert_true(cJSON_IsObject(object) && object->child);
    cJSON_ArrayForEach(item, object)
    {
        char path[256];
        snprintf(path, sizeof path, "%s%s", prefix, item->string);
        if (contains(elsewhere, path) || ddp_fields_find(fields, path))
            continue;
        if (!cJSON_IsObject(item))
            fail_msg("'%s' is in the document, but in no table", path);
        snprintf(path + strlen(path), 2, ".");
        check_shown(fields, item, path, elsewhere);
    }
}

/* Checks the first item of a list. */
static void check_item(const struct ddp_fields *fields, const cJSON *object, const char *list)
{
    check_shown(fields, get(object, list)->child, "", NULL);
}

static void check_verdict(const cJSON *verdict)
{
    const cJSON *across = get(verdict, "across");
    check_shown(&ddp_verdict_fields, verdict, "", NULL);
    check_shown(&ddp_noise_fields, get(verdict, "selftest"), "", NULL);
    check_item(&ddp_verdict_cell_fields, verdict, "cells");
    check_item(&ddp_unjudged_fields, verdict, "unjudged");
    check_item(&ddp_verdict_accuracy_fields, verdict, "accuracy");
    check_item(joined(&ddp_across_document_fields, &ddp_result_fields), across, "documents");
    check_item(&ddp_across_difference_fields, across, "differences");
    check_item(&ddp_across_cell_fields, across, "ratios");
}

static void check_document(const cJSON *doc)
{
    const cJSON *world = get(doc, "world"), *matrix = get(doc, "matrix");
    check_shown(joined(&ddp_record_fields, &ddp_timer_fields), doc, "", in_document);
    check_item(&ddp_host_fields, world, "hosts");
    check_item(&ddp_rank_fields, world, "rank_devices");
    check_item(&ddp_control_fields, doc, "control");
    check_item(&ddp_point_fields, doc, "points");
    check_item(&ddp_train_fields, doc, "train");
    check_item(&ddp_epoch_fields, get(doc, "train")->child, "epochs");
    check_item(&ddp_left_out_fields, doc, "left_out");
    check_shown(joined(&ddp_matrix_fields, figures()), matrix, "", NULL);
    check_item(&ddp_matrix_end_fields, matrix, "ends");
    check_verdict(get(doc, "verdict"));
}

/* Every key of a document that has all parts comes from a table. */
static void test_documents_have_no_other_keys(void **state)
{
    static struct ddp_verdict_cell cell;
    static struct ddp_verdict_accuracy accuracy;
    static const struct ddp_noise noise;
    static const struct ddp_result result;
    static struct ddp_across_document document = {"a", &result};
    static struct ddp_across_cell ratio = {.document = 1};
    static struct ddp_across_difference difference = {.document = 1};
    const struct ddp_across across = {&document, &ratio, &difference, 1, 1, 1};
    const struct ddp_rank_device rank = {.device = -1};
    struct ddp_verdict_record v = {.kind = DDP_BY_GATE,
                                   .cells = &cell,
                                   .count = 1,
                                   .accuracy = &accuracy,
                                   .accuracy_count = 1,
                                   .noise = &noise,
                                   .across = &across};
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_train_run run;
    struct ddp_epoch epoch;
    struct ddp_record r;
    cJSON *doc;
    (void)state;
    make_record(&r);
    ddp_train_run_init(&run);
    ddp_epoch_init(&epoch);
    add_point(&r, 64, 10);
    assert_int_equal(ddp_record_add_train(&r, &run, &err), 0);
    assert_int_equal(ddp_record_add_epoch(&r, &epoch, &err), 0);
    assert_int_equal(ddp_record_add_control(&r, &(struct ddp_control){.ranks = 2}, &err), 0);
    assert_int_equal(ddp_record_add_left_out(&r, &(struct ddp_left_out){.ranks = 2}, &err), 0);
    assert_int_equal(ddp_record_set_ranks(&r, &rank, 1, &err), 0);
    assert_int_equal(ddp_matrix_init(&r.matrix, 1, &err), 0);
    assert_int_equal(ddp_unjudged_add(&v.unjudged, "d", true, false, &err), 0);
    r.verdict = &v;
    assert_int_equal(ddp_reporter_find("json")->render(&r, &text, &err), 0);
    assert_int_equal(ddp_json_parse(text.text, text.length, "x", &doc, &err), 0);
    check_document(doc);
    cJSON_Delete(doc);
    free(v.unjudged.items);
    ddp_strbuf_release(&text);
    ddp_record_release(&r);
}

/* A value that is not valid keeps the member as it is, and a long text is cut. */
static void test_read_only_what_is_valid(void **state)
{
    static const char text[] =
        "{\"status\": \"odd\", \"label\": 3, \"note\": \"a\\u001b <b>\", \"seed\": 2.5, "
        "\"finished\": \"2026-01-01T00:00:00Z and more\", \"world\": {\"ranks\": -2, "
        "\"comm_us\": {\"init\": 1.5, \"split\": \"slow\"}}, \"tool\": {\"version\": \"1\\u0007\", "
        "\"commit\": 7, \"dirty\": \"yes\"}}";
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_record r;
    cJSON *doc;
    (void)state;
    assert_int_equal(ddp_json_parse(text, sizeof text - 1, "x", &doc, &err), 0);
    ddp_record_init(&r);
    r.build = (struct ddp_build){.dirty = true};
    ddp_fields_init(&ddp_record_fields, &r);
    ddp_fields_read_valid(&ddp_record_fields, doc, &r);
    assert_int_equal(r.status, DDP_STATUS_PARTIAL);
    assert_string_equal(r.label, "");
    assert_string_equal(r.note, "a? <b>");
    assert_int_equal(strlen(r.finished), sizeof r.finished - 1);
    assert_true(r.seed == -1 && r.world_ranks == 0 && r.build.dirty);
    assert_true(r.comm_init_ns == 1500 && isnan(r.comm_split_ns) && isnan(r.comm_destroy_ns));
    assert_string_equal(r.build.version, "1?");
    assert_string_equal(r.build.commit, "");
    ddp_record_release(&r);
    cJSON_Delete(doc);
}

/* A set ignores names that it does not know. The journal does not store the quality of a point. */
static void test_sets(void **state)
{
    static const char text[] = "{\"quality\": [\"busy\", \"newer\", 3, \"drifting\"]}";
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_point p;
    cJSON *doc, *line = cJSON_CreateObject();
    (void)state;
    assert_int_equal(ddp_json_parse(text, sizeof text - 1, "x", &doc, &err), 0);
    ddp_point_init(&p);
    assert_null(ddp_fields_read(&ddp_point_fields, doc, "quality", &p));
    assert_int_equal(p.quality, 1u << DDP_QUALITY_BUSY | 1u << DDP_QUALITY_DRIFTING);
    ddp_fields_store(&ddp_point_fields, &p, line);
    assert_null(cJSON_GetObjectItemCaseSensitive(line, "quality"));
    cJSON_Delete(doc);
    cJSON_Delete(line);
}

/* Every value of a point and of an epoch has a column, except what a column cannot hold. The text
 * of the compressor contains its method. */
static void test_columns(void **state)
{
    static const struct ddp_fields *const tables[] = {&ddp_point_fields, &ddp_epoch_fields};
    (void)state;
    for (size_t t = 0; t < DDP_COUNT_OF(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++) {
            const struct ddp_field *f = &tables[t]->field[i];
            if (f->path && !f->column && f->kind != DDP_FIELD_OBJECT && f->kind != DDP_FIELD_LIST &&
                strcmp(f->path, "compress.method") != 0)
                fail_msg("'%s' has no column", f->path);
        }
}

/* A member whose path is read gets the value that was shown. */
static void test_read_what_was_shown(void **state)
{
    struct ddp_point p, back;
    cJSON *doc = cJSON_CreateObject();
    (void)state;
    ddp_point_init(&p);
    p.spec.coll = DDP_BROADCAST;
    p.spec.ranks = 3;
    p.time_ns.median = 2000;
    p.time_ns.ci95_lo = 1000;
    p.time_ns.ci95_hi = 3000;
    ddp_fields_show(&ddp_point_fields, &p, doc);
    ddp_point_init(&back);
    for (size_t i = 0; i < ddp_point_fields.count; i++) {
        const struct ddp_field *f = &ddp_point_fields.field[i];
        const bool in_null = f->path && !ddp_field_item(doc, f->path);
        if (f->name && f->path && !f->applies && !in_null)
            assert_null(ddp_fields_read(&ddp_point_fields, doc, f->path, &back));
    }
    assert_int_equal(back.spec.coll, DDP_BROADCAST);
    assert_int_equal(back.spec.ranks, 3);
    assert_int_equal(back.check_wrong, -1);
    assert_true(back.time_ns.median == 2000 && back.time_ns.ci95_hi == 3000);
    assert_true(isnan(back.time_ns.p99));
    assert_string_equal(ddp_fields_read(&ddp_point_fields, doc, "time_us", &back) ? "refused" : "",
                        "refused");
    cJSON_Delete(doc);
}

/* Texts fit in struct ddp_field_value, so no reporter cuts their ends off. */
static void test_text_sizes(void **state)
{
    static const struct ddp_fields *const tables[] = {
        &ddp_point_fields,    &ddp_train_fields, &ddp_epoch_fields,     &ddp_control_fields,
        &ddp_host_fields,     &ddp_gpu_fields,   &ddp_left_out_fields,  &ddp_rank_fields,
        &ddp_strategy_fields, &ddp_pays_fields,  &ddp_pays_link_fields, &ddp_pays_method_fields,
        &ddp_record_fields,   &ddp_timer_fields, &ddp_verdict_fields,   &ddp_verdict_cell_fields,
        &ddp_result_fields};
    struct ddp_train_run run = {.epoch_count = 0};
    struct ddp_field_value v;
    (void)state;
    for (size_t t = 0; t < DDP_COUNT_OF(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++) {
            const struct ddp_field *f = &tables[t]->field[i];
            if (f->name && (f->kind == DDP_FIELD_TEXT || f->kind == DDP_FIELD_PATH) &&
                f->bytes > DDP_FIELD_TEXT_BYTES)
                fail_msg("'%s' has %zu bytes", f->name, f->bytes);
        }
    memset(run.partition, '1', sizeof run.partition - 1);
    ddp_fields_printable(&ddp_train_fields, &run);
    assert_int_equal(strlen(run.partition), sizeof run.partition - 1);
    ddp_field_get(ddp_fields_find(&ddp_train_fields, "sync.partition"), &run, &v);
    assert_string_equal(v.text, run.partition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema),
        cmocka_unit_test(test_schema_of_the_head),
        cmocka_unit_test(test_schema_of_the_verdict),
        cmocka_unit_test(test_documents_have_no_other_keys),
        cmocka_unit_test(test_read_only_what_is_valid),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_read_what_was_shown),
        cmocka_unit_test(test_text_sizes),
    };
    return cmocka_run_group_tests(tests, load_schema, release_schema);
}
