/* The tables of the record agree with results/schema: the same keys, types and names of choices. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/mem.h"
#include "record/field.h"
#include "record/strategy_table.h"
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
        [DDP_FIELD_TEXT] = "string",      [DDP_FIELD_PATH] = "string",
        [DDP_FIELD_BOOL] = "boolean",     [DDP_FIELD_ENUM] = "string",
        [DDP_FIELD_HASH] = "string",      [DDP_FIELD_COUNT] = "integer",
        [DDP_FIELD_RANGE] = "array",      [DDP_FIELD_LIST] = "array",
        [DDP_FIELD_TIME_RANGE] = "array", [DDP_FIELD_NUMBER] = "number",
        [DDP_FIELD_TIME] = "number",      [DDP_FIELD_OBJECT] = "object",
        [DDP_FIELD_SET] = "array"};
    return types[f->kind];
}

/* An ENUM has exactly the names of the schema. Other values may have a list of legal ones. */
static void check_type(const struct ddp_field *f, const cJSON *node)
{
    const cJSON *legal = cJSON_GetObjectItemCaseSensitive(node, "enum"), *item;
    int names = 0;
    if (!legal) {
        if (!lists(get(resolve(node), "type"), type_of(f)) || f->kind == DDP_FIELD_ENUM)
            fail_msg("'%s' has another type in the schema", f->path);
        return;
    }
    cJSON_ArrayForEach(item, legal) names += cJSON_IsString(item);
    if (f->kind != DDP_FIELD_ENUM)
        return;
    if (names != f->most + 1)
        fail_msg("'%s' has %d names in the schema, not %d", f->path, names, f->most + 1);
    for (int i = 0; i <= f->most; i++)
        if (!lists(legal, f->choices[i]))
            fail_msg("'%s': the schema lacks '%s'", f->path, f->choices[i]);
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
                                        "symmetric"};
    for (size_t i = 0; i < DDP_COUNT_OF(paths); i++)
        if (strcmp(path, paths[i]) == 0)
            return true;
    return false;
}

/* Checks that every value of the schema is in the table, and that every key is required. */
static void check_keys(const struct ddp_fields *fields, const cJSON *node, const char *prefix)
{
    const cJSON *keys = get(resolve(node), "properties"), *key;
    cJSON_ArrayForEach(key, keys)
    {
        char path[256];
        snprintf(path, sizeof path, "%s%s", prefix, key->string);
        if (!lists(get(resolve(node), "required"), key->string) && !added_later(path))
            fail_msg("'%s' is not required", path);
        if (has_keys(key)) {
            snprintf(path + strlen(path), 2, ".");
            check_keys(fields, key, path);
        } else if (!ddp_fields_find(fields, path)) {
            fail_msg("the table lacks '%s'", path);
        }
    }
}

static void check_table(const struct ddp_fields *fields, const cJSON *node)
{
    for (size_t i = 0; i < fields->count; i++)
        if (fields->field[i].path)
            check_type(&fields->field[i], node_at(node, fields->field[i].path));
    check_keys(fields, node, "");
}

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
        &ddp_strategy_fields, &ddp_pays_fields,  &ddp_pays_link_fields, &ddp_pays_method_fields};
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
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_read_what_was_shown),
        cmocka_unit_test(test_text_sizes),
    };
    return cmocka_run_group_tests(tests, load_schema, release_schema);
}
