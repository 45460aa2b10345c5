/* The points of a result document. Private to result_file.c. */
#ifndef DDP_RECORD_RESULT_POINTS_H
#define DDP_RECORD_RESULT_POINTS_H

#include "base/json.h"
#include "record/result_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills out->points and out->count; on failure what there is is the caller's to release. */
int ddp_result_read_points(const cJSON *doc, const char *name, struct ddp_result *out,
                           struct ddp_err *err) DDP_MUST_CHECK;

/* May a name begin with this character? Rows of a table begin with a name, and GitHub Actions takes
 * a line that begins with "::" or "##[" for a command. */
bool ddp_result_begins_name(char c);

/* result_launches.c: the points of one id, one a launch, become one: its median that of the
 * launches' medians, its interval the one of that median (six launches and more). DDP_EINPUT when
 * two points of one id are not of different launches. */
int ddp_result_fold_launches(struct ddp_result *r, const char *name,
                             struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
