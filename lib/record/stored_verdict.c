/* Reads the verdict of a stored document. The keys are those that report_json.c writes. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
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

/* Sets *value to the i from 0 to count - 1 for which name(i) is the text at the path. */
static int choice(const struct reader *r, const cJSON *obj, const char *path,
                  const char *(*name)(int), int count, int *value)
{
    const cJSON *item = ddp_field_item(obj, path);
    for (int i = 0; cJSON_IsString(item) && i < count; i++)
        if (strcmp(item->valuestring, name(i)) == 0) {
            *value = i;
            return 0;
        }
    return bad(r, path, "is not a known name");
}

static const char *kind_name(int i)
{
    static const char *const names[] = {"gate", "compare", "selftest", "across"};
    return names[i];
}

static const char *outcome_name(int i)
{
    return ddp_verdict_name((enum ddp_verdict)i);
}

static const char *state_name(int i)
{
    return ddp_cell_state_name((enum ddp_cell_state)i);
}

static const char *accuracy_name(int i)
{
    return ddp_noninferior_name((enum ddp_noninferior_state)i);
}

static int read_cells(const struct reader *r)
{
    struct ddp_verdict_record *v = &r->stored->verdict;
    const cJSON *list, *item;
    size_t count;
    int state = 0;
    DDP_TRY(list_at(r, "cells", &list, &count));
    DDP_TRY(DDP_NEW(&v->cells, count, r->err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_verdict_cell *c = &v->cells[v->count];
        DDP_TRY(choice(r, item, "state", state_name, DDP_CELL_MISSING + 1, &state));
        ddp_stored_text(item, "id", c->id, sizeof c->id);
        c->base_ns = ddp_stored_number(item, "base_us") * 1e3;
        c->next_ns = ddp_stored_number(item, "new_us") * 1e3;
        c->cell = (struct ddp_cell){
            .pairs = (size_t)ddp_stored_count(item, "pairs", 1e6, 0),
            .ratio = ddp_stored_number(item, "ratio"),
            .lower = ddp_stored_number(item, "lower"),
            .upper = ddp_stored_number(item, "upper"),
            .p = ddp_stored_number(item, "p"),
            .p_holm = ddp_stored_number(item, "p_holm"),
            .state = (enum ddp_cell_state)state,
        };
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
        char name[192], kind[8], side[8];
        ddp_stored_text(item, "name", name, sizeof name);
        ddp_stored_text(item, "kind", kind, sizeof kind);
        ddp_stored_text(item, "side", side, sizeof side);
        DDP_TRY(ddp_unjudged_add(&r->stored->verdict.unjudged, name, strcmp(kind, "train") == 0,
                                 strcmp(side, "base") == 0, r->err));
    }
    return 0;
}

static int read_accuracy(const struct reader *r)
{
    struct ddp_verdict_record *v = &r->stored->verdict;
    const cJSON *list, *item;
    size_t count;
    int state = 0;
    DDP_TRY(list_at(r, "accuracy", &list, &count));
    DDP_TRY(DDP_NEW(&v->accuracy, count, r->err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_verdict_accuracy *a = &v->accuracy[v->accuracy_count];
        DDP_TRY(choice(r, item, "state", accuracy_name, DDP_ACCURACY_UNCERTAIN + 1, &state));
        ddp_stored_text(item, "name", a->name, sizeof a->name);
        a->base = ddp_stored_number(item, "base");
        a->next = ddp_stored_number(item, "new");
        a->diverged_seed = ddp_stored_number(item, "diverged_seed");
        a->test = (struct ddp_noninferior){
            .seeds = (size_t)ddp_stored_count(item, "seeds", 1e6, 0),
            .mean = ddp_stored_number(item, "difference"),
            .deviation = ddp_stored_number(item, "deviation"),
            .lower = ddp_stored_number(item, "lower"),
            .upper = ddp_stored_number(item, "upper"),
            .state = (enum ddp_noninferior_state)state,
            .seeds_needed = (size_t)ddp_stored_count(item, "seeds_needed", 1e6, 0),
        };
        v->accuracy_margin = ddp_stored_number(item, "margin");
        v->accuracy_count++;
    }
    return 0;
}

static void read_vary(const struct reader *r)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, ddp_field_item(r->verdict, "varied"))
    {
        for (int k = 0; ddp_vary_names[k]; k++)
            if (cJSON_IsString(item) && strcmp(item->valuestring, ddp_vary_names[k]) == 0)
                r->stored->verdict.vary |= 1u << k;
    }
}

/* Reads the scalar members and the list "varied". */
static int read_head(const struct reader *r)
{
    struct ddp_verdict_record *v = &r->stored->verdict;
    const cJSON *doc = r->verdict;
    int kind = 0, outcome = DDP_VERDICT_NONE;
    DDP_TRY(choice(r, doc, "kind", kind_name, 4, &kind));
    if (!cJSON_IsNull(ddp_field_item(doc, "outcome")))
        DDP_TRY(choice(r, doc, "outcome", outcome_name, DDP_VERDICT_NONE, &outcome));
    v->kind = kind_name(kind);
    v->outcome = (enum ddp_verdict)outcome;
    ddp_stored_text(doc, "reason", v->reason, sizeof v->reason);
    ddp_stored_text(doc, "min_effect_from", v->effect_from, sizeof v->effect_from);
    ddp_stored_text(doc, "base.command", v->base_command, sizeof v->base_command);
    ddp_stored_text(doc, "base.build", v->base_build, sizeof v->base_build);
    ddp_stored_text(doc, "new.command", v->next_command, sizeof v->next_command);
    ddp_stored_text(doc, "new.build", v->next_build, sizeof v->next_build);
    ddp_stored_text(doc, "fingerprint", v->fingerprint, sizeof v->fingerprint);
    v->edited[0] = cJSON_IsTrue(ddp_field_item(doc, "base.edited"));
    v->edited[1] = cJSON_IsTrue(ddp_field_item(doc, "new.edited"));
    v->level = ddp_stored_number(doc, "level");
    v->min_effect = ddp_stored_number(doc, "min_effect");
    v->noise_floor = ddp_stored_number(doc, "noise_floor");
    v->pairs = (int)ddp_stored_count(doc, "pairs", 1e6, 0);
    v->max_pairs = (int)ddp_stored_count(doc, "max_pairs", 1e6, 0);
    v->runs = (int)ddp_stored_count(doc, "runs", 1e6, 0);
    v->rerun = (int)ddp_stored_count(doc, "pairs_rerun", 1e6, 0);
    v->mixed = (int)ddp_stored_count(doc, "pairs_mixed", 1e6, 0);
    v->pingpong_ratio = ddp_stored_number(doc, "control.pingpong.ratio");
    v->pingpong_p = ddp_stored_number(doc, "control.pingpong.p");
    v->memory_ratio = ddp_stored_number(doc, "control.memory.ratio");
    v->memory_p = ddp_stored_number(doc, "control.memory.p");
    read_vary(r);
    return 0;
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
        ddp_stored_text(item, "name", d->name, sizeof d->name);
        ddp_stored_text(item, "status", result->status, sizeof result->status);
        ddp_stored_text(item, "build", result->build, sizeof result->build);
        ddp_stored_text(item, "fingerprint", result->fingerprint, sizeof result->fingerprint);
        ddp_stored_text(item, "hosts", result->hosts, sizeof result->hosts);
        result->edited = cJSON_IsTrue(ddp_field_item(item, "edited"));
        d->result = result;
    }
    return 0;
}

/* Reads the index of a document, which is from 1 to across.document_count - 1. */
static int read_document(const struct reader *r, const cJSON *item, size_t *document)
{
    const double most = (double)r->stored->across.document_count - 1;
    const int64_t at = ddp_stored_count(item, "document", most, 0);
    *document = (size_t)at;
    return at > 0 ? 0 : bad(r, "across", "names a document that it does not list");
}

static int read_across(const struct reader *r)
{
    struct ddp_stored *s = r->stored;
    struct ddp_across *x = &s->across;
    const cJSON *ratios, *differences, *item;
    size_t count, difference_count, text = 0;
    if (!cJSON_IsObject(ddp_field_item(r->verdict, "across")))
        return 0;
    DDP_TRY(read_across_documents(r));
    DDP_TRY(list_at(r, "across.ratios", &ratios, &count));
    DDP_TRY(list_at(r, "across.differences", &differences, &difference_count));
    DDP_TRY(DDP_NEW(&x->cells, count, r->err));
    DDP_TRY(DDP_NEW(&x->differences, difference_count, r->err));
    DDP_TRY(DDP_NEW(&s->across_texts, count + 3 * difference_count, r->err));
    cJSON_ArrayForEach(item, ratios)
    {
        struct ddp_across_cell *c = &x->cells[x->count];
        DDP_TRY(read_document(r, item, &c->document));
        ddp_stored_text(item, "id", s->across_texts[text], sizeof s->across_texts[0]);
        c->id = s->across_texts[text++];
        c->base_ns = ddp_stored_number(item, "base_us") * 1e3;
        c->next_ns = ddp_stored_number(item, "time_us") * 1e3;
        c->ratio = ddp_stored_number(item, "ratio");
        c->lower = ddp_stored_number(item, "lower");
        c->upper = ddp_stored_number(item, "upper");
        x->count++;
    }
    cJSON_ArrayForEach(item, differences)
    {
        static const char *const keys[] = {"key", "base", "value"};
        struct ddp_across_difference *d = &x->differences[x->difference_count];
        const char **const texts[] = {&d->key, &d->base, &d->next};
        DDP_TRY(read_document(r, item, &d->document));
        for (int i = 0; i < 3; i++) {
            ddp_stored_text(item, keys[i], s->across_texts[text], sizeof s->across_texts[0]);
            *texts[i] = s->across_texts[text++];
        }
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
