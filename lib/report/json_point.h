/* A point in the JSON document. */
#ifndef DDP_REPORT_JSON_POINT_H
#define DDP_REPORT_JSON_POINT_H

#include "base/json.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates the object of a point, which the caller owns. `samples` is NULL or holds the times of
 * p->sample_count iterations, in ns. */
cJSON *ddp_json_point(const struct ddp_point *p, const double *samples);
/* Adds the members of a point to an object that may already have others. */
void ddp_json_point_into(cJSON *point, const struct ddp_point *p, const double *samples);

#ifdef __cplusplus
}
#endif
#endif
