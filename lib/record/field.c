#include "record/field.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define NS_PER_US 1e3
#define EXACT     (INT64_C(1) << 53) /* A double holds every whole number up to this value. */

static bool is_text(const struct ddp_field *f)
{
    return f->kind == DDP_FIELD_TEXT || f->kind == DDP_FIELD_PATH;
}

static bool is_range(const struct ddp_field *f)
{
    return f->kind == DDP_FIELD_RANGE || f->kind == DDP_FIELD_TIME_RANGE;
}

static bool is_number(const struct ddp_field *f)
{
    return f->kind == DDP_FIELD_NUMBER || f->kind == DDP_FIELD_TIME || is_range(f);
}

/* Returns how many doubles the field has. */
static int ends(const struct ddp_field *f)
{
    return is_range(f) ? 2 : 1;
}

/* True if the field is stored in a member of the struct. Derived fields and OBJECTs are not. */
static bool is_member(const struct ddp_field *f)
{
    return f->bytes > 0 && f->kind != DDP_FIELD_OBJECT;
}

static bool is_in_journal(const struct ddp_field *f)
{
    return f->name && is_member(f);
}

static double unit(const struct ddp_field *f)
{
    return f->kind == DDP_FIELD_TIME || f->kind == DDP_FIELD_TIME_RANGE ? NS_PER_US : 1;
}

static const char *member(const struct ddp_field *f, const void *object)
{
    return (const char *)object + f->offset;
}

static bool get_bool(const struct ddp_field *f, const void *object)
{
    bool value;
    memcpy(&value, member(f, object), sizeof value);
    return value;
}

static int64_t get_count(const struct ddp_field *f, const void *object)
{
    int64_t wide;
    int32_t narrow;
    if (f->bytes == sizeof(bool))
        return get_bool(f, object);
    if (f->bytes == sizeof wide) {
        memcpy(&wide, member(f, object), sizeof wide);
        return wide;
    }
    memcpy(&narrow, member(f, object), sizeof narrow);
    return narrow;
}

static void set_count(const struct ddp_field *f, void *object, int64_t value)
{
    const int32_t narrow = (int32_t)value;
    const bool set = value != 0;
    if (f->bytes == sizeof set)
        memcpy((char *)object + f->offset, &set, sizeof set);
    else if (f->bytes == sizeof value)
        memcpy((char *)object + f->offset, &value, sizeof value);
    else
        memcpy((char *)object + f->offset, &narrow, sizeof narrow);
}

static const char *get_borrowed(const struct ddp_field *f, const void *object)
{
    const char *text;
    memcpy(&text, member(f, object), sizeof text);
    return text ? text : "";
}

static void set_borrowed(const struct ddp_field *f, void *object, const char *text)
{
    memcpy((char *)object + f->offset, &text, sizeof text);
}

static double get_number(const struct ddp_field *f, const void *object, int end)
{
    double value;
    if (f->number)
        return end == 0 ? f->number(object) : f->upper(object);
    memcpy(&value, member(f, object) + (size_t)end * sizeof value, sizeof value);
    return value;
}

static void set_number(const struct ddp_field *f, void *object, int end, double value)
{
    memcpy((char *)object + f->offset + (size_t)end * sizeof value, &value, sizeof value);
}

/* Returns the smallest value of a COUNT that does not mean missing. */
static int64_t smallest(const struct ddp_field *f)
{
    return DDP_MAX(DDP_MAX(f->from, f->least), 0);
}

void ddp_field_get(const struct ddp_field *f, const void *object, struct ddp_field_value *out)
{
    out->text[0] = '\0';
    out->count = -1;
    out->number[0] = out->number[1] = NAN;
    if (f->applies && !f->applies(object))
        return;
    switch (f->kind) {
    case DDP_FIELD_TEXT:
    case DDP_FIELD_PATH:
        if (f->text)
            f->text(object, out->text);
        else
            snprintf(out->text, sizeof out->text, "%s", member(f, object));
        return;
    case DDP_FIELD_BORROWED:
        snprintf(out->text, sizeof out->text, "%s", get_borrowed(f, object));
        return;
    case DDP_FIELD_ENUM:
        snprintf(out->text, sizeof out->text, "%s", f->choices[get_count(f, object)]);
        return;
    case DDP_FIELD_HASH:
        snprintf(out->text, sizeof out->text, "fnv1a64:%016llx",
                 (unsigned long long)get_count(f, object));
        return;
    case DDP_FIELD_BOOL:
        out->count = f->number ? f->number(object) != 0 : get_bool(f, object);
        return;
    case DDP_FIELD_COUNT:
        out->count = f->number ? (int64_t)f->number(object) : get_count(f, object);
        if (out->count < smallest(f))
            out->count = -1;
        return;
    case DDP_FIELD_OBJECT:
        out->count = f->bytes > 0 && isnan(get_number(f, object, 0)) ? -1 : 1;
        return;
    case DDP_FIELD_LIST:
        out->count = 1;
        return;
    case DDP_FIELD_SET:
        out->count = get_count(f, object);
        for (int i = 0; i <= f->most; i++)
            if (out->count >> i & 1)
                ddp_text_append(out->text, sizeof out->text, "%s%s", out->text[0] ? " " : "",
                                f->choices[i]);
        return;
    default:
        for (int end = 0; end < ends(f); end++)
            out->number[end] = get_number(f, object, end) / unit(f);
    }
}

static void add_range(cJSON *out, const char *key, const double ends[2])
{
    if (!isfinite(ends[0]) || !isfinite(ends[1])) {
        ddp_json_null(out, key);
        return;
    }
    cJSON *range = ddp_json_arr(out, key);
    cJSON_AddItemToArray(range, cJSON_CreateNumber(ends[0]));
    cJSON_AddItemToArray(range, cJSON_CreateNumber(ends[1]));
}

static void add_set(const struct ddp_field *f, int64_t bits, const char *key, cJSON *out)
{
    cJSON *list = ddp_json_arr(out, key);
    for (int i = 0; i <= f->most; i++)
        if (bits >> i & 1)
            cJSON_AddItemToArray(list, cJSON_CreateString(f->choices[i]));
}

static void add(const struct ddp_field *f, const void *object, const char *key, cJSON *out)
{
    struct ddp_field_value v;
    ddp_field_get(f, object, &v);
    if (is_range(f))
        add_range(out, key, v.number);
    else if (is_number(f))
        ddp_json_num(out, key, v.number[0]);
    else if (f->kind == DDP_FIELD_COUNT)
        ddp_json_count(out, key, v.count);
    else if (is_text(f) || f->kind == DDP_FIELD_BORROWED || f->kind == DDP_FIELD_ENUM ||
             f->kind == DDP_FIELD_HASH)
        ddp_json_str(out, key, v.text);
    else if (v.count < 0)
        ddp_json_null(out, key);
    else if (f->kind == DDP_FIELD_BOOL)
        ddp_json_bool(out, key, v.count != 0);
    else if (f->kind == DDP_FIELD_OBJECT)
        ddp_json_obj(out, key);
    else if (f->kind == DDP_FIELD_SET)
        add_set(f, v.count, key, out);
    else
        ddp_json_arr(out, key);
}

/* Copies the first key of a path, and returns the rest of the path, or NULL after the last key. */
static const char *next_key(const char *path, char key[64])
{
    const size_t n = DDP_MIN(strcspn(path, "."), (size_t)63);
    memcpy(key, path, n);
    key[n] = '\0';
    return path[n] == '.' ? path + n + 1 : NULL;
}

void ddp_fields_show(const struct ddp_fields *fields, const void *object, cJSON *out)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct ddp_field *f = &fields->field[i];
        cJSON *parent = out;
        char key[64];
        if (!f->path)
            continue;
        for (const char *rest = f->path; (rest = next_key(rest, key)) && parent;) {
            cJSON *child = cJSON_GetObjectItemCaseSensitive(parent, key);
            if (!child)
                child = ddp_json_obj(parent, key);
            parent = cJSON_IsObject(child) ? child : NULL;
        }
        if (parent)
            add(f, object, key, parent);
    }
}

void ddp_fields_show_one(const struct ddp_fields *fields, const char *path, const void *object,
                         const char *key, cJSON *out)
{
    const struct ddp_field *f = ddp_fields_find(fields, path);
    assert(f);
    add(f, object, key, out);
}

/* Returns the field as the journal stores it: always present, and in the member's own unit. */
static struct ddp_field stored(const struct ddp_field *f)
{
    struct ddp_field raw = *f;
    raw.applies = NULL;
    raw.from = 0;
    if (f->kind == DDP_FIELD_TIME)
        raw.kind = DDP_FIELD_NUMBER;
    if (f->kind == DDP_FIELD_TIME_RANGE)
        raw.kind = DDP_FIELD_RANGE;
    return raw;
}

void ddp_fields_store(const struct ddp_fields *fields, const void *object, cJSON *out)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct ddp_field raw = stored(&fields->field[i]);
        if (is_in_journal(&raw))
            add(&raw, object, raw.name, out);
    }
}

static const char *read_text(const struct ddp_field *f, const cJSON *item, void *object)
{
    const char *text = cJSON_IsNull(item) ? "" : item->valuestring;
    if (!cJSON_IsNull(item) && !cJSON_IsString(item))
        return "is not a string";
    /* These characters are special in Markdown, HTML or a shell. ddpbench uses no name that has
     * them. */
    if (strlen(text) >= f->bytes || (f->kind == DDP_FIELD_TEXT && strpbrk(text, "<>&|`\"'")))
        return "is not a valid name";
    ddp_printable(text, (char *)object + f->offset, f->bytes);
    return NULL;
}

static const char *read_borrowed(const struct ddp_field *f, const cJSON *item, void *object)
{
    char *text = item->valuestring;
    if (!cJSON_IsNull(item) && !cJSON_IsString(item))
        return "is not a string";
    if (cJSON_IsString(item))
        ddp_printable(text, text, strlen(text) + 1);
    set_borrowed(f, object, cJSON_IsString(item) ? text : "");
    return NULL;
}

static const char *read_choice(const struct ddp_field *f, const cJSON *item, void *object)
{
    for (int i = (int)f->least; cJSON_IsString(item) && i <= f->most; i++)
        if (strcmp(item->valuestring, f->choices[i]) == 0) {
            set_count(f, object, i);
            return NULL;
        }
    return "is not a known name";
}

static const char *read_set(const struct ddp_field *f, const cJSON *list, void *object)
{
    const cJSON *item;
    int64_t bits = 0;
    if (!cJSON_IsArray(list) && !cJSON_IsNull(list))
        return "is not a list";
    cJSON_ArrayForEach(item, list)
    {
        for (int i = 0; cJSON_IsString(item) && i <= f->most; i++)
            if (strcmp(item->valuestring, f->choices[i]) == 0)
                bits |= INT64_C(1) << i;
    }
    set_count(f, object, bits);
    return NULL;
}

static const char *read_count(const struct ddp_field *f, const cJSON *item, void *object)
{
    const int64_t widest = f->bytes == sizeof(int64_t) ? EXACT : INT32_MAX;
    const double most = (double)(f->most ? f->most : widest);
    if (cJSON_IsNull(item) && f->least < smallest(f)) {
        set_count(f, object, f->least);
        return NULL;
    }
    if (!cJSON_IsNumber(item) || item->valuedouble != floor(item->valuedouble) ||
        !(item->valuedouble >= (double)smallest(f) && item->valuedouble <= most))
        return "is not a valid count";
    set_count(f, object, (int64_t)item->valuedouble);
    return NULL;
}

static const char *read_hash(const struct ddp_field *f, const cJSON *item, void *object)
{
    static const char prefix[] = "fnv1a64:";
    if (!cJSON_IsString(item) || strncmp(item->valuestring, prefix, sizeof prefix - 1) != 0)
        return "is not a hash";
    const char *digits = item->valuestring + sizeof prefix - 1;
    if (strlen(digits) != 16 || strspn(digits, "0123456789abcdef") != 16)
        return "is not a hash";
    const uint64_t hash = strtoull(digits, NULL, 16);
    memcpy((char *)object + f->offset, &hash, sizeof hash);
    return NULL;
}

/* Converts a value of a document to the unit of its member. Prefers a result that converts back to
 * exactly `value`, so that a new document shows the same value. Among several such results, a
 * multiple of 2^-10 ns is preferred, because the clock counts whole ns, and a time is often divided
 * by a power of two. */
static double from_shown(const struct ddp_field *f, double value)
{
    const double product = value * unit(f), rounded = round(product * 1024) / 1024;
    const double candidates[] = {rounded, product, nextafter(product, INFINITY),
                                 nextafter(product, -INFINITY)};
    for (size_t i = 0; i < DDP_COUNT_OF(candidates) && unit(f) != 1; i++)
        if (candidates[i] / unit(f) == value)
            return candidates[i];
    return product;
}

static const char *read_range(const struct ddp_field *f, const cJSON *item, void *object)
{
    const cJSON *lo = item->child, *hi = lo ? lo->next : NULL;
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 || !cJSON_IsNumber(lo) ||
        !cJSON_IsNumber(hi))
        return "is not a pair of numbers";
    set_number(f, object, 0, from_shown(f, lo->valuedouble));
    set_number(f, object, 1, from_shown(f, hi->valuedouble));
    return NULL;
}

static const char *read_number(const struct ddp_field *f, const cJSON *item, void *object)
{
    if (cJSON_IsNull(item)) {
        for (int end = 0; end < ends(f); end++)
            set_number(f, object, end, NAN);
        return NULL;
    }
    if (is_range(f))
        return read_range(f, item, object);
    if (!cJSON_IsNumber(item))
        return "is not a number";
    set_number(f, object, 0, from_shown(f, item->valuedouble));
    return NULL;
}

static const char *read_item(const struct ddp_field *f, const cJSON *item, void *object)
{
    const bool is_true = cJSON_IsTrue(item);
    switch (f->kind) {
    case DDP_FIELD_TEXT:
    case DDP_FIELD_PATH:
        return read_text(f, item, object);
    case DDP_FIELD_BORROWED:
        return read_borrowed(f, item, object);
    case DDP_FIELD_ENUM:
        return read_choice(f, item, object);
    case DDP_FIELD_SET:
        return read_set(f, item, object);
    case DDP_FIELD_COUNT:
        return read_count(f, item, object);
    case DDP_FIELD_HASH:
        return read_hash(f, item, object);
    case DDP_FIELD_BOOL:
        if (!cJSON_IsBool(item))
            return "is not true or false";
        memcpy((char *)object + f->offset, &is_true, sizeof is_true);
        return NULL;
    default:
        return read_number(f, item, object);
    }
}

const char *ddp_fields_load(const struct ddp_fields *fields, const cJSON *first, void *object,
                            const cJSON **rest)
{
    const cJSON *item = first;
    for (size_t i = 0; i < fields->count; i++) {
        const struct ddp_field raw = stored(&fields->field[i]);
        if (!is_in_journal(&raw))
            continue;
        if (!item || strcmp(item->string, raw.name) != 0 || read_item(&raw, item, object))
            return raw.name;
        item = item->next;
    }
    *rest = item;
    return NULL;
}

const cJSON *ddp_field_item(const cJSON *doc, const char *path)
{
    char key[64];
    while (path && doc) {
        path = next_key(path, key);
        doc = cJSON_GetObjectItemCaseSensitive(doc, key);
    }
    return doc;
}

const struct ddp_field *ddp_fields_find(const struct ddp_fields *fields, const char *path)
{
    for (size_t i = 0; i < fields->count; i++)
        if (fields->field[i].path && strcmp(fields->field[i].path, path) == 0)
            return &fields->field[i];
    return NULL;
}

const char *ddp_fields_read(const struct ddp_fields *fields, const cJSON *doc, const char *path,
                            void *object)
{
    const struct ddp_field *f = ddp_fields_find(fields, path);
    const cJSON *item = ddp_field_item(doc, path);
    if (!item || !f || !is_member(f))
        return "is missing";
    return read_item(f, item, object);
}

/* Returns the value of a member in a document. Returns NULL if the field is a LIST or has no
 * member, or if the value is missing or null. */
static const cJSON *value_of(const struct ddp_field *f, const cJSON *doc)
{
    const cJSON *item = is_member(f) && f->path ? ddp_field_item(doc, f->path) : NULL;
    return !item || cJSON_IsNull(item) || f->kind == DDP_FIELD_LIST ? NULL : item;
}

const char *ddp_fields_read_all(const struct ddp_fields *fields, const cJSON *doc, void *object,
                                const char **path)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct ddp_field *f = &fields->field[i];
        const cJSON *item = value_of(f, doc);
        const char *why = item ? read_item(f, item, object) : NULL;
        *path = f->path;
        if (why)
            return why;
    }
    return NULL;
}

void ddp_fields_read_valid(const struct ddp_fields *fields, const cJSON *doc, void *object)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct ddp_field *f = &fields->field[i];
        const cJSON *item = value_of(f, doc);
        if (is_text(f) && cJSON_IsString(item))
            ddp_printable(item->valuestring, (char *)object + f->offset, f->bytes);
        else if (item)
            (void)read_item(f, item, object);
    }
}

void ddp_fields_init(const struct ddp_fields *fields, void *object)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct ddp_field *f = &fields->field[i];
        if (!is_member(f))
            continue;
        for (int end = 0; is_number(f) && end < ends(f); end++)
            set_number(f, object, end, NAN);
        if (f->kind == DDP_FIELD_COUNT && f->least < 0)
            set_count(f, object, -1);
        if (f->kind == DDP_FIELD_BORROWED)
            set_borrowed(f, object, "");
    }
}

void ddp_fields_printable(const struct ddp_fields *fields, void *object)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct ddp_field *f = &fields->field[i];
        char clean[DDP_FIELD_TEXT_BYTES];
        if (!is_member(f) || !is_text(f))
            continue;
        char *text = (char *)object + f->offset;
        ddp_printable(text, clean, DDP_MIN(f->bytes, sizeof clean));
        snprintf(text, f->bytes, "%s", clean);
    }
}
