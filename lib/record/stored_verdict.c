/* Reads the verdict of a stored document. */
#include <math.h>

#include "base/mem.h"
#include "record/field.h"
#include "record/stored_impl.h"

/* Largest number of cells, ratios or documents in a verdict. */
#define ITEMS_MAX 1000000

/* The verdict being read. */
struct reader {
    struct ddp_stored *stored;
    const cJSON *verdict;
    const char *file;
    struct ddp_err *err;
};

static int bad(const struct reader *r, const char *key, const char *why)
{
    return ddp_fail(r->err, DDP_EINPUT, "'%s': verdict: '%s' %s", r->file, key, why);
}

/* Sets *list to the list at a path of the verdict, and *count to its length. A missing list is
 * empty. */
static int list_at(const struct reader *r, const char *path, const cJSON **list, size_t *count)
{
    *list = ddp_field_item(r->verdict, path);
    *count = 0;
    if (!*list || cJSON_IsNull(*list))
        return 0;
    if (!cJSON_IsArray(*list) || cJSON_GetArraySize(*list) > ITEMS_MAX)
        return bad(r, path, "is not a list, or is too long");
    *count = (size_t)cJSON_GetArraySize(*list);
    return 0;
}

/* Reads the members of a table. A value that is not valid counts as missing, except the value at
 * `needed`. needed: NULL, or the path of an ENUM (field.h) that every document has. */
static int read_members(const struct reader *r, const struct ddp_fields *fields, const cJSON *doc,
                        const char *needed, void *object)
{
    ddp_fields_init(fields, object);
    ddp_fields_read_valid(fields, doc, object);
    const char *why = needed ? ddp_fields_read(fields, doc, needed, object) : NULL;
    return why ? bad(r, needed, why) : 0;
}

static int read_cells(const struct reader *r)
{
    struct ddp_verdict_record *v = &r->stored->verdict;
    const cJSON *list, *item;
    size_t count;
    DDP_TRY(list_at(r, "cells", &list, &count));
    DDP_TRY(DDP_NEW(&v->cells, count, r->err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_verdict_cell *c = &v->cells[v->count];
        DDP_TRY(read_members(r, &ddp_verdict_cell_fields, item, "state", c));
        /* With too few pairs the upper bound is infinite, for which JSON has null. */
        if (!isnan(c->cell.ratio) && isnan(c->cell.upper) && c->cell.lower <= 0)
            c->cell.upper = INFINITY;
        v->count++;
    }
    return 0;
}

static int read_unjudged(const struct reader *r)
{
    const cJSON *list, *item;
    size_t count;
    DDP_TRY(list_at(r, "unjudged", &list, &count));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_unjudged read = {.train = false};
        ddp_fields_read_valid(&ddp_unjudged_fields, item, &read);
        DDP_TRY(ddp_unjudged_add(&r->stored->verdict.unjudged, read.name, read.train, read.base,
                                 r->err));
    }
    return 0;
}

static int read_accuracy(const struct reader *r)
{
    struct ddp_verdict_record *v = &r->stored->verdict;
    const cJSON *list, *item;
    size_t count;
    DDP_TRY(list_at(r, "accuracy", &list, &count));
    DDP_TRY(DDP_NEW(&v->accuracy, count, r->err));
    cJSON_ArrayForEach(item, list)
    {
        DDP_TRY(read_members(r, &ddp_verdict_accuracy_fields, item, "state",
                             &v->accuracy[v->accuracy_count]));
        v->accuracy_count++;
    }
    return 0;
}

/* Reads the scalar members and the list "varied". The outcome may be null. */
static int read_head(const struct reader *r)
{
    struct ddp_verdict_record *v = &r->stored->verdict;
    DDP_TRY(read_members(r, &ddp_verdict_fields, r->verdict, "kind", v));
    v->outcome = DDP_VERDICT_NONE;
    if (cJSON_IsNull(ddp_field_item(r->verdict, "outcome")))
        return 0;
    const char *why = ddp_fields_read(&ddp_verdict_fields, r->verdict, "outcome", v);
    return why ? bad(r, "outcome", why) : 0;
}

static int read_selftest(const struct reader *r)
{
    struct ddp_stored *s = r->stored;
    const cJSON *doc = ddp_field_item(r->verdict, "selftest");
    const char *path = "";
    if (!cJSON_IsObject(doc))
        return 0;
    ddp_fields_init(&ddp_noise_fields, &s->noise);
    const char *why = ddp_fields_read_all(&ddp_noise_fields, doc, &s->noise, &path);
    if (why)
        return bad(r, path, why);
    s->verdict.noise = &s->noise;
    return 0;
}

/* Reads the documents of `compare --across`. Fills only those members of their results that
 * reporters show. */
static int read_across_documents(const struct reader *r)
{
    struct ddp_stored *s = r->stored;
    struct ddp_across *x = &s->across;
    const cJSON *list, *item;
    size_t count;
    DDP_TRY(list_at(r, "across.documents", &list, &count));
    DDP_TRY(DDP_NEW(&x->documents, count, r->err));
    DDP_TRY(DDP_NEW(&s->across_results, count, r->err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_across_document *d = &x->documents[x->document_count];
        struct ddp_result *result = &s->across_results[x->document_count++];
        ddp_fields_read_valid(&ddp_across_document_fields, item, d);
        ddp_fields_read_valid(&ddp_result_fields, item, result);
        d->result = result;
    }
    return 0;
}

/* Checks the index of a document, which must be from 1 to across.document_count - 1. */
static int check_document(const struct reader *r, size_t document)
{
    return document >= 1 && document < r->stored->across.document_count
               ? 0
               : bad(r, "across", "names a document that it does not list");
}

static int read_across(const struct reader *r)
{
    struct ddp_stored *s = r->stored;
    struct ddp_across *x = &s->across;
    const cJSON *ratios, *differences, *item;
    size_t count, difference_count;
    if (!cJSON_IsObject(ddp_field_item(r->verdict, "across")))
        return 0;
    DDP_TRY(read_across_documents(r));
    DDP_TRY(list_at(r, "across.ratios", &ratios, &count));
    DDP_TRY(list_at(r, "across.differences", &differences, &difference_count));
    DDP_TRY(DDP_NEW(&x->cells, count, r->err));
    DDP_TRY(DDP_NEW(&x->differences, difference_count, r->err));
    cJSON_ArrayForEach(item, ratios)
    {
        struct ddp_across_cell *c = &x->cells[x->count];
        DDP_TRY(read_members(r, &ddp_across_cell_fields, item, NULL, c));
        DDP_TRY(check_document(r, c->document));
        x->count++;
    }
    cJSON_ArrayForEach(item, differences)
    {
        struct ddp_across_difference *d = &x->differences[x->difference_count];
        DDP_TRY(read_members(r, &ddp_across_difference_fields, item, NULL, d));
        DDP_TRY(check_document(r, d->document));
        x->difference_count++;
    }
    s->verdict.across = x;
    return 0;
}

int ddp_stored_read_verdict(struct ddp_stored *stored, const char *file, struct ddp_err *err)
{
    const struct reader r = {.stored = stored,
                             .verdict = ddp_field_item(stored->doc, "verdict"),
                             .file = file,
                             .err = err};
    if (!r.verdict || cJSON_IsNull(r.verdict))
        return 0;
    if (!cJSON_IsObject(r.verdict))
        return bad(&r, "verdict", "is not an object");
    DDP_TRY(read_head(&r));
    DDP_TRY(read_cells(&r));
    DDP_TRY(read_unjudged(&r));
    DDP_TRY(read_accuracy(&r));
    DDP_TRY(read_selftest(&r));
    DDP_TRY(read_across(&r));
    stored->record.verdict = &stored->verdict;
    return 0;
}
