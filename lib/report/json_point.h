/* A point in the JSON document. Private to report_json.c and report_jsonl.c. */
#ifndef DDP_REPORT_JSON_POINT_H
#define DDP_REPORT_JSON_POINT_H

#include "base/json.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* samples: NULL, or [p->sample_count] ns. The caller owns what is returned. */
cJSON *ddp_json_point(const struct ddp_point *p, const double *samples);
/* Its members into an object that may have others before them. */
void ddp_json_point_into(cJSON *point, const struct ddp_point *p, const double *samples);

#ifdef __cplusplus
}
#endif
#endif
