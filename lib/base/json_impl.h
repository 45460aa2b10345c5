/* Declarations shared by json*.c. Others include json.h. */
#ifndef DDP_BASE_JSON_IMPL_H
#define DDP_BASE_JSON_IMPL_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Mark in valueint of an object or array with a missing member. */
#define DDP_JSON_INCOMPLETE (-1)
/* Largest number of values in one document. cJSON takes about 64 bytes per value, so the limit is 1
 * GiB. */
#define DDP_JSON_MAX_VALUES (16u << 20)

/* Checks that text[bytes] is one JSON document (RFC 8259) within the bounds of json.h; DDP_EINPUT
 * with the offset. Stricter than cJSON in number grammar, control characters, UTF-8, lone
 * surrogates and trailing bytes. Also refuses \u0000, at which cJSON would cut a string. */
int ddp_json_scan(const char *text, size_t bytes, const char *name,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
