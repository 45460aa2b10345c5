/* A page in Markdown, for pull requests. It shows the verdicts, the summary, the cells that
 * changed, the strategies, and the answers of `pays`. The other cells, the points and the commands
 * are folded. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/page_impl.h"
#include "report/report_parts.h"

/* Returns true if the interval of the ratio does not contain 1. */
static bool has_changed(const struct ddp_across_cell *c)
{
    return c->lower > 1 || c->upper < 1;
}

static void add_ratios(const struct ddp_page *page, bool changed)
{
    struct ddp_strbuf *out = page->out;
    ddp_strbuf_add(out, "| cell | document | base (us) | time (us) | ratio | lower | upper |\n"
                        "|:--|:--|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < page->across.count; i++) {
        const struct ddp_across_cell *c = &page->across.cells[i];
        if (has_changed(c) != changed)
            continue;
        ddp_strbuf_add(out, "| ");
        ddp_markdown_code(out, c->id);
        ddp_strbuf_add(out, " | ");
        ddp_markdown_code(out, page->names[c->document]);
        ddp_strbuf_add(out, " |");
        ddp_markdown_number(out, 2, c->base_ns / 1e3);
        ddp_markdown_number(out, 2, c->next_ns / 1e3);
        ddp_markdown_number(out, 3, c->ratio);
        ddp_markdown_number(out, 3, c->lower);
        ddp_markdown_number(out, 3, c->upper);
        ddp_strbuf_add(out, "\n");
    }
    ddp_strbuf_add(out, "\n");
}

/* Adds the ratios to the first document. */
static void add_comparison(const struct ddp_page *page)
{
    struct ddp_strbuf *out = page->out;
    size_t changed = 0;
    char summary[64];
    if (page->across.count == 0)
        return;
    for (size_t i = 0; i < page->across.count; i++)
        changed += has_changed(&page->across.cells[i]);
    ddp_strbuf_add(out, "## Ratios to the time of ");
    ddp_markdown_code(out, page->names[0]);
    ddp_strbuf_add(out, "\n\nA cell has changed if the interval of its ratio does not contain 1. "
                        "Nothing is judged.\n\n");
    if (changed > 0)
        add_ratios(page, true);
    else
        ddp_strbuf_add(out, "No cell has changed.\n\n");
    if (changed == page->across.count)
        return;
    snprintf(summary, sizeof summary, "%zu other ratios", page->across.count - changed);
    ddp_markdown_fold(out, summary);
    add_ratios(page, false);
    ddp_markdown_unfold(out);
}

/* Adds the points of a document, its strategies, and the answer of `pays`. The points are folded.
 */
static void add_details(const struct ddp_page *page, int document)
{
    const struct ddp_stored *s = page->docs[document];
    struct ddp_strbuf *out = page->out;
    char summary[160] = "Points of document ";
    if (s->record.point_count > 0) {
        ddp_text_append(summary, sizeof summary, "%d", document + 1);
        ddp_markdown_fold(out, summary);
        ddp_markdown_points(&s->record, out);
        ddp_markdown_unfold(out);
    }
    ddp_markdown_strategies(&s->record, out);
    ddp_markdown_pays(&s->record.pays, out);
}

/* Adds a folded list with the command, the build, the machine and the time of each document. */
static void add_origins(const struct ddp_page *page)
{
    struct ddp_strbuf *out = page->out;
    ddp_markdown_fold(out, "How this was measured");
    for (int d = 0; d < page->count; d++) {
        const struct ddp_stored *s = page->docs[d];
        struct ddp_strbuf command = DDP_STRBUF_INIT;
        for (int i = 0; i < s->record.argc; i++)
            ddp_strbuf_addf(&command, "%s%s", i ? " " : "", s->record.argv[i]);
        ddp_strbuf_addf(out, "%d. ", d + 1);
        ddp_markdown_code(out, page->names[d]);
        ddp_strbuf_add(out, ": ");
        ddp_markdown_code(out, command.text ? command.text : "");
        ddp_strbuf_add(out, "; ddpbench ");
        ddp_markdown_code(out, s->result.build);
        ddp_strbuf_add(out, "; ");
        ddp_markdown_code(out, s->result.fingerprint);
        ddp_strbuf_add(out, "; ");
        ddp_markdown_code(out, s->record.started);
        ddp_strbuf_add(out, "\n");
        out->failed |= command.failed;
        ddp_strbuf_release(&command);
    }
    ddp_strbuf_add(out, "\n");
    ddp_markdown_unfold(out);
}

int ddp_page_markdown(struct ddp_page *page)
{
    for (int d = 0; d < page->count; d++)
        if (page->docs[d]->record.verdict)
            ddp_markdown_verdict(&page->docs[d]->record, page->out);
    ddp_page_summary(page, true);
    ddp_strbuf_add(page->out, "\n");
    add_comparison(page);
    for (int d = 0; d < page->count; d++)
        add_details(page, d);
    add_origins(page);
    return 0;
}
