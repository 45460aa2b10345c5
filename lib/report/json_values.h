/* Values of the JSON document beyond those of base/json.h. Missing values become null. */
#ifndef DDP_REPORT_JSON_VALUES_H
#define DDP_REPORT_JSON_VALUES_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets obj[key] to a time, converted from ns to us. */
void ddp_json_us(cJSON *obj, const char *key, double ns);
/* Sets obj[key] to [lo, hi], or to null if either is missing. */
void ddp_json_pair(cJSON *obj, const char *key, double lo, double hi);

#ifdef __cplusplus
}
#endif
#endif
