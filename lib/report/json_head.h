/* The head of a run in JSON, for the document and for the first and last line of a stream. Used by
 * report_json.c and report_jsonl.c. */
#ifndef DDP_REPORT_JSON_HEAD_H
#define DDP_REPORT_JSON_HEAD_H

#include "base/json.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

const char *ddp_status_name(enum ddp_status status); /* "complete", "partial", "failed" */
/* Adds the keys "schema" to "environment" to doc. */
void ddp_json_head(cJSON *doc, const struct ddp_record *r);
/* Sets parent["comm_us"], which is known when the run ends. */
void ddp_json_comm(cJSON *parent, const struct ddp_record *r);
/* Sets doc["timer"] and doc["control"]. */
void ddp_json_controls(cJSON *doc, const struct ddp_record *r);

#ifdef __cplusplus
}
#endif
#endif
