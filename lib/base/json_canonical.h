/* The canonical form of a JSON document, as defined in RFC 8785 (JCS). Documents with equal values
 * have equal canonical forms, whatever their white space, order of keys, escapes and spelling of
 * numbers. */
#ifndef DDP_BASE_JSON_CANONICAL_H
#define DDP_BASE_JSON_CANONICAL_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The text of a number, with its NUL, needs at most this many bytes. */
#define DDP_JSON_NUMBER_BYTES 32

/* The value of `valueint` in a raw item that ddp_json_append_printed added. The text of the item is
 * followed by a NUL and by the canonical form of the item. */
#define DDP_JSON_PRINTED (-2)
static inline bool ddp_json_is_printed(const cJSON *item)
{
    return cJSON_IsRaw(item) && item->valueint == DDP_JSON_PRINTED;
}

/* Writes a number in the form of ECMAScript: the shortest decimal number that reads back as the
 * same double. If there are several such numbers, writes the one that is closest to the double. A
 * NaN or infinity becomes "null", as in the documents of ddpbench. */
void ddp_json_shortest(double value, char out[DDP_JSON_NUMBER_BYTES]);

/* Appends the canonical form of `doc`, but leaves out the member `without` of the outermost object.
 * `without` may be NULL. Returns DDP_ENOMEM if memory is exhausted. */
int ddp_json_canonical(const cJSON *doc, const char *without, struct ddp_strbuf *out,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
