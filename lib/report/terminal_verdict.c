/* The verdicts of gate, compare and the self-test on a terminal. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/across.h"
#include "record/point_keys.h"
#include "record/vary.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

/* A row of the table of cells. document: index of the document in `compare --across`, and otherwise
 * 0. */
struct row {
    const char *id;
    size_t document;
    double base_ns, next_ns, ratio, lower, upper, p, p_holm;
    const char *state, *style;
};

/* The rows of a verdict. The cells are named by the keys in which they differ or, if `named` is
 * true, by their whole ids. */
struct rows {
    const struct ddp_verdict_record *verdict;
    struct ddp_point_range range;
    bool named;
};

static bool get_row(const struct ddp_verdict_record *v, size_t i, char id[192], char state[64],
                    struct row *out)
{
    struct ddp_verdict_cell c;
    *out = (struct row){.id = id, .state = state, .p = NAN, .p_holm = NAN};
    state[0] = '\0';
    if (v->across) {
        const struct ddp_across_cell *a = &v->across->cells[i];
        if (i >= v->across->count)
            return false;
        snprintf(id, 192, "%s", a->id);
        out->document = a->document;
        out->base_ns = a->base_ns;
        out->next_ns = a->next_ns;
        out->ratio = a->ratio;
        out->lower = a->lower;
        out->upper = a->upper;
        return true;
    }
    if (!ddp_verdict_row(v, i, &c, state))
        return false;
    ddp_printable(c.id, id, 192);
    out->base_ns = c.base_ns;
    out->next_ns = c.next_ns;
    out->ratio = c.cell.ratio;
    out->lower = c.cell.lower;
    out->upper = c.cell.upper;
    out->p = c.cell.p;
    out->p_holm = c.cell.p_holm;
    out->style = c.cell.state == DDP_CELL_SLOWER      ? DDP_RED
                 : c.cell.state == DDP_CELL_UNCERTAIN ? DDP_YELLOW
                 : c.cell.state == DDP_CELL_MISSING   ? DDP_YELLOW
                                                      : DDP_GREEN;
    return true;
}

/* Finds the keys in which the cells differ. If some cell is not a point, the cells are named by
 * their whole ids. */
static void find_keys(const struct ddp_verdict_record *v, struct rows *out)
{
    char id[192], state[64];
    struct row row;
    struct ddp_point_spec spec;
    *out = (struct rows){.verdict = v};
    for (size_t i = 0; get_row(v, i, id, state, &row); i++)
        if (ddp_point_id_parse(id, &spec))
            ddp_point_range_add(&out->range, &spec);
        else
            out->named = true;
}

enum { CELL = DDP_KEY_COUNT, DOCUMENT, BASE, NEXT, RATIO, LOWER, UPPER, P, HOLM, STATE, COLUMNS };

static void fill_row(const struct rows *rows, const struct row *row, struct ddp_column_text *cells)
{
    struct ddp_point_spec spec;
    memset(cells, 0, COLUMNS * sizeof *cells);
    if (!rows->named && ddp_point_id_parse(row->id, &spec))
        for (int k = 0; k < DDP_KEY_COUNT; k++)
            ddp_point_key_text(&spec, (enum ddp_point_key)k, cells[k].text);
    snprintf(cells[CELL].text, sizeof cells[CELL].text, "%s", row->id);
    snprintf(cells[DOCUMENT].text, sizeof cells[DOCUMENT].text, "%zu", row->document);
    ddp_column_time(&cells[BASE], row->base_ns);
    ddp_column_time(&cells[NEXT], row->next_ns);
    ddp_column_factor(&cells[RATIO], row->ratio);
    ddp_column_factor(&cells[LOWER], row->lower);
    ddp_column_factor(&cells[UPPER], row->upper);
    snprintf(cells[P].text, sizeof cells[P].text, isnan(row->p) ? "-" : "%.2g", row->p);
    snprintf(cells[HOLM].text, sizeof cells[HOLM].text, isnan(row->p_holm) ? "-" : "%.2g",
             row->p_holm);
    snprintf(cells[STATE].text, sizeof cells[STATE].text, "%s", row->state);
    cells[STATE].style = row->style;
}

/* Chooses the columns. Returns true if the cells are named by their whole ids, and the longest id
 * takes more than a third of the width. Each id then gets a line of its own. */
static bool choose_columns(const struct rows *rows, int width, struct ddp_column *columns)
{
    static const struct ddp_column figures[] = {
        {"cell", 0, 0, true, false},   {"document", 0, 0, false, true},
        {"base", 7, 0, false, false},  {"new", 7, 0, false, false},
        {"ratio", 5, 0, false, false}, {"lower", 5, 1, false, false},
        {"upper", 5, 1, false, false}, {"p", 6, 3, false, true},
        {"Holm", 6, 2, false, true},   {"", 0, 0, true, false},
    };
    struct ddp_column_text cells[COLUMNS];
    char id[192], state[64];
    struct row row;
    for (int k = 0; k < DDP_KEY_COUNT; k++)
        columns[k] = (struct ddp_column){
            .head = ddp_point_key_name((enum ddp_point_key)k),
            .left = k != DDP_KEY_SIZE && k != DDP_KEY_RANKS,
            .hidden = rows->named || !ddp_point_range_varies(&rows->range, (enum ddp_point_key)k)};
    memcpy(&columns[CELL], figures, sizeof figures);
    for (size_t i = 0; get_row(rows->verdict, i, id, state, &row); i++) {
        fill_row(rows, &row, cells);
        ddp_columns_measure(columns, cells, COLUMNS);
        columns[DOCUMENT].hidden &= row.document == 0;
        columns[P].hidden &= isnan(row.p);
        columns[HOLM].hidden &= isnan(row.p_holm);
    }
    const bool apart = rows->named && columns[CELL].width > width / 3;
    columns[CELL].hidden = !rows->named || apart;
    ddp_columns_fit(columns, COLUMNS, width);
    return apart;
}

static void add_cells(const struct ddp_verdict_record *v, int width, struct ddp_strbuf *out)
{
    struct rows rows;
    struct ddp_column columns[COLUMNS];
    struct ddp_column_text cells[COLUMNS];
    char id[192], state[64], text[640];
    struct row row;
    find_keys(v, &rows);
    const bool apart = choose_columns(&rows, width, columns);
    if (!rows.named && rows.range.count > 0) {
        ddp_point_range_constants(&rows.range, &rows.range.first, text, sizeof text);
        ddp_terminal_line(out, width, DDP_BOLD, "%s", text);
    }
    ddp_columns_head(columns, COLUMNS, out);
    for (size_t i = 0; get_row(v, i, id, state, &row); i++) {
        fill_row(&rows, &row, cells);
        if (apart)
            ddp_terminal_line(out, width, NULL, "%s", id);
        ddp_columns_row(columns, cells, COLUMNS, out);
    }
}

static void add_line(struct ddp_strbuf *out, int width, const char *before, const char *text)
{
    if (text[0])
        ddp_terminal_line(out, width, DDP_DIM, "%s%s", before, text);
}

/* Adds the compared commands and the condition for calling a cell slower. Commands are not broken
 * into lines. */
static void add_head(const struct ddp_verdict_record *v, int width, struct ddp_strbuf *out)
{
    char keys[96];
    add_line(out, 0, "base: ", v->base_command);
    add_line(out, 0, "new:  ", v->next_command);
    ddp_vary_text(v->vary, keys, sizeof keys);
    add_line(out, width, "varied, not part of a cell's id: ", keys);
    if (v->pairs > 0)
        ddp_terminal_line(out, width, DDP_DIM,
                          "%d of at most %d pairs of launches; slower: Holm <= %.3g, and lower "
                          "bound above %.3f",
                          v->pairs, v->max_pairs, v->level, 1 + v->min_effect);
    else
        ddp_terminal_line(out, width, DDP_DIM,
                          "stored results, measured at different times; slower: interval above "
                          "%.3f",
                          1 + v->min_effect);
}

static void add_documents(const struct ddp_across *x, int width, struct ddp_strbuf *out)
{
    for (size_t d = 0; d < x->document_count; d++)
        ddp_terminal_line(out, 0, DDP_DIM, "document %zu%s: %s", d, d ? "" : ", the base",
                          x->documents[d].name);
    for (size_t i = 0; i < x->difference_count; i++)
        ddp_terminal_line(out, width, DDP_YELLOW, "document %zu differs in %s: '%s', base: '%s'",
                          x->differences[i].document, x->differences[i].key, x->differences[i].next,
                          x->differences[i].base);
}

static void signed_number(struct ddp_column_text *cell, double value)
{
    snprintf(cell->text, sizeof cell->text, isfinite(value) ? "%+.4f" : "-", value);
}

static void accuracy_row(const struct ddp_verdict_accuracy *a, struct ddp_column_text cells[7])
{
    memset(cells, 0, 7 * sizeof *cells);
    snprintf(cells[0].text, sizeof cells[0].text, "%zu", a->test.seeds);
    snprintf(cells[1].text, sizeof cells[1].text, isfinite(a->base) ? "%.4f" : "-", a->base);
    snprintf(cells[2].text, sizeof cells[2].text, isfinite(a->next) ? "%.4f" : "-", a->next);
    signed_number(&cells[3], a->test.mean);
    signed_number(&cells[4], a->test.lower);
    signed_number(&cells[5], a->test.upper);
    snprintf(cells[6].text, sizeof cells[6].text, "%s", ddp_noninferior_names[a->test.state]);
    cells[6].style = a->test.state == DDP_WORSE       ? DDP_RED
                     : a->test.state == DDP_NOT_WORSE ? DDP_GREEN
                                                      : DDP_YELLOW;
}

/* Adds the accuracies of training runs, each after a line with its name. */
static void add_accuracies(const struct ddp_verdict_record *v, int width, struct ddp_strbuf *out)
{
    struct ddp_column columns[] = {
        {"seeds", 0, 0, false, false},   {"base", 6, 0, false, false},
        {"new", 6, 0, false, false},     {"differs", 7, 0, false, false},
        {"lower", 7, 1, false, false},   {"upper", 7, 1, false, false},
        {"accuracy", 0, 0, true, false},
    };
    const int count = DDP_COUNT_OF(columns);
    struct ddp_column_text cells[DDP_COUNT_OF(columns)];
    if (v->accuracy_count == 0)
        return;
    ddp_terminal_line(out, width, DDP_DIM,
                      "accuracy: mean difference of the seeds, new minus base; worse: upper bound "
                      "below -%.3g",
                      v->accuracy[0].margin);
    ddp_columns_fit(columns, count, width);
    ddp_columns_head(columns, count, out);
    for (size_t i = 0; i < v->accuracy_count; i++) {
        ddp_terminal_line(out, width, NULL, "%s", v->accuracy[i].name);
        accuracy_row(&v->accuracy[i], cells);
        ddp_columns_row(columns, cells, count, out);
    }
}

static void add_control(const char *what, double ratio, double p, int width, struct ddp_strbuf *out)
{
    if (!isnan(ratio) && p <= 0.05)
        ddp_terminal_line(out, width, DDP_YELLOW, "control (%s): ratio %.3f, p %.2g", what, ratio,
                          p);
}

/* Adds the result of a self-test. */
static void add_noise(const struct ddp_verdict_record *v, int width, struct ddp_strbuf *out)
{
    const struct ddp_noise *n = v->noise;
    char found[24] = "none";
    add_line(out, 0, "self-test of: ", n->command);
    if (!isnan(n->detectable))
        snprintf(found, sizeof found, "%.2f %%", n->detectable * 100);
    ddp_terminal_line(out, width, NULL, "A/A gates: %d; false alarms: %d; inconclusive: %d",
                      n->same, n->false_alarms, n->inconclusive);
    ddp_terminal_line(out, width, NULL,
                      "gates with a cell slowed by %.3g %%: %d; found: %d; blamed another cell: %d",
                      n->injected_effect * 100, n->injected, n->found, n->elsewhere);
    ddp_terminal_line(out, width, DDP_BOLD, "noise floor: %.2f %%; smallest slow-down found: %s",
                      n->noise_floor * 100, found);
    add_line(out, width, "", v->effect_from);
}

void ddp_terminal_verdict(const struct ddp_verdict_record *v, int width, struct ddp_strbuf *out)
{
    const char *style = v->outcome == DDP_VERDICT_PASS   ? DDP_GREEN
                        : v->outcome == DDP_VERDICT_FAIL ? DDP_RED
                                                         : DDP_YELLOW;
    if (v->noise) {
        add_noise(v, width, out);
    } else if (v->across) {
        add_documents(v->across, width, out);
        add_cells(v, width, out);
    } else {
        add_head(v, width, out);
        add_cells(v, width, out);
        add_accuracies(v, width, out);
        add_control("ping-pong", v->pingpong_ratio, v->pingpong_p, width, out);
        add_control("memory copy", v->memory_ratio, v->memory_p, width, out);
    }
    if (v->pairs > 0 && !v->noise && v->mixed > 0)
        ddp_terminal_line(out, width, DDP_YELLOW,
                          "%d pair%s kept although the ping-pong times differed", v->mixed,
                          v->mixed == 1 ? "" : "s");
    ddp_terminal_line(out, width, style, "%s%s%s", ddp_verdict_names[v->outcome],
                      v->reason[0] ? ": " : "", v->reason);
}
