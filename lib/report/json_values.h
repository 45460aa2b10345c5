/* Values of the JSON document beyond those of base/json.h: what does not exist is null. Private to
 * report_json.c and json_*.c. */
#ifndef DDP_REPORT_JSON_VALUES_H
#define DDP_REPORT_JSON_VALUES_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A time: ns here, us in the document. */
void ddp_json_us(cJSON *obj, const char *key, double ns);
/* obj[key] = [lo, hi], or null when either does not exist. */
void ddp_json_pair(cJSON *obj, const char *key, double lo, double hi);

#ifdef __cplusplus
}
#endif
#endif
