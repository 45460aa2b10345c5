/* Training runs and their comparison in the JSON document. */
#ifndef DDP_REPORT_JSON_TRAIN_H
#define DDP_REPORT_JSON_TRAIN_H

#include "base/json.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the members of an item of epochs[]. */
void ddp_json_epoch_into(cJSON *epoch, const struct ddp_epoch *e);
/* Creates an item of train[], which the caller owns. */
cJSON *ddp_json_train(const struct ddp_train_run *r);
/* Sets doc["comparison"] to the rows of record/strategy_table.h, or to null if there is nothing to
 * compare. Returns DDP_ENOMEM. */
int ddp_json_comparison(cJSON *doc, const struct ddp_record *r, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
