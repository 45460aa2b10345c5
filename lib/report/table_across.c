/* The ratios of `compare --across` as a text table and in Markdown. */
#include <math.h>

#include "record/across.h"
#include "report/report_parts.h"

static void text_line(const char *mark, const char *text, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, mark);
    ddp_table_text(out, text);
    ddp_strbuf_add(out, "\n");
}

static void table_head(const struct ddp_across *x, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, DDP_DIM);
    for (size_t d = 0; d < x->document_count; d++) {
        ddp_strbuf_addf(out, "# document %zu%s: ", d, d ? "" : ", the base");
        text_line("", x->documents[d].name, out);
        text_line("#     ", x->documents[d].result->build, out);
        text_line("#     ", x->documents[d].result->fingerprint, out);
    }
    for (size_t i = 0; i < x->difference_count; i++) {
        const struct ddp_across_difference *diff = &x->differences[i];
        ddp_strbuf_addf(out, "# document %zu differs in %s: '", diff->document, diff->key);
        ddp_table_text(out, diff->next);
        ddp_strbuf_add(out, "', base: '");
        ddp_table_text(out, diff->base);
        ddp_strbuf_add(out, "'\n");
    }
    ddp_strbuf_add(out, "# ratio: time of the document divided by the time of base. lower, upper: "
                        "the smallest and largest ratio that the 95 % intervals of both medians "
                        "allow\n"
                        "# cell                                                         document"
                        "  base(us)  time(us)   ratio   lower   upper\n" DDP_PLAIN);
}

void ddp_table_across(const struct ddp_across *x, struct ddp_strbuf *out)
{
    table_head(x, out);
    for (size_t i = 0; i < x->count; i++) {
        const struct ddp_across_cell *c = &x->cells[i];
        ddp_strbuf_addf(out, "%-62s %8zu", c->id, c->document);
        ddp_table_cell(out, 10, c->base_ns / 1e3);
        ddp_table_cell(out, 10, c->next_ns / 1e3);
        ddp_table_fixed(out, 7, 3, c->ratio);
        ddp_table_fixed(out, 7, 3, c->lower);
        ddp_table_fixed(out, 7, 3, c->upper);
        ddp_strbuf_add(out, "\n");
    }
}

void ddp_markdown_across(const struct ddp_across *x, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "| cell | document | base (us) | time (us) | ratio | lower | upper |\n"
                        "|:--|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < x->count; i++) {
        const struct ddp_across_cell *c = &x->cells[i];
        ddp_strbuf_add(out, "| ");
        ddp_markdown_code(out, c->id);
        ddp_strbuf_addf(out, " | %zu |", c->document);
        ddp_markdown_number(out, 2, c->base_ns / 1e3);
        ddp_markdown_number(out, 2, c->next_ns / 1e3);
        ddp_markdown_number(out, 3, c->ratio);
        ddp_markdown_number(out, 3, c->lower);
        ddp_markdown_number(out, 3, c->upper);
        ddp_strbuf_add(out, "\n");
    }
    ddp_strbuf_add(out, "\n");
    for (size_t d = 0; d < x->document_count; d++) {
        ddp_strbuf_addf(out, "- document %zu%s: ", d, d ? "" : ", the base");
        ddp_markdown_code(out, x->documents[d].name);
        ddp_strbuf_add(out, ", ");
        ddp_markdown_code(out, x->documents[d].result->build);
        ddp_strbuf_add(out, ", ");
        ddp_markdown_code(out, x->documents[d].result->fingerprint);
        ddp_strbuf_add(out, "\n");
    }
    for (size_t i = 0; i < x->difference_count; i++) {
        const struct ddp_across_difference *diff = &x->differences[i];
        ddp_strbuf_addf(out, "- document %zu differs in %s: ", diff->document, diff->key);
        ddp_markdown_code(out, diff->next);
        ddp_strbuf_add(out, ", base: ");
        ddp_markdown_code(out, diff->base);
        ddp_strbuf_add(out, "\n");
    }
    ddp_strbuf_add(out, "\n");
}
