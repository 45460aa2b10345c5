/* Comma-separated values (RFC 4180) with one header line, one row per point or epoch, and one
 * column per variable. The last column is the label of the run. If strategies are compared, a row
 * of kind "comparison" per strategy follows the epochs. The answer of `pays` has a row of kind
 * "pays" per link and method. Cells that do not apply or have no value are empty. A text that a
 * spreadsheet would take for a formula gets a leading apostrophe. An interrupted run has fewer
 * rows. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "record/field.h"
#include "record/strategy_table.h"
#include "report/report.h"

/* The first columns. Their order never changes. The other columns of the field tables
 * (record/field.h) follow. */
static const char first_columns[] =
    "kind launch collective backend algorithm algorithm_used dtype op root placement memory "
    "ranks groups requested_bytes size_bytes count compress partial order iterations warmup "
    "invalid start stop block injected_percent time_median_us time_ci95_lo_us,time_ci95_hi_us "
    "time_mean_us time_stddev_us time_min_us time_p25_us time_p75_us time_p95_us time_p99_us "
    "time_max_us drifting autocorrelated algbw_GBps busbw_GBps effective_GBps "
    "wire_bytes_per_rank achieved_density skew_start_us skew_exit_us pingpong_before_ns "
    "pingpong_after_ns steal_ms throttled_ms involuntary_switches bound bound_GBps bound_us "
    "bound_fraction check check_elements check_wrong model dataset sync seed epoch train_loss "
    "train_accuracy eval_loss eval_accuracy seconds compute_seconds exchange_seconds "
    "exposed_seconds images_per_second";

/* Copies the name of the column at `at`. Returns the beginning of the next name, or NULL at the
 * end. */
static const char *next_first(const char *at, char column[64])
{
    const size_t n = strcspn(at, " ");
    snprintf(column, 64, "%.*s", (int)n, at);
    return at[n] ? at + n + 1 : NULL;
}

/* The data of a row. A column takes its value from the first element of `part` whose `fields` have
 * the column. No table of fields has the columns "kind" and "label", and only the table of points
 * has "backend". The members `kind`, `backend` and `label` have these values. */
struct row {
    const char *kind, *backend, *label;
    struct {
        const struct ddp_fields *fields;
        const void *object;
    } part[3];
};

static void text_cell(struct ddp_strbuf *out, const char *text)
{
    char clean[DDP_FIELD_TEXT_BYTES];
    ddp_printable(text, clean, sizeof clean);
    bool formula = clean[0] && strchr("=+-@", clean[0]);
    bool quote = strpbrk(clean, ",\"") != NULL;
    ddp_strbuf_add(out, quote ? "\"" : "");
    ddp_strbuf_add(out, formula ? "'" : "");
    for (const char *c = clean; *c; c++) {
        if (*c == '"')
            ddp_strbuf_add(out, "\"");
        ddp_strbuf_add_n(out, c, 1);
    }
    ddp_strbuf_add(out, quote ? "\"," : ",");
}

static void number(struct ddp_strbuf *out, double value)
{
    char text[32] = "";
    if (isfinite(value))
        ddp_format_double(value, text, sizeof text);
    ddp_strbuf_addf(out, "%s,", text);
}

static void count(struct ddp_strbuf *out, int64_t value)
{
    if (value >= 0)
        ddp_strbuf_addf(out, "%" PRId64, value);
    ddp_strbuf_add(out, ",");
}

/* Returns the field of this column, or NULL. */
static const struct ddp_field *find(const struct ddp_fields *fields, const char *column)
{
    for (size_t i = 0; fields && i < fields->count; i++)
        if (fields->field[i].column && strcmp(fields->field[i].column, column) == 0)
            return &fields->field[i];
    return NULL;
}

static void value_cells(struct ddp_strbuf *out, const struct ddp_field *f, const void *object)
{
    struct ddp_field_value v;
    ddp_field_get(f, object, &v);
    switch (f->kind) {
    case DDP_FIELD_NUMBER:
    case DDP_FIELD_TIME:
        number(out, v.number[0]);
        return;
    case DDP_FIELD_RANGE:
    case DDP_FIELD_TIME_RANGE:
        number(out, v.number[0]);
        number(out, v.number[1]);
        return;
    case DDP_FIELD_BOOL:
    case DDP_FIELD_COUNT:
        count(out, v.count);
        return;
    default:
        text_cell(out, v.text);
    }
}

/* Adds the cells of a column, or its names if `row` is NULL. A range is one column with two names
 * and two cells. */
static void column_cells(const char *column, const struct row *row, struct ddp_strbuf *out)
{
    if (!row) {
        ddp_strbuf_addf(out, "%s,", column);
        return;
    }
    if (strcmp(column, "kind") == 0) {
        text_cell(out, row->kind);
        return;
    }
    for (size_t i = 0; i < DDP_COUNT_OF(row->part); i++) {
        const struct ddp_field *f = find(row->part[i].fields, column);
        if (f) {
            value_cells(out, f, row->part[i].object);
            return;
        }
    }
    text_cell(out, strcmp(column, "backend") == 0 ? row->backend : "");
    if (strchr(column, ','))
        ddp_strbuf_add(out, ",");
}

static bool is_first(const char *column)
{
    const size_t n = strlen(column);
    for (const char *at = first_columns; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        if (strncmp(at, column, n) == 0 && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* Returns whether one of the first `count` tables has the column. */
static bool is_in_first(const struct ddp_fields *const *tables, size_t count, const char *column)
{
    for (size_t i = 0; i < count; i++)
        if (find(tables[i], column))
            return true;
    return false;
}

/* Adds a row, or the head if `row` is NULL. */
static void add_row(const struct row *row, struct ddp_strbuf *out)
{
    const struct ddp_fields *const tables[] = {
        &ddp_point_fields,       &ddp_epoch_fields,     &ddp_train_fields, &ddp_strategy_fields,
        &ddp_pays_method_fields, &ddp_pays_link_fields, &ddp_pays_fields};
    char first[64];
    for (const char *at = first_columns; at;) {
        at = next_first(at, first);
        column_cells(first, row, out);
    }
    for (size_t t = 0; t < DDP_COUNT_OF(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++) {
            const char *column = tables[t]->field[i].column;
            if (column && !is_first(column) && !is_in_first(tables, t, column))
                column_cells(column, row, out);
        }
    if (row)
        text_cell(out, row->label);
    else
        ddp_strbuf_add(out, "label,");
    if (!out->failed && out->length > 0)
        out->text[--out->length] = '\0'; /* Remove the comma after the last cell. */
    ddp_strbuf_add(out, "\r\n");
}

static void begin(const struct ddp_record *r, struct ddp_strbuf *out)
{
    (void)r;
    add_row(NULL, out);
}

static void point(const struct ddp_record *r, int index, struct ddp_strbuf *out)
{
    const struct row row = {.kind = "point",
                            .backend = "",
                            .label = r->label,
                            .part = {{&ddp_point_fields, &r->points[index]}}};
    add_row(&row, out);
}

static void epoch(const struct ddp_record *r, int run, int index, struct ddp_strbuf *out)
{
    const struct ddp_train_run *t = &r->train[run];
    const struct row row = {
        .kind = "epoch",
        .backend = r->world_backend,
        .label = r->label,
        .part = {{&ddp_epoch_fields, &t->epochs[index]}, {&ddp_train_fields, t}}};
    add_row(&row, out);
}

/* Adds a row for each link and method of the answer of `pays`. */
static void add_pays(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_pays_record *p = &r->pays;
    for (int l = 0; l < p->link_count; l++)
        for (int m = 0; m < p->method_count; m++) {
            const struct row row = {.kind = "pays",
                                    .backend = r->world_backend,
                                    .label = r->label,
                                    .part = {{&ddp_pays_method_fields, ddp_pays_at(p, l, m)},
                                             {&ddp_pays_link_fields, &p->links[l]},
                                             {&ddp_pays_fields, p}}};
            add_row(&row, out);
        }
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    struct ddp_strategy_row *rows;
    int count;
    if (ddp_strategy_table(r, &rows, &count, NULL) != 0) {
        out->failed = true;
        return;
    }
    for (int i = 0; i < count; i++) {
        const struct row row = {.kind = "comparison",
                                .backend = r->world_backend,
                                .label = r->label,
                                .part = {{&ddp_strategy_fields, &rows[i]}}};
        add_row(&row, out);
    }
    free(rows);
    add_pays(r, out);
}

const struct ddp_reporter ddp_reporter_csv = {
    .name = "csv",
    .summary = "comma-separated values, one row per point or epoch",
    .shows = DDP_RECORD_POINTS | DDP_RECORD_TRAINING | DDP_RECORD_PAYS,
    .one_head = true,
    .begin = begin,
    .point = point,
    .epoch = epoch,
    .end = end,
};
