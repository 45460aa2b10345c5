/* Declarations that json*.c share. */
#ifndef DDP_BASE_JSON_IMPL_H
#define DDP_BASE_JSON_IMPL_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Value of `valueint` that marks an object or array with a missing member. */
#define DDP_JSON_INCOMPLETE (-1)
/* Largest number of values in one document. cJSON needs about 64 bytes per value, so the values of
 * a document need at most about 1 GiB. */
#define DDP_JSON_MAX_VALUES (16u << 20)

/* Checks that text[bytes] is one JSON document (RFC 8259) within the limits above and in json.h. If
 * not, returns DDP_EINPUT. The check refuses \u0000, because cJSON would end the string there. */
int ddp_json_scan(const char *text, size_t bytes, const char *name,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
