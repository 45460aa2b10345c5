/* Builds, prints and parses JSON. NaN and infinities become null. The parser limits the size, depth
 * and number of values of a document. It refuses duplicate keys and trailing bytes. Keys are case
 * sensitive.
 *
 * A document can have the member "digest". The digest is the 64-bit FNV-1a hash of the document's
 * canonical form (json_canonical.h) without this member. It is written as "jcs-fnv1a64:<16 hex
 * digits>". A program that rewrites a document but keeps all values, such as `jq .`, does not
 * change the digest. Earlier versions wrote "fnv1a64:<16 hex digits>" as the last member "digest".
 * This older digest is the hash of all bytes before the comma in front of the member. It is still
 * accepted, but no longer written. */
#ifndef DDP_BASE_JSON_H
#define DDP_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_JSON_MAX_BYTES (256u << 20)
#define DDP_JSON_MAX_DEPTH 32

/* Sets obj[key] = value; NaN and infinities become null. */
void ddp_json_num(cJSON *obj, const char *key, double value);
/* Sets obj[key] to an integer. Above 2^53 the integer is rounded to the nearest double. A negative
 * value means "missing" and becomes null. */
void ddp_json_count(cJSON *obj, const char *key, int64_t value);
void ddp_json_bool(cJSON *obj, const char *key, bool value);
/* Sets obj[key] to a string. NULL and "" become null. Bytes that are not valid UTF-8 become
 * U+FFFD. */
void ddp_json_str(cJSON *obj, const char *key, const char *value);
void ddp_json_null(cJSON *obj, const char *key);
cJSON *ddp_json_obj(cJSON *obj, const char *key);
cJSON *ddp_json_arr(cJSON *obj, const char *key);
/* Appends a new object to array `arr` and returns it. */
cJSON *ddp_json_append(cJSON *arr);

/* *out becomes new memory with the text of `item`, printed for a document in which `item` is
 * indented by `indent` spaces. A NUL and the canonical form of `item` follow this text. A document
 * that is printed several times can contain the text (ddp_json_append_printed) instead of the item,
 * and is then printed faster. The caller frees *out. Returns DDP_ENOMEM if memory is exhausted. */
int ddp_json_preprint(const cJSON *item, size_t indent, char **out,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Appends a number, or null if it is not finite. */
void ddp_json_append_num(cJSON *arr, double value);
/* Appends an empty array and returns it. */
cJSON *ddp_json_append_arr(cJSON *arr);
/* Appends a text from ddp_json_preprint to array `arr`. The text must outlive the document. */
void ddp_json_append_printed(cJSON *arr, const char *text);

/* Parses a whole document. The caller releases *out with cJSON_Delete. Returns DDP_EINPUT if the
 * text is not legal JSON, contains a key twice, or exceeds a limit. Returns DDP_ENOMEM if memory is
 * exhausted. The message contains `name`. */
int ddp_json_parse(const char *text, size_t bytes, const char *name, cJSON **out,
                   struct ddp_err *err) DDP_MUST_CHECK;

/* Appends `doc` to `out`, indented by two spaces per level, with a newline at the end. An array
 * without objects or arrays stays on one line. A number is printed with at most 17 significant
 * digits, and reads back as the same value. Whole numbers up to 2^53 have no exponent. Returns
 * DDP_ENOMEM if memory ran out now or while the document was built. */
int ddp_json_print(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Like ddp_json_print, but prints the document on one line, for files with one document per
 * line. */
int ddp_json_print_line(const cJSON *doc, struct ddp_strbuf *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Like ddp_json_print, but adds the member "digest" at the end. `doc` must be a non-empty
 * object. */
int ddp_json_print_digest(const cJSON *doc, struct ddp_strbuf *out,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Parses a document and checks its digest. Returns the errors of ddp_json_parse. If `changed` is
 * NULL, a missing or wrong digest is the error DDP_EINPUT. If `changed` is not NULL, such a
 * document is accepted, and *changed becomes true if the digest is missing or wrong, else false.
 * The caller releases *out with cJSON_Delete. */
int ddp_json_parse_digest(const char *text, size_t bytes, const char *name, bool *changed,
                          cJSON **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Prints `doc` to `out`. Always releases `doc`. Returns DDP_ENOMEM if `doc` is NULL or incomplete,
 * or if memory is exhausted. Does not report a failed write: the caller flushes `out` and checks
 * ferror(out). */
int ddp_json_write(cJSON *doc, FILE *out, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
