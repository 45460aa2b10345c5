/* The section of a page with the matrices of pairs. Each document has a heat map. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/page_impl.h"
#include "report/report_parts.h"

/* A heat map has at most this many rows and columns. */
#define SHOWN 64
/* Strength of the background of the fastest direction, in percent of the full colour. The text on
 * this background stays readable. */
#define FULL 45

static void add_cell(struct ddp_page *page, double GBps, double most)
{
    char element[120], text[24];
    if (isnan(GBps)) {
        ddp_page_cell(page, "-");
        return;
    }
    snprintf(element, sizeof element,
             "td style=\"background:color-mix(in srgb,var(--link) %.0f%%,transparent)\"",
             GBps / most * FULL);
    ddp_quantity_text(DDP_QUANTITY_GBPS, GBps, text, sizeof text);
    ddp_page_element(page, element, text);
}

static int add_map(struct ddp_page *page, int document, const struct ddp_matrix_summary *s)
{
    const struct ddp_record *r = &page->docs[document]->record;
    const struct ddp_matrix *m = &r->matrix;
    const int shown = DDP_MIN(m->ends, SHOWN);
    const double most = ddp_matrix_cell_of(m, s->fastest[0], s->fastest[1])->GBps;
    char(*heads)[96], label[200];
    struct ddp_page_column *columns;
    DDP_TRY(DDP_NEW(&heads, (size_t)shown, page->err));
    int rc = DDP_NEW(&columns, (size_t)shown + 1, page->err);
    if (rc == 0) {
        columns[0] = (struct ddp_page_column){"from \\ to", true};
        for (int i = 0; i < shown; i++) {
            ddp_matrix_end_name(r, i, heads[i], sizeof heads[i]);
            columns[i + 1].head = heads[i];
        }
        snprintf(label, sizeof label, "Bandwidth in GB/s between pairs, %s", page->names[document]);
        ddp_page_open_table(page, label, columns, (size_t)shown + 1);
        for (int from = 0; from < shown; from++) {
            ddp_page_open_row(page, "");
            ddp_page_words(page, heads[from]);
            for (int to = 0; to < shown; to++)
                add_cell(page, ddp_matrix_cell_of(m, from, to)->GBps, most);
            ddp_page_close_row(page);
        }
        ddp_page_close_table(page);
    }
    free(columns);
    free(heads);
    return rc;
}

int ddp_page_matrix(struct ddp_page *page)
{
    bool open = false;
    for (int d = 0; d < page->count; d++) {
        const struct ddp_matrix *m = &page->docs[d]->record.matrix;
        struct ddp_matrix_summary s;
        if (m->ends == 0)
            continue;
        DDP_TRY(ddp_matrix_summarize(m, &s, page->err));
        if (s.measured == 0)
            continue;
        if (!open) {
            ddp_strbuf_add(page->out, "<section>\n");
            ddp_page_heading(page, 2, "matrix", "Between pairs");
            ddp_page_element(
                page, "p class=\"note\"",
                "A cell has the bandwidth in GB/s from the rank or host of the row to that of the "
                "column, while the other direction is idle. A stronger colour means a higher "
                "bandwidth.");
            open = true;
        }
        if (page->count > 1)
            ddp_page_heading(page, 3, NULL, page->names[d]);
        DDP_TRY(add_map(page, d, &s));
        if (m->ends > SHOWN) {
            char text[48];
            snprintf(text, sizeof text, "The map shows the first %d ranks or hosts.", SHOWN);
            ddp_page_element(page, "p class=\"note\"", text);
        }
    }
    if (open)
        ddp_strbuf_add(page->out, "</section>\n");
    return 0;
}
