/* Reads the points of a result document. Used by result_*.c only. */
#ifndef DDP_RECORD_RESULT_POINTS_H
#define DDP_RECORD_RESULT_POINTS_H

#include "base/json.h"
#include "record/result_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills out->points and out->count. On failure the caller releases the points that were read. */
int ddp_result_read_points(const cJSON *doc, const char *name, struct ddp_result *out,
                           struct ddp_err *err) DDP_MUST_CHECK;

/* Returns whether a name may begin with this character, which must be a letter or a digit. Rows of
 * the table begin with a name, and GitHub Actions executes a line that begins with "::" or
 * "##[". */
bool ddp_result_begins_name(char c);

/* In result_launches.c. Merges the points with equal ids, one per repetition, into one point. Its
 * median is the median of the repetitions' medians. Its interval is the interval of that median,
 * which exists from six repetitions on. Returns DDP_EINPUT if two points have the same id and the
 * same repetition. */
int ddp_result_fold_launches(struct ddp_result *r, const char *name,
                             struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
