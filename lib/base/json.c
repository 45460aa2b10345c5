/* Builds and parses JSON documents, and computes their digest. json_scan.c checks the text of a
 * document, and json_print.c prints a document. */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_impl.h"
#include "base/mem.h"

#define DIGEST_PREFIX "fnv1a64:"

/* Marks the object or array if memory ran out for a new member. Printing a marked document fails,
 * so that no document with a missing member is printed. The mark lies in a field that cJSON uses
 * only for numbers. */
static cJSON *added(cJSON *obj, cJSON *item)
{
    if (!item && obj)
        obj->valueint = DDP_JSON_INCOMPLETE;
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

cJSON *ddp_json_append(cJSON *arr)
{
    cJSON *item = cJSON_CreateObject();
    if (item && !cJSON_AddItemToArray(arr, item)) {
        cJSON_Delete(item);
        item = NULL;
    }
    return added(arr, item);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fails if an object contains a key twice. Sorts the keys, because a hostile object may have
 * millions of keys. */
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

/* Checks the keys of all objects in `item`. The scan has refused anything deeper than
 * DDP_JSON_MAX_DEPTH, so the recursion is bounded. */
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
    DDP_TRY(ddp_json_scan(text, bytes, name, err));
    cJSON *doc = cJSON_ParseWithLength(text, bytes);
    /* the scan accepted the text as JSON, so only memory can be missing */
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

uint64_t ddp_fnv1a(uint64_t state, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++)
        state = (state ^ bytes[i]) * 0x100000001b3u;
    return state;
}

int ddp_json_print_digest(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    assert(cJSON_IsObject(doc) && doc->child);
    size_t start = out->length;
    DDP_TRY(ddp_json_print(doc, out, err));
    /* The document ends in "\n}\n". The digest is inserted before this end. */
    static const char tail[] = "\n}\n";
    assert(out->length - start > sizeof tail - 1);
    out->length -= sizeof tail - 1;
    uint64_t digest = ddp_fnv1a(DDP_FNV_INIT, out->text + start, out->length - start);
    ddp_strbuf_addf(out, ",\n  \"digest\": \"" DIGEST_PREFIX "%016llx\"%s",
                    (unsigned long long)digest, tail);
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

int ddp_json_check_digest(const char *text, size_t bytes, const char *name, struct ddp_err *err)
{
    cJSON *doc;
    DDP_TRY(ddp_json_parse(text, bytes, name, &doc, err));
    const cJSON *last = cJSON_IsObject(doc) && doc->child ? doc->child->prev : NULL;
    char claimed[32] = "";
    if (last && strcmp(last->string, "digest") == 0 && cJSON_IsString(last) &&
        strlen(last->valuestring) < sizeof claimed)
        memcpy(claimed, last->valuestring, strlen(last->valuestring) + 1);
    cJSON_Delete(doc);
    if (!claimed[0])
        return ddp_fail(err, DDP_EINPUT, "'%s' does not end in a \"digest\"", name);
    /* Find the key of the last member. If the member's value is the string "digest" as well,
     * find_last() finds the value, and the comparison below fails. */
    const char *key = find_last(text, bytes, "\"digest\"");
    while (key && key > text && key[-1] != ',')
        key--;
    if (!key || key == text)
        return ddp_fail(err, DDP_EINPUT, "'%s' contains nothing but a \"digest\"", name);
    char actual[32];
    snprintf(actual, sizeof actual, DIGEST_PREFIX "%016llx",
             (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, text, (size_t)(key - 1 - text)));
    if (strcmp(claimed, actual) != 0) {
        ddp_fail(err, DDP_EINPUT, "'%s' was changed after it was written: digest %s, content %s",
                 name, claimed, actual);
        return DDP_EINPUT;
    }
    return DDP_OK;
}
