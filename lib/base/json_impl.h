/* Between the files json*.c only. Users include json.h. */
#ifndef DDP_BASE_JSON_IMPL_H
#define DDP_BASE_JSON_IMPL_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In valueint of an object or array that memory ran out for. */
#define DDP_JSON_INCOMPLETE (-1)
/* Values in one document: cJSON takes about 64 bytes for each, so "[0,0,...": 1 GiB. */
#define DDP_JSON_MAX_VALUES (16u << 20)

/* Is text[bytes] one JSON document (RFC 8259) within the bounds of json.h? DDP_EINPUT with the
 * offset. Strict where cJSON is not: number grammar, control characters, UTF-8, lone surrogates,
 * trailing bytes; refuses \u0000, which cJSON would cut a string at. */
int ddp_json_scan(const char *text, size_t bytes, const char *name,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
