/* The facts about a run in JSON. */
#ifndef DDP_REPORT_JSON_HEAD_H
#define DDP_REPORT_JSON_HEAD_H

#include "base/json.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

const char *ddp_status_name(enum ddp_status status); /* "complete", "partial", "failed" */
/* Adds the first keys of the document to doc, from "schema" to "environment". */
void ddp_json_head(cJSON *doc, const struct ddp_record *r);
/* Sets parent["comm_us"], the times to create, split and destroy the communicator. */
void ddp_json_comm(cJSON *parent, const struct ddp_record *r);
/* Sets doc["timer"], and doc["control"] to the memory-copy speeds. */
void ddp_json_controls(cJSON *doc, const struct ddp_record *r);

#ifdef __cplusplus
}
#endif
#endif
