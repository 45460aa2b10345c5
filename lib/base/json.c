/* Builds, prints and parses JSON documents, and computes their digest. cJSON holds a document in
 * memory. The parser of cJSON is lenient, so scan_document checks a text before cJSON parses it.
 * The printer of cJSON is not used, because it indents by tabs and prints large counts as 1e+15. */
#include "base/json.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_canonical.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/unit.h"

#define DIGEST_PREFIX      "jcs-fnv1a64:"
#define BYTE_DIGEST_PREFIX "fnv1a64:" /* digests of earlier versions */
#define DIGEST_BYTES       32         /* bytes that suffice for a digest, with its NUL */
/* Value of `valueint` that marks an object or array as incomplete; see added(). */
#define INCOMPLETE (-1)
/* Largest number of values in one document. cJSON needs about 64 bytes per value, so the values of
 * a document need at most about 1 GiB. */
#define MAX_VALUES (16u << 20)

/* Returns `item`. If it is NULL, there was no memory for it, and the function marks the object or
 * array as incomplete. Printing a marked document fails. The mark is in the field `valueint`, which
 * cJSON uses only for numbers. */
static cJSON *added(cJSON *obj, cJSON *item)
{
    if (!item && obj)
        obj->valueint = INCOMPLETE;
    return item;
}

void ddp_json_num(cJSON *obj, const char *key, double value)
{
    if (isfinite(value))
        added(obj, cJSON_AddNumberToObject(obj, key, value));
    else
        ddp_json_null(obj, key);
}

void ddp_json_count(cJSON *obj, const char *key, int64_t value)
{
    if (value < 0)
        ddp_json_null(obj, key);
    else
        added(obj, cJSON_AddNumberToObject(obj, key, (double)value));
}

void ddp_json_bool(cJSON *obj, const char *key, bool value)
{
    added(obj, cJSON_AddBoolToObject(obj, key, value));
}

void ddp_json_null(cJSON *obj, const char *key)
{
    added(obj, cJSON_AddNullToObject(obj, key));
}

void ddp_json_str(cJSON *obj, const char *key, const char *value)
{
    if (!value || !value[0]) {
        ddp_json_null(obj, key);
        return;
    }
    struct ddp_strbuf clean = DDP_STRBUF_INIT;
    size_t left = strlen(value);
    while (left > 0) {
        size_t n = ddp_utf8_length(value, left);
        if (n == 0)
            ddp_strbuf_add(&clean, "\xEF\xBF\xBD");
        else
            ddp_strbuf_add_n(&clean, value, n);
        value += n ? n : 1;
        left -= n ? n : 1;
    }
    added(obj, clean.failed ? NULL : cJSON_AddStringToObject(obj, key, clean.text));
    ddp_strbuf_release(&clean);
}

cJSON *ddp_json_obj(cJSON *obj, const char *key)
{
    return added(obj, cJSON_AddObjectToObject(obj, key));
}

cJSON *ddp_json_arr(cJSON *obj, const char *key)
{
    return added(obj, cJSON_AddArrayToObject(obj, key));
}

/* Appends `item` and returns it. If there was no memory for it, returns NULL. */
static cJSON *append(cJSON *arr, cJSON *item)
{
    if (item && !cJSON_AddItemToArray(arr, item)) {
        cJSON_Delete(item);
        item = NULL;
    }
    return added(arr, item);
}

cJSON *ddp_json_append(cJSON *arr)
{
    return append(arr, cJSON_CreateObject());
}

cJSON *ddp_json_append_arr(cJSON *arr)
{
    return append(arr, cJSON_CreateArray());
}

void ddp_json_append_num(cJSON *arr, double value)
{
    (void)append(arr, isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

void ddp_json_append_printed(cJSON *arr, const char *text)
{
    cJSON *item = append(arr, cJSON_CreateStringReference(text));
    if (!item)
        return;
    item->type = cJSON_Raw | cJSON_IsReference;
    item->valueint = DDP_JSON_PRINTED;
}

/* The value of `indent` that prints a document on one line. */
#define ONE_LINE SIZE_MAX

/* Prints an item. Returns false if a part of it is missing or has a type that cannot be printed. */
static bool print_item(const cJSON *item, size_t indent, struct ddp_strbuf *out);

static void print_number(double v, struct ddp_strbuf *out)
{
    char text[32];
    if (!isfinite(v)) {
        ddp_strbuf_add(out, "null");
        return;
    }
    if (v == floor(v) && fabs(v) <= 0x1p53) {
        ddp_strbuf_addf(out, "%.0f", v + 0.0); /* + 0.0 turns -0 into 0 */
        return;
    }
    ddp_format_double(v, text, sizeof text);
    ddp_strbuf_add(out, text);
}

/* Returns the number of leading bytes that need no escape. Control characters from U+0080 to U+009F
 * are escaped, because terminals obey them. '<' is escaped, because "</script" would end a script
 * that embeds the document. */
static size_t plain_bytes(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = 0;
    while (u[n] >= 0x20 && u[n] != '"' && u[n] != '\\' && u[n] != '<' && u[n] != 0x7F &&
           !(u[n] == 0xC2 && u[n + 1] >= 0x80 && u[n + 1] < 0xA0))
        n++;
    return n;
}

static void print_string(const char *s, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "\"");
    for (; *s; s++) {
        size_t plain = plain_bytes(s);
        ddp_strbuf_add_n(out, s, plain);
        s += plain;
        if (*s == '\0')
            break;
        if (*s == '"' || *s == '\\')
            ddp_strbuf_addf(out, "\\%c", *s);
        else if (*s == '\n')
            ddp_strbuf_add(out, "\\n");
        else if (*s == '\t')
            ddp_strbuf_add(out, "\\t");
        else if ((unsigned char)*s == 0xC2) /* the second byte is the code point */
            ddp_strbuf_addf(out, "\\u%04x", (unsigned char)*++s);
        else
            ddp_strbuf_addf(out, "\\u%04x", (unsigned char)*s);
    }
    ddp_strbuf_add(out, "\"");
}

static bool all_plain(const cJSON *array)
{
    for (const cJSON *c = array->child; c; c = c->next)
        if (cJSON_IsObject(c) || cJSON_IsArray(c) || ddp_json_is_printed(c))
            return false;
    return true;
}

static void new_line(size_t indent, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "\n");
    ddp_strbuf_pad(out, indent);
}

static bool print_members(const cJSON *item, size_t indent, struct ddp_strbuf *out)
{
    bool object = cJSON_IsObject(item), whole = true;
    bool one_line = indent == ONE_LINE || (!object && all_plain(item));
    const size_t inner = indent == ONE_LINE ? ONE_LINE : indent + 2;
    if (item->valueint == INCOMPLETE)
        return false;
    ddp_strbuf_add(out, object ? "{" : "[");
    for (const cJSON *c = item->child; c && whole; c = c->next) {
        if (c != item->child)
            ddp_strbuf_add(out, one_line ? ", " : ",");
        if (!one_line)
            new_line(inner, out);
        if (object) {
            print_string(c->string, out);
            ddp_strbuf_add(out, ": ");
        }
        whole = print_item(c, inner, out);
    }
    if (item->child && !one_line)
        new_line(indent, out);
    ddp_strbuf_add(out, object ? "}" : "]");
    return whole;
}

static bool print_item(const cJSON *item, size_t indent, struct ddp_strbuf *out)
{
    if (cJSON_IsObject(item) || cJSON_IsArray(item))
        return print_members(item, indent, out);
    if (cJSON_IsNumber(item))
        print_number(item->valuedouble, out);
    else if (cJSON_IsRaw(item)) /* from ddp_json_preprint, or a formatted number */
        ddp_strbuf_add(out, item->valuestring);
    else if (cJSON_IsString(item))
        print_string(item->valuestring, out);
    else if (cJSON_IsBool(item))
        ddp_strbuf_add(out, cJSON_IsTrue(item) ? "true" : "false");
    else if (cJSON_IsNull(item))
        ddp_strbuf_add(out, "null");
    else
        return false;
    return true;
}

static int print_document(const cJSON *doc, size_t indent, struct ddp_strbuf *out,
                          struct ddp_err *err)
{
    bool whole = print_item(doc, indent, out);
    ddp_strbuf_add(out, "\n");
    if (!whole || out->failed)
        return ddp_fail(err, DDP_ENOMEM, "no memory to print a JSON document");
    return DDP_OK;
}

int ddp_json_print(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    return print_document(doc, 0, out, err);
}

int ddp_json_print_line(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    return print_document(doc, ONE_LINE, out, err);
}

int ddp_json_preprint(const cJSON *item, size_t indent, char **out, struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    const bool whole = print_item(item, indent, &text);
    ddp_strbuf_add_n(&text, "", 1);
    const int rc = ddp_json_canonical(item, NULL, &text, err);
    if (rc != 0 || !whole || text.failed) {
        ddp_strbuf_release(&text);
        return rc != 0 ? rc : ddp_fail(err, DDP_ENOMEM, "no memory to print a JSON value");
    }
    *out = text.text;
    return DDP_OK;
}

struct scan {
    const char *text, *name;
    size_t bytes;
    size_t at; /* the current byte */
    unsigned values;
    int depth;
    char stack[DDP_JSON_MAX_DEPTH]; /* '{' or '[' for each open value */
    struct ddp_err *err;
};

/* Returns the current byte, or NUL at the end. A NUL inside the text is always an error, so callers
 * need not distinguish it from the end. */
static char peek(const struct scan *s)
{
    return s->at < s->bytes ? s->text[s->at] : '\0';
}

static int refuse(const struct scan *s, const char *why)
{
    return ddp_fail(s->err, DDP_EINPUT, "'%s' is not legal JSON at byte %zu: %s", s->name, s->at,
                    why);
}

static void skip_space(struct scan *s)
{
    while (s->at < s->bytes && memchr(" \t\r\n", s->text[s->at], 4))
        s->at++;
}

/* Returns the value of the four hexadecimal digits of \uXXXX, or -1. */
static int hex4(const struct scan *s, size_t at)
{
    int v = 0;
    if (at + 4 > s->bytes)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        int c = tolower((unsigned char)s->text[i]);
        if (!isxdigit(c))
            return -1;
        v = v * 16 + (isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return v;
}

static int scan_escape(struct scan *s)
{
    s->at++;
    char c = peek(s);
    if (c != 'u') {
        if (c == '\0' || !strchr("\"\\/bfnrt", c))
            return refuse(s, "unknown escape");
        s->at++;
        return DDP_OK;
    }
    int v = hex4(s, s->at + 1);
    s->at += 5;
    if (v <= 0)
        return refuse(s, v < 0 ? "\\u needs four hexadecimal digits" : "\\u0000 is refused");
    if (v >= 0xDC00 && v <= 0xDFFF)
        return refuse(s, "a low surrogate without a high surrogate");
    if (v >= 0xD800 && v <= 0xDBFF) {
        int low = s->at + 6 <= s->bytes && memcmp(s->text + s->at, "\\u", 2) == 0
                      ? hex4(s, s->at + 2)
                      : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return refuse(s, "a high surrogate without a low surrogate");
        s->at += 6;
    }
    return DDP_OK;
}

static int scan_string(struct scan *s)
{
    if (peek(s) != '"')
        return refuse(s, "a string was expected");
    s->at++;
    while (peek(s) != '"') {
        if (s->at >= s->bytes)
            return refuse(s, "the string does not end");
        if (peek(s) == '\\') {
            DDP_TRY(scan_escape(s));
            continue;
        }
        size_t n = ddp_utf8_length(s->text + s->at, s->bytes - s->at);
        if (n == 0)
            return refuse(s, "not UTF-8");
        if ((unsigned char)s->text[s->at] < 0x20)
            return refuse(s, "a control character in a string");
        s->at += n;
    }
    s->at++;
    return DDP_OK;
}

static size_t scan_digits(struct scan *s)
{
    size_t start = s->at;
    while (isdigit((unsigned char)peek(s)))
        s->at++;
    return s->at - start;
}

static int scan_number(struct scan *s)
{
    size_t start = s->at;
    s->at += peek(s) == '-';
    bool zero = peek(s) == '0';
    size_t digits = scan_digits(s);
    if (digits == 0 || (zero && digits > 1))
        return refuse(s, "not a value");
    if (peek(s) == '.') {
        s->at++;
        if (scan_digits(s) == 0)
            return refuse(s, "a number ends in a decimal point");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        s->at += peek(s) == '+' || peek(s) == '-';
        if (scan_digits(s) == 0)
            return refuse(s, "a number has an empty exponent");
    }
    /* cJSON copies a number into a buffer of 64 bytes and ignores the rest. */
    if (s->at - start > 60)
        return refuse(s, "a number of more than 60 characters");
    return DDP_OK;
}

static int scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);
    if (s->bytes - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return refuse(s, "not a value");
    s->at += n;
    return DDP_OK;
}

/* Scans a value that is not an object or array. */
static int scan_plain(struct scan *s)
{
    switch (peek(s)) {
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        return scan_number(s);
    }
}

static int scan_key(struct scan *s)
{
    skip_space(s);
    DDP_TRY(scan_string(s));
    skip_space(s);
    if (peek(s) != ':')
        return refuse(s, "':' was expected");
    s->at++;
    return DDP_OK;
}

/* Scans the text after a value, including the closing brackets of objects and arrays. Sets *more to
 * whether another value of an open object or array follows. */
static int scan_after_value(struct scan *s, bool *more)
{
    *more = false;
    while (s->depth > 0) {
        skip_space(s);
        char open = s->stack[s->depth - 1];
        if (peek(s) == ',') {
            s->at++;
            *more = true;
            return open == '{' ? scan_key(s) : DDP_OK;
        }
        if (peek(s) != (open == '{' ? '}' : ']'))
            return refuse(s, open == '{' ? "',' or '}' was expected" : "',' or ']' was expected");
        s->at++;
        s->depth--;
    }
    return DDP_OK;
}

/* Scans an opening bracket. Sets *inside to true if a value follows, and to false if the object or
 * array is empty. */
static int scan_open(struct scan *s, bool *inside)
{
    char open = peek(s);
    if (s->depth == DDP_JSON_MAX_DEPTH)
        return refuse(s, "nested too deeply");
    s->at++;
    skip_space(s);
    *inside = peek(s) != (open == '{' ? '}' : ']');
    if (!*inside) {
        s->at++;
        return DDP_OK;
    }
    s->stack[s->depth++] = open;
    return open == '{' ? scan_key(s) : DDP_OK;
}

/* Returns DDP_EINPUT unless text [bytes] is one JSON document (RFC 8259) within the limits above
 * and in json.h. Refuses \u0000, because cJSON would end the string there. Does not recurse or
 * allocate memory. */
static int scan_document(const char *text, size_t bytes, const char *name, struct ddp_err *err)
{
    struct scan s = {.text = text, .name = name, .bytes = bytes, .err = err};
    if (bytes > DDP_JSON_MAX_BYTES)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %zu bytes; the limit is %u", name, bytes,
                        DDP_JSON_MAX_BYTES);
    for (bool more = true; more;) { /* each turn consumes a bracket or a value, so the loop ends */
        skip_space(&s);
        if (++s.values > MAX_VALUES)
            return refuse(&s, "too many values");
        bool inside = false;
        if (peek(&s) == '{' || peek(&s) == '[')
            DDP_TRY(scan_open(&s, &inside));
        else
            DDP_TRY(scan_plain(&s));
        if (!inside)
            DDP_TRY(scan_after_value(&s, &more));
    }
    skip_space(&s);
    if (s.at != bytes)
        return refuse(&s, "bytes after the document");
    return DDP_OK;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fails if an object contains a key twice. Sorts the keys, because a hostile object may have
 * millions of keys, and comparing all pairs would take too long. */
static int check_keys(const cJSON *obj, const char *name, struct ddp_err *err)
{
    size_t n = 0;
    for (const cJSON *c = obj->child; c; c = c->next)
        n++;
    if (n < 2)
        return DDP_OK;
    const char **keys = ddp_calloc(n, sizeof *keys);
    if (!keys)
        return ddp_fail(err, DDP_ENOMEM, "'%s': no memory to check %zu keys", name, n);
    size_t i = 0;
    for (const cJSON *c = obj->child; c; c = c->next)
        keys[i++] = c->string;
    qsort(keys, n, sizeof *keys, compare_keys);
    int rc = DDP_OK;
    for (i = 1; i < n && rc == DDP_OK; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            rc = ddp_fail(err, DDP_EINPUT, "'%s': key '%.64s' occurs twice in one object", name,
                          keys[i]);
    free(keys);
    return rc;
}

/* Checks the keys of all objects in `item`. The recursion is bounded, because scan_document refuses
 * documents deeper than DDP_JSON_MAX_DEPTH. */
static int check_all_keys(const cJSON *item, const char *name, struct ddp_err *err)
{
    if (cJSON_IsObject(item))
        DDP_TRY(check_keys(item, name, err));
    for (const cJSON *c = item->child; c; c = c->next)
        if (c->child)
            DDP_TRY(check_all_keys(c, name, err));
    return DDP_OK;
}

int ddp_json_parse(const char *text, size_t bytes, const char *name, cJSON **out,
                   struct ddp_err *err)
{
    DDP_TRY(scan_document(text, bytes, name, err));
    cJSON *doc = cJSON_ParseWithLength(text, bytes);
    /* scan_document has accepted the text, so cJSON can fail only for lack of memory. */
    if (!doc)
        return ddp_fail(err, DDP_ENOMEM, "'%s': no memory for a document of %zu bytes", name,
                        bytes);
    int rc = check_all_keys(doc, name, err);
    if (rc != DDP_OK) {
        cJSON_Delete(doc);
        return rc;
    }
    *out = doc;
    return DDP_OK;
}

/* Computes the digest of `doc` without its member "digest". */
static int canonical_digest(const cJSON *doc, char out[DIGEST_BYTES], struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    int rc = ddp_json_canonical(doc, "digest", &text, err);
    if (rc == 0)
        snprintf(out, DIGEST_BYTES, DIGEST_PREFIX "%016llx",
                 (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, text.text, text.length));
    ddp_strbuf_release(&text);
    return rc;
}

int ddp_json_print_digest(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    assert(cJSON_IsObject(doc) && doc->child);
    char digest[DIGEST_BYTES];
    size_t start = out->length;
    DDP_TRY(ddp_json_print(doc, out, err));
    DDP_TRY(canonical_digest(doc, digest, err));
    /* The document ends in "\n}\n". The digest is inserted before this end. */
    static const char tail[] = "\n}\n";
    assert(out->length - start > sizeof tail - 1);
    out->length -= sizeof tail - 1;
    ddp_strbuf_addf(out, ",\n  \"digest\": \"%s\"%s", digest, tail);
    if (out->failed)
        return ddp_fail(err, DDP_ENOMEM, "no memory to print a JSON document");
    return DDP_OK;
}

/* Returns the last occurrence of `word` in text[0..bytes), or NULL. */
static const char *find_last(const char *text, size_t bytes, const char *word)
{
    size_t n = strlen(word);
    for (size_t at = bytes >= n ? bytes - n + 1 : 0; at > 0; at--)
        if (memcmp(text + at - 1, word, n) == 0)
            return text + at - 1;
    return NULL;
}

/* Writes the digest in the form of earlier versions: the hash of all bytes before the comma that
 * precedes the last member. Writes "" if the last member is not "digest". */
static void byte_digest(const char *text, size_t bytes, const cJSON *doc, char out[DIGEST_BYTES])
{
    out[0] = '\0';
    if (strcmp(doc->child->prev->string, "digest") != 0)
        return;
    /* Find the key of the last member. */
    const char *key = find_last(text, bytes, "\"digest\"");
    while (key && key > text && key[-1] != ',')
        key--;
    if (key && key > text)
        snprintf(out, DIGEST_BYTES, BYTE_DIGEST_PREFIX "%016llx",
                 (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, text, (size_t)(key - 1 - text)));
}

/* Returns whether all numbers are finite. cJSON reads a number that is too large for a double as
 * infinity. The canonical form contains null for infinity, so a digest cannot distinguish such a
 * number from null. */
static bool all_finite(const cJSON *item)
{
    bool finite = !cJSON_IsNumber(item) || isfinite(item->valuedouble);
    for (const cJSON *c = item->child; c && finite; c = c->next)
        finite = all_finite(c);
    return finite;
}

/* Fails if the digest of the parsed text is missing or wrong. */
static int check_digest(const char *text, size_t bytes, const cJSON *doc, const char *name,
                        struct ddp_err *err)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(doc, "digest");
    const char *claimed = cJSON_IsString(member) ? member->valuestring : "";
    char actual[DIGEST_BYTES];
    if (!cJSON_IsObject(doc) || strlen(claimed) >= DIGEST_BYTES || !claimed[0])
        return ddp_fail(err, DDP_EINPUT, "'%s' has no valid \"digest\"", name);
    if (!doc->child->next)
        return ddp_fail(err, DDP_EINPUT, "'%s' contains nothing but a \"digest\"", name);
    if (strncmp(claimed, BYTE_DIGEST_PREFIX, strlen(BYTE_DIGEST_PREFIX)) == 0)
        byte_digest(text, bytes, doc, actual);
    else if (all_finite(doc))
        DDP_TRY(canonical_digest(doc, actual, err));
    else
        return ddp_fail(err, DDP_EINPUT, "'%s' has a number that is too large for a double", name);
    if (strcmp(claimed, actual) == 0)
        return DDP_OK;
    char shown[DIGEST_BYTES];
    ddp_printable(claimed, shown, sizeof shown);
    return ddp_fail(err, DDP_EINPUT, "'%s' was changed after it was written: digest %s, content %s",
                    name, shown, actual[0] ? actual : "with another last member");
}

int ddp_json_parse_digest(const char *text, size_t bytes, const char *name, bool *changed,
                          cJSON **out, struct ddp_err *err)
{
    struct ddp_err why = DDP_ERR_INIT;
    cJSON *doc;
    DDP_TRY(ddp_json_parse(text, bytes, name, &doc, err));
    int rc = check_digest(text, bytes, doc, name, changed ? &why : err);
    if (changed && (rc == DDP_EINPUT || rc == 0)) {
        *changed = rc != 0;
        rc = 0;
    } else if (changed) {
        ddp_fail_copy(err, &why);
    }
    if (rc != 0)
        cJSON_Delete(doc);
    else
        *out = doc;
    return rc;
}

int ddp_json_write(cJSON *doc, FILE *out, struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    if (!doc)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a JSON document");
    int rc = ddp_json_print(doc, &text, err);
    if (rc == 0)
        fputs(text.text, out);
    ddp_strbuf_release(&text);
    cJSON_Delete(doc);
    return rc;
}
