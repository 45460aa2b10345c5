#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_KEY "\"digest\""

void ddp_json_num(cJSON *obj, const char *key, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(obj, key, value);
    else
        cJSON_AddNullToObject(obj, key);
}

void ddp_json_count(cJSON *obj, const char *key, int64_t value)
{
    ddp_json_num(obj, key, value < 0 ? NAN : (double)value);
}

void ddp_json_bool(cJSON *obj, const char *key, bool value)
{
    cJSON_AddBoolToObject(obj, key, value);
}

void ddp_json_null(cJSON *obj, const char *key)
{
    cJSON_AddNullToObject(obj, key);
}

cJSON *ddp_json_obj(cJSON *obj, const char *key)
{
    return cJSON_AddObjectToObject(obj, key);
}

cJSON *ddp_json_arr(cJSON *obj, const char *key)
{
    return cJSON_AddArrayToObject(obj, key);
}

/* Length of the valid UTF-8 sequence at p, 0 when it is not one (overlong forms and surrogates are
 * not). */
static size_t utf8_length(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] < 0xe0)
        return (p[1] & 0xc0) == 0x80 ? 2 : 0;
    if (p[0] >= 0xe0 && p[0] < 0xf0) {
        unsigned char low = p[0] == 0xe0 ? 0xa0 : 0x80, high = p[0] == 0xed ? 0x9f : 0xbf;
        return p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 ? 3 : 0;
    }
    if (p[0] >= 0xf0 && p[0] < 0xf5) {
        unsigned char low = p[0] == 0xf0 ? 0x90 : 0x80, high = p[0] == 0xf4 ? 0x8f : 0xbf;
        return p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 && (p[3] & 0xc0) == 0x80 ? 4
                                                                                             : 0;
    }
    return 0;
}

void ddp_json_str(cJSON *obj, const char *key, const char *value)
{
    struct ddp_strbuf clean = DDP_STRBUF_INIT;
    if (!value || !value[0]) {
        cJSON_AddNullToObject(obj, key);
        return;
    }
    for (const unsigned char *p = (const unsigned char *)value; *p;) {
        size_t n = utf8_length(p);
        if (n)
            ddp_strbuf_add_n(&clean, (const char *)p, n);
        else
            ddp_strbuf_add(&clean, "\xef\xbf\xbd");
        p += n ? n : 1;
    }
    cJSON_AddStringToObject(obj, key, clean.failed ? "" : clean.text);
    ddp_strbuf_release(&clean);
}

/* cJSON recurses: the depth is bounded before it sees the text. */
static bool too_deep(const char *text, size_t bytes)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > DDP_JSON_MAX_DEPTH)
                return true;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return false;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The first key an object (or one below it) has twice; NULL when none. *failed: no memory. */
static const char *duplicate_key(const cJSON *item, bool *failed)
{
    size_t n = 0, i = 0;
    const char *twice = NULL;
    const cJSON *child;
    cJSON_ArrayForEach(child, item)
    {
        n++;
        if (!twice && (cJSON_IsObject(child) || cJSON_IsArray(child)))
            twice = duplicate_key(child, failed);
    }
    if (twice || !cJSON_IsObject(item) || n < 2)
        return twice;
    const char **keys = malloc(n * sizeof *keys);
    if (!keys) {
        *failed = true;
        return NULL;
    }
    cJSON_ArrayForEach(child, item) keys[i++] = child->string;
    qsort(keys, n, sizeof *keys, compare_keys);
    for (i = 1; i < n && !twice; i++)
        twice = strcmp(keys[i - 1], keys[i]) == 0 ? keys[i] : NULL;
    free(keys);
    return twice;
}

int ddp_json_parse(const char *text, size_t bytes, const char *name, cJSON **out,
                   struct ddp_err *err)
{
    const char *end = NULL;
    bool failed = false;
    if (bytes > DDP_JSON_MAX_BYTES)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %zu bytes; at most %u are read", name, bytes,
                        DDP_JSON_MAX_BYTES);
    if (memchr(text, '\0', bytes))
        return ddp_fail(err, DDP_EINPUT, "'%s' is not JSON: it holds a NUL byte", name);
    if (too_deep(text, bytes))
        return ddp_fail(err, DDP_EINPUT, "'%s' nests deeper than %d levels", name,
                        DDP_JSON_MAX_DEPTH);
    cJSON *doc = cJSON_ParseWithLengthOpts(text, bytes, &end, 0);
    if (!doc)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not JSON: error at byte %zd", name,
                        end ? end - text : 0);
    while (end < text + bytes && strchr(" \t\r\n", *end))
        end++;
    const char *twice = duplicate_key(doc, &failed);
    int rc = 0;
    if (failed)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to check '%s'", name);
    else if (end != text + bytes)
        rc = ddp_fail(err, DDP_EINPUT, "'%s': text after the document, at byte %zd", name,
                      end - text);
    else if (twice)
        rc = ddp_fail(err, DDP_EINPUT, "'%s': the key \"%.64s\" stands twice in one object", name,
                      twice);
    if (rc)
        cJSON_Delete(doc);
    else
        *out = doc;
    return rc;
}

uint64_t ddp_fnv1a(uint64_t state, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        state = (state ^ p[i]) * 0x100000001b3u;
    return state;
}

int ddp_json_print_digest(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    char *text = cJSON_Print(doc);
    size_t n = text ? strlen(text) : 0;
    if (n < 2 || text[n - 1] != '}') {
        cJSON_free(text);
        return ddp_fail(err, text ? DDP_EINTERNAL : DDP_ENOMEM,
                        "the JSON document could not be printed");
    }
    n--;
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        n--;
    ddp_strbuf_add_n(out, text, n);
    ddp_strbuf_addf(out, ",\n\t" DIGEST_KEY ":\t\"fnv1a64:%016llx\"\n}\n",
                    (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, text, n));
    cJSON_free(text);
    return out->failed ? ddp_fail(err, DDP_ENOMEM, "no memory for a JSON document of %zu bytes", n)
                       : 0;
}

int ddp_json_check_digest(const char *text, size_t bytes, const char *name, struct ddp_err *err)
{
    /* The key is the last one: search backwards for it, then for the comma before it. */
    size_t key = bytes;
    while (key > 0 && (bytes - key < strlen(DIGEST_KEY) ||
                       memcmp(text + key, DIGEST_KEY, strlen(DIGEST_KEY)) != 0))
        key--;
    size_t comma = key;
    while (comma > 0 && strchr(" \t\r\n", text[comma - 1]))
        comma--;
    if (comma == 0 || text[comma - 1] != ',')
        return ddp_fail(err, DDP_EINPUT, "'%s' has no digest", name);
    char expected[64], found[64] = "";
    snprintf(expected, sizeof expected, "\"fnv1a64:%016llx\"\n}\n",
             (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, text, comma - 1));
    size_t value = key + strlen(DIGEST_KEY);
    if (value < bytes && text[value] == ':')
        value++;
    while (value < bytes && (text[value] == '\t' || text[value] == ' '))
        value++;
    snprintf(found, sizeof found, "%.*s", (int)(bytes - value < 63 ? bytes - value : 63),
             text + value);
    if (strcmp(found, expected) != 0)
        return ddp_fail(err, DDP_EINPUT,
                        "'%s' was changed or damaged: its digest does not fit its text", name);
    return 0;
}
