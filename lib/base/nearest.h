/* Error messages about unknown names, with a hint that suggests the nearest legal name. */
#ifndef DDP_BASE_NEAREST_H
#define DDP_BASE_NEAREST_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function that returns the i-th legal name, or NULL past the last. `ctx` is the pointer that the
 * caller of the functions below passes. */
typedef const char *ddp_candidate(const void *ctx, int i);
/* Returns the candidate nearest to `text` by edit distance, or NULL if no candidate is near enough
 * for a suggestion. */
const char *ddp_nearest(const char *text, ddp_candidate *candidate, const void *ctx);
/* Sets the hint "did you mean 'NEAREST'?". If no candidate is near, the hint is `advice`, or the
 * list of all candidates if `advice` is NULL. Returns err->code. */
int ddp_hint_nearest(struct ddp_err *err, const char *text, ddp_candidate *candidate,
                     const void *ctx, const char *advice);
/* Fills *err with the message "unknown KIND 'TEXT'WHERE" and a hint with the nearest candidate, or
 * with all candidates if none is near. `where` is "" or begins with a space. Returns DDP_EUSAGE.
 */
int ddp_fail_unknown(struct ddp_err *err, const char *kind, const char *text, const char *where,
                     ddp_candidate *candidate, const void *ctx);

#ifdef __cplusplus
}
#endif
#endif
