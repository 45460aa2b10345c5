/* The sections about points: plots over size, plots over ranks, and compressed exchanges. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "record/point_verdict.h"
#include "record/quality.h"
#include "report/page_impl.h"

/* Adds the last cell of a row: the quality codes. */
static void add_quality(struct ddp_page *page, const struct ddp_plot_cell *cell)
{
    char codes[160];
    ddp_quality_list(cell->quality, ", ", codes, sizeof codes);
    if (cell->wrong)
        ddp_text_append(codes, sizeof codes, "%swrong data", codes[0] ? ", " : "");
    ddp_page_words(page, codes);
}

/* Opens a row, and adds its first cells: the series, if there are several, and the setting on the x
 * axis. */
static void open_row(struct ddp_page *page, const struct ddp_plot_group *g, size_t i)
{
    const struct ddp_plot_cell *cell = g->cells[i];
    static const enum ddp_quantity quantities[] = {[DDP_PLOT_OVER_SIZE] = DDP_QUANTITY_SIZE,
                                                   [DDP_PLOT_OVER_RANKS] = DDP_QUANTITY_COUNT,
                                                   [DDP_PLOT_OVER_DENSITY] = DDP_QUANTITY_FRACTION};
    ddp_page_open_row(page, cell->wrong ? "w" : cell->quality ? "q" : "");
    if (g->series_count > 1)
        ddp_page_words(page, g->names[g->series[i]]);
    ddp_page_quantity(page, quantities[g->over], ddp_plot_over_value(cell, g->over));
}

/* Opens a table. Its first columns are the series, if there are several, and the setting on the x
 * axis. The `count` columns in `columns` follow. */
static void open_table(struct ddp_page *page, const struct ddp_plot_group *g, const char *label,
                       const struct ddp_page_column *columns, size_t count)
{
    static const char *const over[] = {[DDP_PLOT_OVER_SIZE] = "size",
                                       [DDP_PLOT_OVER_RANKS] = "ranks",
                                       [DDP_PLOT_OVER_DENSITY] = "density"};
    struct ddp_page_column all[16] = {{"series", true}, {over[g->over], false}};
    const size_t skip = g->series_count > 1 ? 0 : 1;
    memcpy(all + 2, columns, count * sizeof *columns);
    ddp_page_open_table(page, label, all + skip, count + 2 - skip);
}

static void busbw_table(struct ddp_page *page, const struct ddp_plot_group *g, const char *label)
{
    static const struct ddp_page_column columns[] = {{"GB/s", false},
                                                     {"95 % interval", false},
                                                     {"of bound", false},
                                                     {"algorithm", true},
                                                     {"quality", true}};
    open_table(page, g, label, columns, DDP_COUNT_OF(columns));
    for (size_t i = 0; i < g->count; i++) {
        const struct ddp_plot_cell *c = g->cells[i];
        const double busbw = ddp_plot_busbw(c, c->median_ns);
        if (isnan(busbw))
            continue;
        open_row(page, g, i);
        ddp_page_quantity(page, DDP_QUANTITY_GBPS, busbw);
        ddp_page_range(page, DDP_QUANTITY_GBPS, ddp_plot_busbw(c, c->ci95_hi_ns),
                       ddp_plot_busbw(c, c->ci95_lo_ns));
        ddp_page_quantity(page, DDP_QUANTITY_FRACTION, c->point->bound_ns / c->median_ns);
        ddp_page_words(page, c->point->algorithm_used);
        add_quality(page, c);
        ddp_page_close_row(page);
    }
    ddp_page_close_table(page);
}

static void time_table(struct ddp_page *page, const struct ddp_plot_group *g, const char *label)
{
    static const struct ddp_page_column columns[] = {{"time", false},
                                                     {"95 % interval", false},
                                                     {"p95", false},
                                                     {"bound", false},
                                                     {"quality", true}};
    open_table(page, g, label, columns, DDP_COUNT_OF(columns));
    for (size_t i = 0; i < g->count; i++) {
        const struct ddp_plot_cell *c = g->cells[i];
        /* p95 is shown only for a point without repetitions, because a percentile of several
         * repetitions is not known. */
        const bool alone = c->point->launch == 0;
        open_row(page, g, i);
        ddp_page_quantity(page, DDP_QUANTITY_NS, c->median_ns);
        ddp_page_range(page, DDP_QUANTITY_NS, c->ci95_lo_ns, c->ci95_hi_ns);
        ddp_page_quantity(page, DDP_QUANTITY_NS, alone ? c->point->time_ns.p95 : NAN);
        ddp_page_quantity(page, DDP_QUANTITY_NS, c->point->bound_ns);
        add_quality(page, c);
        ddp_page_close_row(page);
    }
    ddp_page_close_table(page);
}

static void ratio_table(struct ddp_page *page, const struct ddp_plot_group *g, const char *label)
{
    static const struct ddp_page_column columns[] = {{"time of base", false},
                                                     {"time", false},
                                                     {"ratio", false},
                                                     {"range", false},
                                                     {"quality", true}};
    open_table(page, g, label, columns, DDP_COUNT_OF(columns));
    for (size_t i = 0; i < g->count; i++) {
        const struct ddp_plot_cell *c = g->cells[i];
        const struct ddp_result_point *base =
            c->source > 0 ? ddp_result_find(page->sources[0].result, c->merged->id) : NULL;
        const struct ddp_ratio r = ddp_result_ratio(base, c->merged);
        if (isnan(r.ratio))
            continue;
        open_row(page, g, i);
        ddp_page_quantity(page, DDP_QUANTITY_NS, base->median_ns);
        ddp_page_quantity(page, DDP_QUANTITY_NS, c->median_ns);
        ddp_page_quantity(page, DDP_QUANTITY_NUMBER, r.ratio);
        ddp_page_range(page, DDP_QUANTITY_NUMBER, r.lower, r.upper);
        add_quality(page, c);
        ddp_page_close_row(page);
    }
    ddp_page_close_table(page);
}

static void speed_table(struct ddp_page *page, const struct ddp_plot_group *g, const char *label)
{
    static const struct ddp_page_column columns[] = {{"time", false},
                                                     {"dense f32", false},
                                                     {"times as fast", false},
                                                     {"sent per rank", false},
                                                     {"break-even by bytes", false},
                                                     {"break-even estimated", false},
                                                     {"break-even measured", false},
                                                     {"pays below", false},
                                                     {"quality", true}};
    open_table(page, g, label, columns, DDP_COUNT_OF(columns));
    for (size_t i = 0; i < g->count; i++) {
        const struct ddp_plot_cell *c = g->cells[i];
        const struct ddp_point *p = c->point;
        const struct ddp_break_even *even = &p->break_even[DDP_BASELINE_F32];
        char pays[64];
        ddp_page_link_text(ddp_point_pays_below_GBps(p, DDP_BASELINE_F32), pays, sizeof pays);
        open_row(page, g, i);
        ddp_page_quantity(page, DDP_QUANTITY_NS, c->median_ns);
        ddp_page_quantity(page, DDP_QUANTITY_NS, p->dense_ns[DDP_BASELINE_F32]);
        ddp_page_quantity(page, DDP_QUANTITY_NUMBER, ddp_point_speedup(p, DDP_BASELINE_F32));
        ddp_page_quantity(page, DDP_QUANTITY_TRAFFIC, p->wire_bytes_per_rank);
        ddp_page_quantity(page, DDP_QUANTITY_FRACTION, even->predicted);
        ddp_page_quantity(page, DDP_QUANTITY_FRACTION, even->estimated);
        ddp_page_quantity(page, DDP_QUANTITY_FRACTION, even->measured);
        ddp_page_cell(page, pays);
        add_quality(page, c);
        ddp_page_close_row(page);
    }
    ddp_page_close_table(page);
}

/* Adds a figure with a plot of the group and a table, if the plot is useful (ddp_plot_is_useful).
 */
static int add_figure(struct ddp_page *page, const struct ddp_plot_group *g,
                      enum ddp_plot_metric metric,
                      void (*table)(struct ddp_page *, const struct ddp_plot_group *, const char *))
{
    struct ddp_plot plot;
    DDP_TRY(ddp_plot_cells_over(g, metric, &plot, page->err));
    int rc = 0;
    if (ddp_plot_is_useful(&plot)) {
        rc = ddp_page_open_figure(page, &plot);
        table(page, g, plot.title);
        ddp_page_close_figure(page);
    }
    ddp_plot_release(&plot);
    return rc;
}

static int add_group(struct ddp_page *page, const struct ddp_plot_group *g)
{
    ddp_page_heading(page, 3, NULL, g->title);
    ddp_strbuf_add(page->out, "<p class=\"note\">");
    ddp_markup_text(page->out, g->note);
    ddp_strbuf_add(page->out, "</p>\n<div class=\"figures\">\n");
    if (g->positions < 2) {
        char label[160];
        snprintf(label, sizeof label, "%s: times", g->title);
        time_table(page, g, label);
    } else {
        DDP_TRY(add_figure(page, g, DDP_PLOT_BUSBW, busbw_table));
        DDP_TRY(add_figure(page, g, DDP_PLOT_TIME, time_table));
        if (page->count > 1)
            DDP_TRY(add_figure(page, g, DDP_PLOT_RATIO, ratio_table));
    }
    ddp_strbuf_add(page->out, "</div>\n");
    return 0;
}

/* Adds a section with the figures of all groups. */
static int add_section(struct ddp_page *page, enum ddp_plot_over over, const char *id,
                       const char *heading, const char *text)
{
    struct ddp_plot_groups groups;
    int rc = 0;
    DDP_TRY(ddp_plot_group_cells(page->sources, &page->cells, over, &groups, page->err));
    if (groups.count > 0) {
        ddp_strbuf_add(page->out, "<section>\n");
        ddp_page_heading(page, 2, id, heading);
        ddp_page_element(page, "p", text);
        for (size_t i = 0; i < groups.count && rc == 0; i++)
            rc = add_group(page, &groups.items[i]);
        ddp_strbuf_add(page->out, "</section>\n");
    }
    ddp_plot_groups_release(&groups);
    return rc;
}

int ddp_page_points(struct ddp_page *page)
{
    DDP_TRY(add_section(
        page, DDP_PLOT_OVER_SIZE, "sizes", "Over size",
        "The time of an operation is that of its slowest rank. A plot shows the median over the "
        "iterations with its 95 % interval. The bound is the least time that this machine needs, "
        "measured in the same run. The bus bandwidth is the rate that each rank's link must carry "
        "if an optimal algorithm runs on point-to-point links. 1 GB is 1e9 bytes."));
    return add_section(page, DDP_PLOT_OVER_RANKS, "ranks", "Over ranks",
                       "At most six sizes are shown.");
}

/* Largest number of rows in a plot of link speeds. */
#define LINKS_MAX 40

void ddp_page_mark_links(struct ddp_plot *plot)
{
    static const double gbits[] = {1, 10, 25, 100, 400};
    char label[32];
    for (size_t i = 0; i < DDP_COUNT_OF(gbits); i++) {
        snprintf(label, sizeof label, "%g Gbit/s", gbits[i]);
        ddp_plot_add_mark(plot, true, gbits[i] / 8, label);
    }
}

/* Fills a plot with the link speeds below which exchanges pay. Each point whose verdict is in the
 * summary has a row, unless its speed is 0, infinite or unknown. There are at most LINKS_MAX rows.
 */
static int plot_links(struct ddp_page *page, struct ddp_plot *plot)
{
    *plot = (struct ddp_plot){.x = {DDP_QUANTITY_GBPS, true, "link speed of a rank (GB/s)"},
                              .y = {DDP_QUANTITY_ROW, false, "exchange"},
                              .stems = true};
    ddp_plot_set_title(plot, "Link speeds below which compression pays");
    ddp_page_mark_links(plot);
    if (!ddp_plot_add_series(plot, "", 0, 0, page->err))
        return DDP_ENOMEM;
    for (int d = 0; d < page->count; d++) {
        const struct ddp_record *r = &page->docs[d]->record;
        for (int i = 0; i < r->point_count && plot->row_count < LINKS_MAX; i++) {
            const struct ddp_point *p = &r->points[i];
            const struct ddp_plot_value v = {.x = ddp_point_pays_below_GBps(p, DDP_BASELINE_F32),
                                             .low = NAN,
                                             .high = NAN,
                                             .doubtful = p->quality != 0};
            char label[200] = "", size[24];
            if (!ddp_point_verdict_in_summary(r, i))
                continue;
            ddp_quantity_text(DDP_QUANTITY_SIZE, (double)p->spec.size_bytes, size, sizeof size);
            if (page->count > 1)
                ddp_text_append(label, sizeof label, "%.60s: ", page->names[d]);
            ddp_text_append(label, sizeof label, "%s, %s, %d ranks", p->spec.compress, size,
                            p->spec.ranks);
            DDP_TRY(ddp_plot_add_row(plot, label, v, page->err));
        }
    }
    return 0;
}

/* Adds a list of the verdicts on the exchanges. Returns false if there are no verdicts. */
static bool add_verdicts(struct ddp_page *page)
{
    bool any = false;
    for (int d = 0; d < page->count; d++)
        for (int i = 0; i < page->docs[d]->record.point_count; i++) {
            char text[512];
            if (!ddp_point_verdict_in_summary(&page->docs[d]->record, i))
                continue;
            ddp_point_verdict(&page->docs[d]->record.points[i], text, sizeof text);
            ddp_strbuf_add(page->out, any ? "" : "<ul>\n");
            ddp_page_element(page, "li", text);
            ddp_strbuf_add(page->out, "\n");
            any = true;
        }
    ddp_strbuf_add(page->out, any ? "</ul>\n" : "");
    return any;
}

static bool has_reduced(const struct ddp_page *page)
{
    for (size_t i = 0; i < page->cells.count; i++)
        if (ddp_point_is_reduced(&page->cells.items[i].point->spec))
            return true;
    return false;
}

static int add_densities(struct ddp_page *page)
{
    struct ddp_plot_groups groups;
    int rc = 0;
    DDP_TRY(ddp_plot_group_cells(page->sources, &page->cells, DDP_PLOT_OVER_DENSITY, &groups,
                                 page->err));
    for (size_t i = 0; i < groups.count && rc == 0; i++)
        rc = add_figure(page, &groups.items[i], DDP_PLOT_SPEEDUP, speed_table);
    ddp_plot_groups_release(&groups);
    return rc;
}

int ddp_page_compressed(struct ddp_page *page)
{
    struct ddp_plot links;
    if (!has_reduced(page))
        return 0;
    ddp_strbuf_add(page->out, "<section>\n");
    ddp_page_heading(page, 2, "compression", "Compression");
    ddp_page_element(
        page, "p",
        "The density is the part of the values that a rank sends. Below the break-even density an "
        "exchange takes less time than the dense exchange. It also takes less time on links below "
        "the speed that a verdict names. In shared memory nothing crosses a link.");
    add_verdicts(page);
    ddp_strbuf_add(page->out, "<div class=\"figures\">\n");
    DDP_TRY(add_densities(page));
    int rc = plot_links(page, &links);
    if (rc == 0)
        rc = ddp_page_figure(page, &links);
    else
        ddp_plot_release(&links);
    ddp_strbuf_add(page->out, "</div></section>\n");
    return rc;
}
