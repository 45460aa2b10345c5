/* Training runs, and what they say about strategies, in the JSON document. Private to
 * report_json.c and report_jsonl.c. */
#ifndef DDP_REPORT_JSON_TRAIN_H
#define DDP_REPORT_JSON_TRAIN_H

#include "base/json.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The members of an item of epochs[]. */
void ddp_json_epoch_into(cJSON *epoch, const struct ddp_epoch *e);
/* An item of train[]. */
cJSON *ddp_json_train(const struct ddp_train_run *r);
/* doc["comparison"]: rows of record/strategy_table.h, null when there is nothing to compare.
 * DDP_ENOMEM. */
int ddp_json_comparison(cJSON *doc, const struct ddp_record *r, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
