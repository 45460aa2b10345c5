/* The JSON document, schema ddpbench/1, as defined in results/schema/ddpbench-1.schema.json.
 *
 * Every key is always present. A missing value is null. Most times are ns in the record and us in
 * the document. Their keys name the unit. To add a key, change record.h, this reporter and the
 * schema. The schema test fails until the three agree. */
#include "base/json.h"
#include "report/json_head.h"
#include "report/json_point.h"
#include "report/json_train.h"
#include "report/report.h"
#include "report/table_verdict.h"

static int render(const struct ddp_record *record, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    if (!doc)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the JSON document");
    ddp_json_head(doc, record);
    ddp_json_controls(doc, record);
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
