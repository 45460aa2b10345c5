/* The section about training runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "report/page_impl.h"

#define CELL_BYTES 272

static void strategy_text(const struct ddp_plot_strategy *s, char out[CELL_BYTES])
{
    snprintf(out, CELL_BYTES, "%s", s->name);
}

static void pays_text(const struct ddp_plot_strategy *s, char out[CELL_BYTES])
{
    static const char *const texts[] = {[DDP_PAYS_NO] = "no",
                                        [DDP_PAYS_YES] = "yes",
                                        [DDP_PAYS_UNCLEAR] = "unclear",
                                        [DDP_PAYS_UNKNOWN] = "-"};
    snprintf(out, CELL_BYTES, "%s", texts[s->row->pays]);
}

static void link_text(const struct ddp_plot_strategy *s, char out[CELL_BYTES])
{
    ddp_page_link_text(s->row->pays_below_GBps, out, CELL_BYTES);
}

/* Writes, for example, "85.10 % (84.90 to 85.30)". The range is left out if there is only one run.
 */
static void accuracy_text(const struct ddp_plot_strategy *s, char out[CELL_BYTES])
{
    const struct ddp_spread *a = &s->row->accuracy;
    if (isnan(a->mean))
        snprintf(out, CELL_BYTES, "-");
    else if (s->row->runs < 2)
        snprintf(out, CELL_BYTES, "%.2f %%", a->mean * 100);
    else
        snprintf(out, CELL_BYTES, "%.2f %% (%.2f to %.2f)", a->mean * 100, a->min * 100,
                 a->max * 100);
}

static void difference_text(const struct ddp_plot_strategy *s, char out[CELL_BYTES])
{
    snprintf(out, CELL_BYTES, isnan(s->row->difference.mean) ? "-" : "%+.2f",
             s->row->difference.mean * 100);
}

static void runs_text(const struct ddp_plot_strategy *s, char out[CELL_BYTES])
{
    snprintf(out, CELL_BYTES, "%d", s->row->runs);
}

/* The columns of the table of strategies. A column without `text` shows the double at `offset` in
 * struct ddp_strategy_row. */
#define ROW(member) offsetof(struct ddp_strategy_row, member)
static const struct {
    struct ddp_page_column column;
    void (*text)(const struct ddp_plot_strategy *strategy, char out[CELL_BYTES]);
    enum ddp_quantity quantity;
    size_t offset;
} columns[] = {
    {{"strategy", true}, .text = strategy_text},
    {{"runs", false}, .text = runs_text},
    {{"accuracy", false}, .text = accuracy_text},
    {{"differs (points)", false}, .text = difference_text},
    {{"step", false}, .quantity = DDP_QUANTITY_SECONDS, .offset = ROW(step_seconds)},
    {{"times as fast", false},
     .quantity = DDP_QUANTITY_NUMBER,
     .offset = ROW(reference_speedup.mean)},
    {{"pays", true}, .text = pays_text},
    {{"pays below", false}, .text = link_text},
    {{"exposed per step", false},
     .quantity = DDP_QUANTITY_SECONDS,
     .offset = ROW(exposed_step_seconds)},
    {{"sent per step", false},
     .quantity = DDP_QUANTITY_TRAFFIC,
     .offset = ROW(wire_bytes_per_step)},
    {{"density", false}, .quantity = DDP_QUANTITY_FRACTION, .offset = ROW(achieved_density)},
    {{"images/s", false}, .quantity = DDP_QUANTITY_NUMBER, .offset = ROW(images_per_second)},
    {{"time to target", false}, .quantity = DDP_QUANTITY_SECONDS, .offset = ROW(target_seconds)},
    {{"sent to target", false}, .quantity = DDP_QUANTITY_TRAFFIC, .offset = ROW(target_wire_bytes)},
};
#define COLUMNS DDP_COUNT_OF(columns)

static void cell_text(const struct ddp_plot_strategy *s, size_t column, char out[CELL_BYTES])
{
    double value;
    if (columns[column].text) {
        columns[column].text(s, out);
        return;
    }
    memcpy(&value, (const char *)s->row + columns[column].offset, sizeof value);
    ddp_quantity_text(columns[column].quantity, value, out, CELL_BYTES);
}

/* Adds the table of the strategies that train the model, without columns that are empty. */
static void add_table(struct ddp_page *page, const struct ddp_train_run *model)
{
    const struct ddp_plot_strategies *all = &page->strategies;
    struct ddp_page_column shown[COLUMNS];
    bool any[COLUMNS] = {false};
    char label[96], text[CELL_BYTES];
    size_t count = 0;
    for (size_t c = 0; c < COLUMNS; c++) {
        for (size_t i = 0; i < all->count && !any[c]; i++) {
            cell_text(&all->items[i], c, text);
            any[c] = ddp_plot_same_model(all->items[i].row->run, model) && strcmp(text, "-") != 0;
        }
        if (any[c])
            shown[count++] = columns[c].column;
    }
    snprintf(label, sizeof label, "%s on %s: strategies", model->model, model->dataset);
    ddp_page_open_table(page, label, shown, count);
    for (size_t i = 0; i < all->count; i++) {
        if (!ddp_plot_same_model(all->items[i].row->run, model))
            continue;
        ddp_page_open_row(page, "");
        for (size_t c = 0; c < COLUMNS; c++) {
            cell_text(&all->items[i], c, text);
            if (any[c] && columns[c].column.text)
                ddp_page_words(page, text);
            else if (any[c])
                ddp_page_cell(page, text);
        }
        ddp_page_close_row(page);
    }
    ddp_page_close_table(page);
}

static void add_verdicts(struct ddp_page *page, const struct ddp_train_run *model)
{
    bool any = false;
    for (size_t i = 0; i < page->strategies.count; i++) {
        const struct ddp_plot_strategy *s = &page->strategies.items[i];
        char text[512];
        ddp_strategy_verdict(s->row, text, sizeof text);
        if (text[0] == '\0' || !ddp_plot_same_model(s->row->run, model))
            continue;
        ddp_strbuf_add(page->out, any ? "" : "<ul>\n");
        ddp_page_element(page, "li", text);
        any = true;
    }
    ddp_strbuf_add(page->out, any ? "</ul>\n" : "");
}

/* Adds a plot of the link speeds below which a step takes less time than with the reference. */
static int add_links(struct ddp_page *page, const struct ddp_train_run *model)
{
    struct ddp_plot plot = {.x = {DDP_QUANTITY_GBPS, true, "link speed of a rank (GB/s)"},
                            .y = {DDP_QUANTITY_ROW, false, "strategy"},
                            .stems = true};
    char title[160];
    int rc = 0;
    snprintf(title, sizeof title, "%s on %s: link speeds below which a strategy pays", model->model,
             model->dataset);
    ddp_plot_set_title(&plot, title);
    ddp_page_mark_links(&plot);
    if (!ddp_plot_add_series(&plot, "", 0, 0, page->err))
        return DDP_ENOMEM;
    for (size_t i = 0; i < page->strategies.count && rc == 0; i++) {
        const struct ddp_plot_strategy *s = &page->strategies.items[i];
        const struct ddp_plot_value v = {.x = s->row->pays_below_GBps, .low = NAN, .high = NAN};
        if (ddp_plot_same_model(s->row->run, model))
            rc = ddp_plot_add_row(&plot, s->name, v, page->err);
    }
    if (rc == 0)
        return ddp_page_figure(page, &plot);
    ddp_plot_release(&plot);
    return rc;
}

static int add_accuracies(struct ddp_page *page, const struct ddp_train_run *model)
{
    for (int over_bytes = 0; over_bytes <= 1; over_bytes++) {
        struct ddp_plot plot;
        DDP_TRY(ddp_plot_accuracy(page->sources, &page->strategies, model, over_bytes != 0, &plot,
                                  page->err));
        DDP_TRY(ddp_page_figure(page, &plot));
    }
    return add_links(page, model);
}

/* Adds the figures, the verdicts and the table of one model. */
static int add_model(struct ddp_page *page, const struct ddp_train_run *model)
{
    char heading[96], settings[256];
    snprintf(heading, sizeof heading, "%s on %s", model->model, model->dataset);
    ddp_page_heading(page, 3, NULL, heading);
    snprintf(settings, sizeof settings,
             "%lld parameters, %lld training images, batch of %lld per rank, %s, learning rate "
             "%.4g%s",
             (long long)model->parameters, (long long)model->train_images,
             (long long)model->batch_per_rank, model->optimizer, model->lr,
             model->synthetic ? ", synthetic data" : "");
    ddp_page_element(page, "p class=\"note\"", settings);
    add_verdicts(page, model);
    add_table(page, model);
    ddp_strbuf_add(page->out, "<div class=\"figures\">\n");
    DDP_TRY(add_accuracies(page, model));
    ddp_strbuf_add(page->out, "</div>\n");
    return 0;
}

int ddp_page_training(struct ddp_page *page)
{
    if (page->strategies.count == 0)
        return 0;
    ddp_strbuf_add(page->out, "<section>\n");
    ddp_page_heading(page, 2, "training", "Training");
    ddp_page_element(
        page, "p",
        "The accuracy of a run is the mean over at most its last three epochs. A strategy is "
        "compared with its reference, which is dense if there is a dense run. A strategy pays if a "
        "step takes less time. The seconds are those of training, without evaluation.");
    for (size_t i = 0; i < page->strategies.count; i++) {
        const struct ddp_train_run *model = page->strategies.items[i].row->run;
        bool first = true;
        for (size_t k = 0; k < i && first; k++)
            first = !ddp_plot_same_model(page->strategies.items[k].row->run, model);
        if (first)
            DDP_TRY(add_model(page, model));
    }
    ddp_strbuf_add(page->out, "</section>\n");
    return 0;
}
