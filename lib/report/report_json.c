/* The JSON document, schema ddpbench/1: results/schema/ddpbench-1.schema.json is the contract.
 *
 * Every key is always present; what does not exist is null. Times leave the record in ns and become
 * us here, under keys that say so. Adding a key: record.h, here, the schema; the schema test fails
 * until the three agree. */
#include <math.h>

#include "base/json.h"
#include "record/provenance.h"
#include "report/json_point.h"
#include "report/json_train.h"
#include "report/json_values.h"
#include "report/report.h"
#include "report/table_verdict.h"

static const char *status_name(enum ddp_status status)
{
    return status == DDP_STATUS_COMPLETE ? "complete"
           : status == DDP_STATUS_FAILED ? "failed"
                                         : "partial";
}

static void add_tool(cJSON *doc, const struct ddp_record *r)
{
    const struct ddp_build *build = ddp_build_info();
    cJSON *tool = ddp_json_obj(doc, "tool");
    ddp_json_str(tool, "version", build->version);
    ddp_json_str(tool, "commit", build->commit);
    ddp_json_bool(tool, "dirty", build->dirty);
    ddp_json_str(tool, "compiler", build->compiler);
    ddp_json_str(tool, "cflags", build->cflags);
    ddp_json_str(tool, "simd", r->simd);
    cJSON *features = ddp_json_obj(tool, "features");
    ddp_json_str(features, "mpi", r->feature_mpi);
    ddp_json_str(features, "nccl", r->feature_nccl);
    ddp_json_str(features, "cuda", r->feature_cuda);
    ddp_json_str(features, "blas", r->feature_blas);
}

/* The text of an argument as JSON can hold it; ddp_json_str is the one place that knows how. */
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

static void add_world(cJSON *doc, const struct ddp_record *r)
{
    cJSON *world = ddp_json_obj(doc, "world");
    ddp_json_count(world, "ranks", r->world_ranks);
    ddp_json_str(world, "backend", r->world_backend);
    ddp_json_str(world, "launcher", r->launcher);
    cJSON *hosts = ddp_json_arr(world, "hosts");
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        cJSON *host = cJSON_CreateObject();
        ddp_json_str(host, "name", h->name);
        ddp_json_count(host, "ranks", h->ranks);
        ddp_json_str(host, "cpu", h->cpu);
        ddp_json_count(host, "cores", h->cores);
        ddp_json_count(host, "usable_cores", h->usable_cores > 0 ? h->usable_cores : -1);
        ddp_json_count(host, "memory_bytes", h->memory_bytes);
        ddp_json_str(host, "kernel", h->kernel);
        ddp_json_str(host, "governor", h->governor);
        ddp_json_num(host, "load", h->load);
        cJSON_AddItemToArray(hosts, host);
    }
}

static void add_head(cJSON *doc, const struct ddp_record *r)
{
    ddp_json_str(doc, "schema", "ddpbench/1");
    ddp_json_str(doc, "status", status_name(r->status));
    ddp_json_str(doc, "reason", r->reason);
    ddp_json_str(doc, "label", r->label);
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
        if (e->value[0] == '\0') /* set, but empty: that is a value */
            cJSON_AddStringToObject(environment, e->key, "");
        else
            ddp_json_str(environment, e->key, e->value);
    }
}

static int render(const struct ddp_record *record, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    if (!doc)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the JSON document");
    add_head(doc, record);
    cJSON *points = ddp_json_arr(doc, "points");
    for (int i = 0; i < record->point_count; i++)
        cJSON_AddItemToArray(points, ddp_json_point(&record->points[i], record->samples[i]));
    cJSON *train = ddp_json_arr(doc, "train");
    for (int i = 0; i < record->train_count; i++)
        cJSON_AddItemToArray(train, ddp_json_train(&record->train[i]));
    int rc = ddp_json_comparison(doc, record, err);
    ddp_json_verdict(doc, record->verdict);
    if (rc == 0)
        rc = ddp_json_print_digest(doc, out, err);
    cJSON_Delete(doc);
    return rc;
}

const struct ddp_reporter ddp_reporter_json = {
    .name = "json",
    .summary = "one document, schema ddpbench/1; valid after every point",
    .document = true,
    .render = render,
};
