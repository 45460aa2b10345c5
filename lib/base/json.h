/* JSON on top of cJSON, with stricter rules. Numbers that do not exist (NaN, Inf) become null.
 * Documents from outside are bounded in size and depth; duplicate keys and trailing bytes are
 * refused; keys are case sensitive.
 *
 * The digest of a document is FNV-1a 64 over the bytes of the file from its start up to, but not
 * including, the comma before the last key, "digest". It is written as "fnv1a64:<16 hex digits>".
 */
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

/* Sets obj[key] = value; NaN and infinities become null. */
void ddp_json_num(cJSON *obj, const char *key, double value);
/* Sets an integer. It is exact up to 2^53 and the nearest double beyond. A negative value, which
 * means "missing", becomes null. */
void ddp_json_count(cJSON *obj, const char *key, int64_t value);
void ddp_json_bool(cJSON *obj, const char *key, bool value);
/* Sets a string. NULL and "" become null; bytes that are not valid UTF-8 become U+FFFD. */
void ddp_json_str(cJSON *obj, const char *key, const char *value);
void ddp_json_null(cJSON *obj, const char *key);
cJSON *ddp_json_obj(cJSON *obj, const char *key);
cJSON *ddp_json_arr(cJSON *obj, const char *key);
/* Appends a new object to array `arr` and returns it. */
cJSON *ddp_json_append(cJSON *arr);

/* Parses a whole document; the caller releases *out with cJSON_Delete. DDP_EINPUT: the message has
 * `name` and the byte offset. */
int ddp_json_parse(const char *text, size_t bytes, const char *name, cJSON **out,
                   struct ddp_err *err) DDP_MUST_CHECK;

/* Appends `doc` to out, indented by two spaces per level, with a newline at the end. Arrays of
 * plain values stay on one line. A number is printed as the shortest text that reads back the same;
 * whole numbers have no exponent. Returns DDP_ENOMEM if memory is exhausted, or was exhausted while
 * the document was built. */
int ddp_json_print(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;
/* The same on one line, with a newline at the end, for files with one document per line. */
int ddp_json_print_line(const cJSON *doc, struct ddp_strbuf *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Prints `doc`, a non-empty object, like ddp_json_print, and appends the member "digest". */
int ddp_json_print_digest(const cJSON *doc, struct ddp_strbuf *out,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Returns DDP_EINPUT if the digest of the text is missing or differs. */
int ddp_json_check_digest(const char *text, size_t bytes, const char *name,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the 64-bit FNV-1a hash of data[n], continuing from `state` (at the start DDP_FNV_INIT).
 */
#define DDP_FNV_INIT 0xcbf29ce484222325u
uint64_t ddp_fnv1a(uint64_t state, const void *data, size_t n);

#ifdef __cplusplus
}
#endif
#endif
