/* The section of a page with the answers of `ddpbench pays`: a sentence and a table for each
 * link. */
#include <stdio.h>

#include "report/page_impl.h"
#include "report/report_parts.h"

#define COLUMNS_MAX 16

static void add_link(struct ddp_page *page, int document, int link)
{
    const struct ddp_pays_record *p = &page->docs[document]->record.pays;
    struct ddp_page_column columns[COLUMNS_MAX];
    char name[DDP_PAYS_CELL], label[256], text[DDP_PAYS_CELL];
    size_t count = 0;
    ddp_pays_link_name(&p->links[link], name, sizeof name);
    ddp_page_heading(page, 3, NULL, name);
    ddp_page_element(page, "p", p->links[link].answer);
    for (; count < COLUMNS_MAX &&
           ddp_pays_cell(ddp_pays_at(p, link, 0), count, &columns[count].head, text);
         count++)
        columns[count].text = count == 0;
    snprintf(label, sizeof label, "Methods, link %d of %s: %s", link + 1, page->names[document],
             name);
    ddp_page_open_table(page, label, columns, count);
    for (int m = 0; m < p->method_count; m++) {
        const struct ddp_pays_method *method = ddp_pays_at(p, link, m);
        ddp_page_open_row(page, method->pays ? "f" : "");
        for (size_t c = 0; c < count; c++) {
            ddp_pays_cell(method, c, &columns[c].head, text);
            if (c == 0)
                ddp_page_words(page, text);
            else
                ddp_page_cell(page, text);
        }
        ddp_page_close_row(page);
    }
    ddp_page_close_table(page);
}

void ddp_page_pays(struct ddp_page *page)
{
    bool open = false;
    for (int d = 0; d < page->count; d++) {
        const struct ddp_pays_record *p = &page->docs[d]->record.pays;
        char text[360], training[160];
        if (p->link_count == 0)
            continue;
        if (!open) {
            ddp_strbuf_add(page->out, "<section>\n");
            ddp_page_heading(page, 2, "pays", "Does compression pay?");
            ddp_page_element(page, "p class=\"note\"", DDP_PAYS_NOTE);
            open = true;
        }
        ddp_pays_training(p, training, sizeof training);
        snprintf(text, sizeof text, "%s%s%s", page->count > 1 ? page->names[d] : "",
                 page->count > 1 ? ": " : "", training);
        ddp_page_element(page, "p", text);
        for (int l = 0; l < p->link_count; l++)
            add_link(page, d, l);
    }
    if (open)
        ddp_strbuf_add(page->out, "</section>\n");
}
