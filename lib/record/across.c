#include "record/across.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/field.h"
#include "record/result_machine.h"

/* Limit for the number of ratios, estimated as (points of all documents) * (documents - 1). */
#define CELLS_MAX 1000000
/* Number of facts that are compared: those of the fingerprint, the host names and the build. */
#define KEYS (DDP_FACT_COUNT + 2)

#define CELL(member)       DDP_FIELD_AT(ddp_across_cell, member)
#define DIFFERENCE(member) DDP_FIELD_AT(ddp_across_difference, member)

static const struct ddp_field document_rows[] = {
    {DDP_FIELD_AT(ddp_across_document, name), DDP_FIELD_PATH, "name"},
};
static const struct ddp_field cell_rows[] = {
    {CELL(id), DDP_FIELD_BORROWED, "id"},
    {CELL(document), DDP_FIELD_COUNT, "document", .least = 1},
    {CELL(base_ns), DDP_FIELD_TIME, "base_us"},
    {CELL(next_ns), DDP_FIELD_TIME, "time_us"},
    {CELL(ratio), DDP_FIELD_NUMBER, "ratio"},
    {CELL(lower), DDP_FIELD_NUMBER, "lower"},
    {CELL(upper), DDP_FIELD_NUMBER, "upper"},
};
static const struct ddp_field difference_rows[] = {
    {DIFFERENCE(document), DDP_FIELD_COUNT, "document", .least = 1},
    {DIFFERENCE(key), DDP_FIELD_BORROWED, "key"},
    {DIFFERENCE(base), DDP_FIELD_BORROWED, "base"},
    {DIFFERENCE(next), DDP_FIELD_BORROWED, "value"},
};
const struct ddp_fields ddp_across_document_fields = {document_rows, DDP_COUNT_OF(document_rows)};
const struct ddp_fields ddp_across_cell_fields = {cell_rows, DDP_COUNT_OF(cell_rows)};
const struct ddp_fields ddp_across_difference_fields = {difference_rows,
                                                        DDP_COUNT_OF(difference_rows)};

struct ddp_ratio ddp_result_ratio(const struct ddp_result_point *a,
                                  const struct ddp_result_point *b)
{
    struct ddp_ratio r = {NAN, NAN, NAN};
    if (!a || !b || !(a->median_ns > 0) || !(b->median_ns > 0))
        return r;
    r.ratio = b->median_ns / a->median_ns;
    r.lower = a->ci95_hi_ns > 0 ? b->ci95_lo_ns / a->ci95_hi_ns : NAN;
    r.upper = a->ci95_lo_ns > 0 ? b->ci95_hi_ns / a->ci95_lo_ns : NAN;
    return r;
}

/* Appends the ratios of the cell with this id, one for each document except base. If base lacks the
 * cell, the ratios are NaN, and documents that also lack it are skipped. */
static void add_cells(const char *id, struct ddp_across *x)
{
    const struct ddp_result_point *base = ddp_result_find(x->documents[0].result, id);
    for (size_t d = 1; d < x->document_count; d++) {
        const struct ddp_result_point *next = ddp_result_find(x->documents[d].result, id);
        const struct ddp_ratio r = ddp_result_ratio(base, next);
        if (!base && !next)
            continue;
        x->cells[x->count++] = (struct ddp_across_cell){.id = id,
                                                        .document = d,
                                                        .base_ns = base ? base->median_ns : NAN,
                                                        .next_ns = next ? next->median_ns : NAN,
                                                        .ratio = r.ratio,
                                                        .lower = r.lower,
                                                        .upper = r.upper};
    }
}

/* Returns whether a document before document d has the cell. */
static bool is_listed(const struct ddp_across *x, size_t d, const char *id)
{
    for (size_t i = 0; i < d; i++)
        if (ddp_result_find(x->documents[i].result, id))
            return true;
    return false;
}

static void add_difference(struct ddp_across *x, size_t document, const char *key, const char *base,
                           const char *next)
{
    if (strcmp(base, next) != 0)
        x->differences[x->difference_count++] =
            (struct ddp_across_difference){document, key, base, next};
}

static void add_differences(struct ddp_across *x, size_t d)
{
    const struct ddp_result *base = x->documents[0].result, *next = x->documents[d].result;
    for (enum ddp_fact k = 0; k < DDP_FACT_COUNT; k++)
        add_difference(x, d, ddp_fact_name(k), base->fact[k], next->fact[k]);
    add_difference(x, d, "host names", base->hosts, next->hosts);
    add_difference(x, d, "build", base->build, next->build);
}

int ddp_across_build(const struct ddp_result *results, char (*names)[512], size_t count,
                     struct ddp_across *out, struct ddp_err *err)
{
    struct ddp_across x = {.document_count = count};
    size_t points = 0;
    int rc;
    for (size_t d = 0; d < count; d++)
        points += results[d].count;
    if (points * (count - 1) > CELLS_MAX)
        return ddp_fail(err, DDP_EUSAGE,
                        "%zu documents with %zu points have too many ratios; compare fewer "
                        "documents at once",
                        count, points);
    DDP_TRY_GOTO(DDP_NEW(&x.documents, count, err), err_across);
    DDP_TRY_GOTO(DDP_NEW(&x.cells, points * (count - 1), err), err_across);
    DDP_TRY_GOTO(DDP_NEW(&x.differences, count * KEYS, err), err_across);
    for (size_t d = 0; d < count; d++) {
        x.documents[d].result = &results[d];
        memcpy(x.documents[d].name, names[d], sizeof x.documents[d].name);
    }
    for (size_t d = 0; d < count; d++)
        for (size_t i = 0; i < results[d].count; i++)
            if (!is_listed(&x, d, results[d].points[i].id))
                add_cells(results[d].points[i].id, &x);
    for (size_t d = 1; d < count; d++)
        add_differences(&x, d);
    *out = x;
    return 0;

err_across:
    ddp_across_release(&x);
    return rc;
}

void ddp_across_release(struct ddp_across *across)
{
    free(across->documents);
    free(across->cells);
    free(across->differences);
    *across = (struct ddp_across){.count = 0};
}
