/* JSON, on cJSON: what that library leaves open is closed here. Numbers that do not exist (NaN,
 * Inf) become null; documents from outside are bounded in size and depth, duplicate keys are
 * refused, keys are case sensitive, trailing bytes refused.
 *
 * The digest of a document is FNV-1a 64 over the bytes of the file from its start up to (not
 * including) the comma before the last key, "digest"; written as "fnv1a64:<16 hex digits>". */
#ifndef DDP_BASE_JSON_H
#define DDP_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_JSON_MAX_BYTES (256u << 20)
#define DDP_JSON_MAX_DEPTH 32

/* obj[key] = value; NaN and infinities become null. */
void ddp_json_num(cJSON *obj, const char *key, double value);
/* Exact up to 2^53; beyond, nearest double. Negative `missing` sentinel: value < 0 becomes null. */
void ddp_json_count(cJSON *obj, const char *key, int64_t value);
void ddp_json_bool(cJSON *obj, const char *key, bool value);
/* NULL or "" becomes null; bytes that are not valid UTF-8 become U+FFFD. */
void ddp_json_str(cJSON *obj, const char *key, const char *value);
void ddp_json_null(cJSON *obj, const char *key);
cJSON *ddp_json_obj(cJSON *obj, const char *key);
cJSON *ddp_json_arr(cJSON *obj, const char *key);
/* A new object at the end of array `arr`. */
cJSON *ddp_json_append(cJSON *arr);

/* Parses a whole document; *out is released with cJSON_Delete. DDP_EINPUT names `name` and the
 * offset. */
int ddp_json_parse(const char *text, size_t bytes, const char *name, cJSON **out,
                   struct ddp_err *err) DDP_MUST_CHECK;

/* Appends `doc` with two spaces an indent and a newline at the end; arrays of plain values stay on
 * a line. Numbers are the shortest text that reads back the same; whole ones have no exponent.
 * DDP_ENOMEM, also when memory had run out while the document was built: a member never vanishes.
 */
int ddp_json_print(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;
/* The same on one line, newline included: for files of one value a line. */
int ddp_json_print_line(const cJSON *doc, struct ddp_strbuf *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Pretty-prints `doc`, an object that is not empty, with the member "digest" appended last,
 * computed as said above. */
int ddp_json_print_digest(const cJSON *doc, struct ddp_strbuf *out,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* DDP_EINPUT when the digest of the text is missing or differs. */
int ddp_json_check_digest(const char *text, size_t bytes, const char *name,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* FNV-1a, 64 bits, of data[n], continuing from `state` (start: DDP_FNV_INIT). */
#define DDP_FNV_INIT 0xcbf29ce484222325u
uint64_t ddp_fnv1a(uint64_t state, const void *data, size_t n);

#ifdef __cplusplus
}
#endif
#endif
