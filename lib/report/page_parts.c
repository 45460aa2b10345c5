/* Pieces of HTML that the sections of a page share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/page_impl.h"

void ddp_page_heading(struct ddp_page *page, int level, const char *id, const char *text)
{
    ddp_strbuf_addf(page->out, "<h%d", level);
    if (id)
        ddp_strbuf_addf(page->out, " id=\"%s\"", id);
    ddp_strbuf_add(page->out, ">");
    ddp_markup_text(page->out, text);
    ddp_strbuf_addf(page->out, "</h%d>\n", level);
}

void ddp_page_element(struct ddp_page *page, const char *element, const char *text)
{
    ddp_strbuf_addf(page->out, "<%s>", element);
    ddp_markup_text(page->out, text);
    ddp_strbuf_addf(page->out, "</%.*s>", (int)strcspn(element, " "), element);
}

void ddp_page_open_table(struct ddp_page *page, const char *label,
                         const struct ddp_page_column *columns, size_t count)
{
    ddp_strbuf_add(page->out, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"");
    ddp_markup_text(page->out, label);
    ddp_strbuf_add(page->out, "\"><table><thead><tr>");
    for (size_t i = 0; i < count; i++)
        ddp_page_element(page,
                         columns[i].text ? "th class=\"t\" scope=\"col\"" : "th scope=\"col\"",
                         columns[i].head);
    ddp_strbuf_add(page->out, "</tr></thead><tbody>\n");
}

void ddp_page_close_table(struct ddp_page *page)
{
    ddp_strbuf_add(page->out, "</tbody></table></div>\n");
}

void ddp_page_open_row(struct ddp_page *page, const char *kind)
{
    if (kind[0])
        ddp_strbuf_addf(page->out, "<tr class=\"%s\">", kind);
    else
        ddp_strbuf_add(page->out, "<tr>");
}

void ddp_page_close_row(struct ddp_page *page)
{
    ddp_strbuf_add(page->out, "</tr>\n");
}

void ddp_page_cell(struct ddp_page *page, const char *text)
{
    ddp_page_element(page, "td", text);
}

void ddp_page_words(struct ddp_page *page, const char *text)
{
    ddp_page_element(page, "td class=\"t\"", text[0] ? text : "-");
}

void ddp_page_quantity(struct ddp_page *page, enum ddp_quantity quantity, double value)
{
    char text[24];
    ddp_quantity_text(quantity, value, text, sizeof text);
    ddp_page_cell(page, text);
}

void ddp_page_range(struct ddp_page *page, enum ddp_quantity quantity, double low, double high)
{
    char from[24], to[24], text[64];
    ddp_quantity_text(quantity, low, from, sizeof from);
    ddp_quantity_text(quantity, high, to, sizeof to);
    snprintf(text, sizeof text, "%s to %s", from, to);
    ddp_page_cell(page, isnan(low) || isnan(high) ? "-" : text);
}

void ddp_page_link_text(double GBps, char *out, size_t out_bytes)
{
    char bytes[24], bits[24];
    ddp_quantity_text(DDP_QUANTITY_NUMBER, GBps, bytes, sizeof bytes);
    ddp_quantity_text(DDP_QUANTITY_NUMBER, GBps * 8, bits, sizeof bits);
    if (isfinite(GBps) && GBps > 0)
        snprintf(out, out_bytes, "%s GB/s (%s Gbit/s)", bytes, bits);
    else
        snprintf(out, out_bytes, "%s", isnan(GBps) ? "-" : isinf(GBps) ? "any link" : "no link");
}

struct ddp_strbuf *ddp_page_keep_file(struct ddp_page *page, const char *name)
{
    if (DDP_RESIZE(&page->files, page->file_count + 1, page->err) != 0)
        return NULL;
    struct ddp_page_file *file = &page->files[page->file_count];
    *file = (struct ddp_page_file){.text = DDP_STRBUF_INIT};
    snprintf(file->name, sizeof file->name, "%.64s.svg", name);
    for (size_t i = 0, copy = 2; i < page->file_count; i++)
        if (strcmp(page->files[i].name, file->name) == 0) {
            snprintf(file->name, sizeof file->name, "%.64s-%zu.svg", name, copy++);
            i = (size_t)-1; /* The new name may be taken, too, so start again. */
        }
    page->file_count++;
    return &file->text;
}

/* Adds the symbols and names of the series. A series without a name is left out. */
static void add_legend(struct ddp_page *page, const struct ddp_plot *plot)
{
    ddp_strbuf_add(page->out, "<div class=\"legend\">");
    for (int i = 0; i < plot->count; i++) {
        if (plot->series[i].name[0] == '\0')
            continue;
        ddp_strbuf_add(page->out, "<span>");
        ddp_svg_key(&plot->series[i], page->out);
        ddp_markup_text(page->out, plot->series[i].name);
        ddp_strbuf_add(page->out, "</span> ");
    }
    if (ddp_plot_has_doubtful(plot))
        ddp_strbuf_add(page->out, "<span>hollow: doubtful</span>");
    ddp_strbuf_add(page->out, "</div>\n");
}

int ddp_page_open_figure(struct ddp_page *page, struct ddp_plot *plot)
{
    if (page->keeps_files) {
        struct ddp_strbuf *text = ddp_page_keep_file(page, plot->name);
        if (!text)
            return DDP_ENOMEM;
        ddp_svg_file(plot, text);
    }
    ddp_strbuf_add(page->out, "<figure><figcaption>");
    ddp_markup_text(page->out, plot->title);
    ddp_strbuf_add(page->out, "</figcaption>\n");
    add_legend(page, plot);
    ddp_svg_inline(plot, plot->title, page->out);
    return 0;
}

void ddp_page_close_figure(struct ddp_page *page)
{
    ddp_strbuf_add(page->out, "</figure>\n");
}

/* Adds the table row of a value. The row has the label of the value's row in the plot, the name of
 * its series, x, y and the interval, if the table has these columns. */
static void add_value(struct ddp_page *page, const struct ddp_plot *plot,
                      const struct ddp_plot_series *s, const struct ddp_plot_value *v, bool names,
                      bool intervals)
{
    const bool rows = plot->row_count > 0;
    ddp_page_open_row(page, v->doubtful ? "q" : "");
    if (rows)
        ddp_page_words(page, plot->rows[(size_t)v->y]);
    if (names)
        ddp_page_words(page, s->name);
    ddp_page_quantity(page, plot->x.quantity, v->x);
    if (!rows)
        ddp_page_quantity(page, plot->y.quantity, v->y);
    if (intervals)
        ddp_page_range(page, rows ? plot->x.quantity : plot->y.quantity, v->low, v->high);
    ddp_page_close_row(page);
}

void ddp_page_plot_table(struct ddp_page *page, const struct ddp_plot *plot)
{
    const bool rows = plot->row_count > 0;
    struct ddp_page_column columns[5];
    size_t count = 0;
    bool names = false, intervals = false;
    for (int i = 0; i < plot->count; i++) {
        names |= plot->series[i].name[0] != '\0';
        for (size_t k = 0; k < plot->series[i].count; k++)
            intervals |= !isnan(plot->series[i].values[k].low);
    }
    if (rows)
        columns[count++] = (struct ddp_page_column){plot->y.label, true};
    if (names)
        columns[count++] = (struct ddp_page_column){"series", true};
    columns[count++] = (struct ddp_page_column){plot->x.label, false};
    if (!rows)
        columns[count++] = (struct ddp_page_column){plot->y.label, false};
    if (intervals)
        columns[count++] = (struct ddp_page_column){"range", false};
    ddp_page_open_table(page, plot->title, columns, count);
    for (int i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++)
            add_value(page, plot, &plot->series[i], &plot->series[i].values[k], names, intervals);
    ddp_page_close_table(page);
}

int ddp_page_figure(struct ddp_page *page, struct ddp_plot *plot)
{
    const bool useful = ddp_plot_is_useful(plot);
    int rc = useful ? ddp_page_open_figure(page, plot) : 0;
    if (rc == 0 && useful) {
        ddp_page_plot_table(page, plot);
        ddp_page_close_figure(page);
    }
    ddp_plot_release(plot);
    return rc;
}
