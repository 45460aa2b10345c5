/* The section about stored verdicts of `gate` and `compare`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "record/accuracy.h"
#include "report/page_impl.h"
#include "report/report_parts.h"

/* A plot of ratios shows at most this many rows. The table shows all rows. */
#define ROWS_MAX 40

static const char *outcome_class(enum ddp_verdict outcome)
{
    return outcome == DDP_VERDICT_PASS           ? "good"
           : outcome == DDP_VERDICT_FAIL         ? "bad"
           : outcome == DDP_VERDICT_INCONCLUSIVE ? "warn"
                                                 : "none";
}

static const char *state_class(enum ddp_cell_state state)
{
    return state == DDP_CELL_SLOWER      ? "w"
           : state == DDP_CELL_FASTER    ? "f"
           : state == DDP_CELL_UNCERTAIN ? "q"
                                         : "";
}

/* The order in which cells are shown: slower, faster, uncertain, then the others. */
static const enum ddp_cell_state state_order[] = {
    DDP_CELL_SLOWER, DDP_CELL_FASTER, DDP_CELL_UNCERTAIN, DDP_CELL_SAME, DDP_CELL_MISSING};

static void add_cells(struct ddp_page *page, const struct ddp_verdict_record *v, const char *label)
{
    static const struct ddp_page_column columns[] = {
        {"cell", true},    {"base", false},     {"new", false},  {"ratio", false},
        {"bounds", false}, {"p (Holm)", false}, {"result", true}};
    struct ddp_verdict_cell c;
    char state[64];
    ddp_page_open_table(page, label, columns, DDP_COUNT_OF(columns));
    for (size_t k = 0; k < DDP_COUNT_OF(state_order); k++)
        for (size_t i = 0; ddp_verdict_row(v, i, &c, state); i++) {
            if (c.cell.state != state_order[k])
                continue;
            ddp_page_open_row(page, state_class(c.cell.state));
            ddp_page_words(page, c.id);
            ddp_page_quantity(page, DDP_QUANTITY_NS, c.base_ns);
            ddp_page_quantity(page, DDP_QUANTITY_NS, c.next_ns);
            ddp_page_quantity(page, DDP_QUANTITY_NUMBER, c.cell.ratio);
            ddp_page_range(page, DDP_QUANTITY_NUMBER, c.cell.lower, c.cell.upper);
            ddp_page_quantity(page, DDP_QUANTITY_NUMBER, c.cell.p_holm);
            ddp_page_words(page, state);
            ddp_page_close_row(page);
        }
    ddp_page_close_table(page);
}

/* Fills a plot with the ratios of the cells. The cells of each state form a series. */
static int plot_ratios(struct ddp_page *page, const struct ddp_verdict_record *v,
                       struct ddp_plot *plot)
{
    static const int colors[] = {[DDP_CELL_SLOWER] = 1,
                                 [DDP_CELL_FASTER] = 2,
                                 [DDP_CELL_UNCERTAIN] = 4,
                                 [DDP_CELL_SAME] = 0,
                                 [DDP_CELL_MISSING] = 5};
    char mark[32];
    *plot =
        (struct ddp_plot){.x = {DDP_QUANTITY_NUMBER, true, "time of new divided by time of base"},
                          .y = {DDP_QUANTITY_ROW, false, "cell"}};
    ddp_plot_add_mark(plot, true, 1, "equal");
    snprintf(mark, sizeof mark, "+%.3g %%", v->min_effect * 100);
    if (v->min_effect > 0)
        ddp_plot_add_mark(plot, true, 1 + v->min_effect, mark);
    for (size_t k = 0; k < DDP_COUNT_OF(state_order); k++) {
        const enum ddp_cell_state state = state_order[k];
        if (!ddp_plot_add_series(plot, ddp_cell_state_text(state), colors[state], colors[state],
                                 page->err))
            return DDP_ENOMEM;
        for (size_t i = 0; i < v->count && plot->row_count < ROWS_MAX; i++) {
            const struct ddp_verdict_cell *c = &v->cells[i];
            const struct ddp_plot_value value = {
                .x = c->cell.ratio, .low = c->cell.lower, .high = c->cell.upper};
            if (c->cell.state == state)
                DDP_TRY(ddp_plot_add_row(plot, c->id, value, page->err));
        }
    }
    ddp_plot_finish(plot);
    return 0;
}

/* Adds the table of all cells. If a cell has a ratio, the table is part of a figure that also has a
 * plot of the ratios. */
static int add_ratios(struct ddp_page *page, const char *name, const struct ddp_verdict_record *v)
{
    struct ddp_plot plot;
    char title[200];
    if (v->count == 0 && v->unjudged.count == 0)
        return 0;
    int rc = plot_ratios(page, v, &plot);
    snprintf(title, sizeof title, "%s: ratios of the cells", name);
    ddp_plot_set_title(&plot, title);
    const bool any = ddp_plot_values(&plot) > 0;
    if (rc == 0 && any)
        rc = ddp_page_open_figure(page, &plot);
    if (rc == 0) {
        add_cells(page, v, title);
        if (any)
            ddp_page_close_figure(page);
    }
    ddp_plot_release(&plot);
    return rc;
}

static void add_accuracies(struct ddp_page *page, const struct ddp_verdict_record *v,
                           const char *name)
{
    static const struct ddp_page_column columns[] = {
        {"accuracy of", true}, {"seeds", false}, {"base", false}, {"new", false}, {"result", true}};
    char label[200], text[256];
    if (v->accuracy_count == 0)
        return;
    snprintf(label, sizeof label, "%s: accuracies", name);
    ddp_page_open_table(page, label, columns, DDP_COUNT_OF(columns));
    for (size_t i = 0; i < v->accuracy_count; i++) {
        const struct ddp_verdict_accuracy *a = &v->accuracy[i];
        ddp_accuracy_text(a, text, sizeof text);
        ddp_page_open_row(page, a->test.state == DDP_WORSE                ? "w"
                                : a->test.state == DDP_ACCURACY_UNCERTAIN ? "q"
                                                                          : "");
        ddp_page_words(page, a->name);
        ddp_page_quantity(page, DDP_QUANTITY_COUNT, (double)a->test.seeds);
        ddp_page_quantity(page, DDP_QUANTITY_FRACTION, a->base);
        ddp_page_quantity(page, DDP_QUANTITY_FRACTION, a->next);
        char state[320];
        snprintf(state, sizeof state, "%s: %s", ddp_noninferior_names[a->test.state], text);
        ddp_page_words(page, state);
        ddp_page_close_row(page);
    }
    ddp_page_close_table(page);
}

static void fact(struct ddp_page *page, const char *name, const char *format, double value)
{
    char text[64];
    ddp_page_open_row(page, "");
    ddp_page_element(page, "th class=\"t\" scope=\"row\"", name);
    snprintf(text, sizeof text, "%.3g%s", value, format);
    ddp_page_cell(page, isfinite(value) ? text : "-");
    ddp_page_close_row(page);
}

/* Adds the results of a self-test. */
static void add_noise(struct ddp_page *page, const struct ddp_noise *n, const char *name)
{
    static const struct ddp_page_column columns[] = {{"self-test", true}, {"result", false}};
    char label[200];
    snprintf(label, sizeof label, "%s: self-test", name);
    ddp_page_open_table(page, label, columns, DDP_COUNT_OF(columns));
    fact(page, "gates of equal commands", "", n->same);
    fact(page, "of these, false alarms", "", n->false_alarms);
    fact(page, "of these, inconclusive", "", n->inconclusive);
    fact(page, "injected slow-down", " %", n->injected_effect * 100);
    fact(page, "gates with a slowed cell", "", n->injected);
    fact(page, "of these, the cell was found", "", n->found);
    fact(page, "gates that reported a cell that was not slowed", "", n->elsewhere);
    fact(page, "noise floor", " %", n->noise_floor * 100);
    fact(page, "smallest slow-down that is found", " %", n->detectable * 100);
    ddp_page_close_table(page);
}

/* Adds the ratios of a stored `compare --across`. */
static void add_across(struct ddp_page *page, const struct ddp_across *x, const char *name)
{
    static const struct ddp_page_column columns[] = {{"cell", true},   {"document", true},
                                                     {"base", false},  {"time", false},
                                                     {"ratio", false}, {"range", false}};
    char label[200];
    snprintf(label, sizeof label, "%s: ratios", name);
    ddp_page_open_table(page, label, columns, DDP_COUNT_OF(columns));
    for (size_t i = 0; i < x->count; i++) {
        const struct ddp_across_cell *c = &x->cells[i];
        ddp_page_open_row(page, "");
        ddp_page_words(page, c->id);
        ddp_page_words(page, x->documents[c->document].name);
        ddp_page_quantity(page, DDP_QUANTITY_NS, c->base_ns);
        ddp_page_quantity(page, DDP_QUANTITY_NS, c->next_ns);
        ddp_page_quantity(page, DDP_QUANTITY_NUMBER, c->ratio);
        ddp_page_range(page, DDP_QUANTITY_NUMBER, c->lower, c->upper);
        ddp_page_close_row(page);
    }
    ddp_page_close_table(page);
}

static void side(struct ddp_page *page, const char *name, const char *command, const char *build)
{
    if (!command[0] && !build[0])
        return;
    ddp_page_element(page, "dt", name);
    ddp_strbuf_add(page->out, "<dd><code>");
    ddp_markup_text(page->out, command);
    ddp_strbuf_add(page->out, "</code> ");
    ddp_markup_text(page->out, build);
    ddp_strbuf_add(page->out, "</dd>\n");
}

/* Adds the compared commands and the settings of the verdict. */
static void add_settings(struct ddp_page *page, const struct ddp_verdict_record *v)
{
    char text[800], keys[96];
    ddp_strbuf_add(page->out, "<dl>");
    side(page, "base", v->base_command, v->base_build);
    side(page, "new", v->next_command, v->next_build);
    if (v->min_effect > 0) {
        snprintf(text, sizeof text, "%.3g %%: %s", v->min_effect * 100, v->effect_from);
        side(page, "smallest effect that counts", "", text);
    }
    snprintf(text, sizeof text, "%d pairs, of at most %d, with %d run%s of each command", v->pairs,
             v->max_pairs, DDP_MAX(v->runs, 1), v->runs > 1 ? "s" : "");
    side(page, "measured", "",
         v->pairs > 0 ? text
                      : "stored results, measured at different times, which is weaker than a gate");
    ddp_vary_text(v->vary, keys, sizeof keys);
    side(page, "not part of a cell's id", "", keys);
    side(page, "machine", "", v->fingerprint);
    ddp_strbuf_add(page->out, "</dl>\n");
}

static int add_verdict(struct ddp_page *page, int document)
{
    const struct ddp_verdict_record *v = page->docs[document]->record.verdict;
    const char *name = page->names[document];
    ddp_strbuf_addf(page->out, "<p class=\"verdict %s\"><strong>%s</strong> ",
                    outcome_class(v->outcome), ddp_verdict_names[v->outcome]);
    ddp_markup_text(page->out, name);
    ddp_strbuf_add(page->out, ": ");
    ddp_markup_text(page->out, v->reason);
    ddp_strbuf_add(page->out, "</p>\n");
    if (v->noise)
        add_noise(page, v->noise, name);
    if (v->across)
        add_across(page, v->across, name);
    DDP_TRY(add_ratios(page, name, v));
    add_accuracies(page, v, name);
    add_settings(page, v);
    return 0;
}

int ddp_page_verdicts(struct ddp_page *page)
{
    bool any = false;
    for (int d = 0; d < page->count; d++) {
        if (!page->docs[d]->record.verdict)
            continue;
        if (!any) {
            ddp_strbuf_add(page->out, "<section>\n");
            ddp_page_heading(page, 2, "verdicts", "Verdicts");
        }
        any = true;
        DDP_TRY(add_verdict(page, d));
    }
    ddp_strbuf_add(page->out, any ? "</section>\n" : "");
    return 0;
}
