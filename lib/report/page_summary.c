/* The summary of a page in words, and the comparison of several documents. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "record/quality.h"
#include "report/page_impl.h"
#include "report/report_parts.h"

/* The summary names at most this many collectives per document. */
#define COLLECTIVES_MAX 12

/* Adds a list item with a sentence about a document. `text` is the sentence without its full stop.
 * `document` is -1 if the sentence is about several documents. */
static void sentence(struct ddp_page *page, bool markdown, int document, const char *text)
{
    ddp_strbuf_add(page->out, markdown ? "- " : "<li>");
    if (page->count > 1 && document >= 0) {
        if (markdown)
            ddp_markdown_code(page->out, page->names[document]);
        else
            ddp_page_element(page, "b", page->names[document]);
        ddp_strbuf_add(page->out, ": ");
    }
    if (markdown)
        ddp_markdown_text(page->out, text);
    else
        ddp_markup_text(page->out, text);
    ddp_strbuf_add(page->out, markdown ? ".\n" : ".</li>\n");
}

/* Writes the size and the ranks of a cell, for example "4 MiB on 2 ranks". */
static void place_text(const struct ddp_point_spec *s, char out[80])
{
    char size[24];
    ddp_quantity_text(DDP_QUANTITY_SIZE, (double)s->size_bytes, size, sizeof size);
    snprintf(out, 80, "%s on %d rank%s", size, s->ranks, s->ranks == 1 ? "" : "s");
}

/* Writes the highest bus bandwidth and the shortest time of a collective, and compares the time of
 * the collective's largest size with the bound. Uses only points with several ranks and without
 * wrong data. Writes "" if there is no such point. */
static void collective_text(const struct ddp_page *page, int document, enum ddp_coll coll,
                            char out[256])
{
    const struct ddp_plot_cell *best = NULL, *least = NULL, *largest = NULL;
    double busbw = NAN;
    char place[80], text[24];
    out[0] = '\0';
    for (size_t i = 0; i < page->cells.count; i++) {
        const struct ddp_plot_cell *c = &page->cells.items[i];
        const double own = ddp_plot_busbw(c, c->median_ns);
        if (c->source != document || c->point->spec.coll != coll || c->wrong ||
            c->point->spec.ranks < 2)
            continue;
        if (!isnan(own) && !(own <= busbw)) {
            busbw = own;
            best = c;
        }
        if (c->median_ns > 0 && (!least || c->median_ns < least->median_ns))
            least = c;
        if (c->point->bound_ns > 0 && c->median_ns > 0 &&
            (!largest || c->point->spec.size_bytes > largest->point->spec.size_bytes))
            largest = c;
    }
    if (best) {
        ddp_quantity_text(DDP_QUANTITY_GBPS, busbw, text, sizeof text);
        place_text(&best->point->spec, place);
        ddp_text_append(out, 256, "%s reaches a bus bandwidth of %s GB/s with %s",
                        ddp_coll_name(coll), text, place);
    }
    if (least) {
        ddp_quantity_text(DDP_QUANTITY_NS, least->median_ns, text, sizeof text);
        place_text(&least->point->spec, place);
        ddp_text_append(out, 256, "%s has a shortest time of %s with %s",
                        best ? ", and" : ddp_coll_name(coll), text, place);
    }
    if (largest) {
        ddp_quantity_text(DDP_QUANTITY_NUMBER, largest->median_ns / largest->point->bound_ns, text,
                          sizeof text);
        place_text(&largest->point->spec, place);
        ddp_text_append(out, 256, "; with %s it takes %s times as long as the bound", place, text);
    }
}

/* Writes how many points delivered wrong data. If no point did, writes how many points were
 * verified. Writes "" if there are no points. */
static void verified_text(const struct ddp_record *r, char out[160])
{
    int verified = 0, wrong = 0;
    for (int i = 0; i < r->point_count; i++) {
        verified += r->points[i].check_operations > 0;
        wrong += r->points[i].check_wrong > 0;
    }
    out[0] = '\0';
    if (r->point_count == 0)
        return;
    if (wrong > 0)
        snprintf(out, 160, "%d of %d points delivered wrong data", wrong, r->point_count);
    else
        snprintf(out, 160, "%d of %d points were verified, and no element was wrong", verified,
                 r->point_count);
}

static void summarize_points(struct ddp_page *page, bool markdown, int document)
{
    const struct ddp_record *r = &page->docs[document]->record;
    char text[512];
    int shown = 0;
    for (enum ddp_coll c = 0; c < DDP_COLL_COUNT && shown < COLLECTIVES_MAX; c++) {
        collective_text(page, document, c, text);
        if (text[0])
            sentence(page, markdown, document, text);
        shown += text[0] != '\0';
    }
    verified_text(r, text);
    if (text[0])
        sentence(page, markdown, document, text);
    ddp_quality_summary(r, text, sizeof text);
    if (text[0])
        sentence(page, markdown, document, text);
    if (r->left_out_count > 0) {
        snprintf(text, sizeof text, "%d part%s of the command could not run and %s left out",
                 r->left_out_count, r->left_out_count == 1 ? "" : "s",
                 r->left_out_count == 1 ? "was" : "were");
        sentence(page, markdown, document, text);
    }
}

/* A summary of the strategies that are compared with one reference. */
struct compared {
    /* The strategies with the lowest and the highest difference in accuracy. */
    const struct ddp_strategy_row *lowest, *highest;
    int count, pays, pays_not;
    char names[160]; /* the strategies with a shorter step than the reference */
};

static struct compared gather_compared(const struct ddp_page *page,
                                       const struct ddp_plot_strategy *reference)
{
    struct compared c = {.count = 0};
    for (size_t i = 0; i < page->strategies.count; i++) {
        const struct ddp_plot_strategy *s = &page->strategies.items[i];
        const struct ddp_strategy_row *row = s->row;
        if (s->source != reference->source || row->reference_run != reference->row->run ||
            isnan(row->difference.mean))
            continue;
        c.count++;
        if (!c.lowest || row->difference.mean < c.lowest->difference.mean)
            c.lowest = row;
        if (!c.highest || row->difference.mean > c.highest->difference.mean)
            c.highest = row;
        c.pays_not += row->pays == DDP_PAYS_NO;
        if (row->pays != DDP_PAYS_YES)
            continue;
        ddp_text_append(c.names, sizeof c.names, "%s%s", c.pays++ ? ", " : "", row->sync);
    }
    return c;
}

static void summarize_training(struct ddp_page *page, bool markdown, int document)
{
    for (size_t i = 0; i < page->strategies.count; i++) {
        const struct ddp_plot_strategy *s = &page->strategies.items[i];
        char text[640], mean[24];
        if (s->source != document || s->row->run != s->row->reference_run)
            continue;
        ddp_quantity_text(DDP_QUANTITY_FRACTION, s->row->accuracy.mean, mean, sizeof mean);
        snprintf(text, sizeof text, "%s with %s on %d rank%s reaches an accuracy of %s",
                 s->row->run->model, s->row->sync, s->row->ranks, s->row->ranks == 1 ? "" : "s",
                 mean);
        sentence(page, markdown, document, text);
        const struct compared c = gather_compared(page, s);
        if (c.count == 0)
            continue;
        snprintf(
            text, sizeof text,
            "the accuracy of the other strategies differs from that of %s by %+.2f points (%s) "
            "to %+.2f points (%s)",
            s->row->sync, c.lowest->difference.mean * 100, c.lowest->sync,
            c.highest->difference.mean * 100, c.highest->sync);
        sentence(page, markdown, document, text);
        if (c.pays > 0)
            snprintf(text, sizeof text,
                     "compared with %s, these strategies make a step shorter: %s", s->row->sync,
                     c.names);
        else
            snprintf(text, sizeof text,
                     "no strategy makes a step clearly shorter than %s; %d of %d make a step "
                     "clearly longer",
                     s->row->sync, c.pays_not, c.count);
        sentence(page, markdown, document, text);
    }
}

/* The ratios of a document to the first document. */
struct ratios {
    size_t count; /* Number of cells that both documents have. */
    size_t other; /* Number of cells that only one of the two documents has. */
    double log_sum;
    const struct ddp_across_cell *least, *most;
};

static struct ratios gather_ratios(const struct ddp_page *page, size_t document)
{
    struct ratios r = {.count = 0};
    for (size_t i = 0; i < page->across.count; i++) {
        const struct ddp_across_cell *c = &page->across.cells[i];
        if (c->document != document)
            continue;
        if (isnan(c->ratio)) {
            r.other++;
            continue;
        }
        r.count++;
        r.log_sum += log(c->ratio);
        r.least = !r.least || c->ratio < r.least->ratio ? c : r.least;
        r.most = !r.most || c->ratio > r.most->ratio ? c : r.most;
    }
    return r;
}

static void summarize_ratios(struct ddp_page *page, bool markdown, int document)
{
    const struct ratios r = gather_ratios(page, (size_t)document);
    char text[512], mean[24], least[24], most[24];
    if (r.count == 0) {
        snprintf(
            text, sizeof text,
            "it has no cell in common with '%s'; use --vary KEY to compare cells that differ in a "
            "key such as backend or ranks",
            page->names[0]);
    } else {
        ddp_quantity_text(DDP_QUANTITY_NUMBER, exp(r.log_sum / (double)r.count), mean, sizeof mean);
        ddp_quantity_text(DDP_QUANTITY_NUMBER, r.least->ratio, least, sizeof least);
        ddp_quantity_text(DDP_QUANTITY_NUMBER, r.most->ratio, most, sizeof most);
        snprintf(text, sizeof text,
                 "it takes %s times as long as '%s', as the geometric mean of %zu cell%s; the "
                 "ratios lie between %s and %s",
                 mean, page->names[0], r.count, r.count == 1 ? "" : "s", least, most);
        if (r.other > 0)
            ddp_text_append(text, sizeof text, "; %zu cell%s in only one of the two", r.other,
                            r.other == 1 ? " is" : "s are");
    }
    sentence(page, markdown, document, text);
}

void ddp_page_summary(struct ddp_page *page, bool markdown)
{
    for (int d = 0; d < page->count; d++) {
        const struct ddp_stored *s = page->docs[d];
        char text[1200];
        if (s->record.status != DDP_STATUS_COMPLETE) {
            snprintf(text, sizeof text, "the document is %s: %s", s->result.status,
                     s->record.reason[0] ? s->record.reason : "no reason is given");
            sentence(page, markdown, d, text);
        }
        if (s->result.edited)
            sentence(page, markdown, d, "the document was changed after it was written");
        if (s->record.verdict && !markdown) {
            snprintf(text, sizeof text, "%s: %.1000s",
                     ddp_verdict_names[s->record.verdict->outcome], s->record.verdict->reason);
            sentence(page, markdown, d, text);
        }
        summarize_points(page, markdown, d);
        summarize_training(page, markdown, d);
        for (int l = 0; l < s->record.pays.link_count && !markdown; l++)
            sentence(page, markdown, d, s->record.pays.links[l].answer);
        for (int i = 0; ddp_health_line(&s->record, i, text, sizeof text); i++)
            sentence(page, markdown, d, text);
        if (ddp_matrix_sentence(&s->record, text, sizeof text))
            sentence(page, markdown, d, text);
    }
    for (int d = 1; d < page->count; d++)
        if (page->docs[0]->result.count > 0 && page->docs[d]->result.count > 0)
            summarize_ratios(page, markdown, d);
}

/* Fills a plot with the ratios of step times. The plots over size do not show these ratios. */
static int plot_steps(struct ddp_page *page, struct ddp_plot *plot)
{
    *plot = (struct ddp_plot){.x = {DDP_QUANTITY_NUMBER, true, "step time ratio"},
                              .y = {DDP_QUANTITY_ROW, false, "step time of"}};
    ddp_plot_set_title(plot, "Step times relative to the first document");
    ddp_plot_add_mark(plot, true, 1, "same");
    if (!ddp_plot_add_series(plot, "", 0, 0, page->err))
        return DDP_ENOMEM;
    for (size_t i = 0; i < page->across.count; i++) {
        const struct ddp_across_cell *c = &page->across.cells[i];
        const struct ddp_result_point *p = ddp_result_find(&page->docs[0]->result, c->id);
        char label[256];
        if (!p || !p->step)
            continue;
        snprintf(label, sizeof label, "%s: %s", page->names[c->document], c->id);
        const struct ddp_plot_value v = {.x = c->ratio, .low = c->lower, .high = c->upper};
        DDP_TRY(ddp_plot_add_row(plot, label, v, page->err));
    }
    return 0;
}

int ddp_page_comparison(struct ddp_page *page)
{
    static const struct ddp_page_column columns[] = {{"document", true},
                                                     {"differs in", true},
                                                     {"first document", true},
                                                     {"this document", true}};
    struct ddp_plot plot;
    if (page->count < 2)
        return 0;
    ddp_strbuf_add(page->out, "<section>\n");
    ddp_page_heading(page, 2, "comparison", "Comparison");
    ddp_page_element(page, "p",
                     "Ratios are relative to the first document. Nothing is judged, because the "
                     "documents may come from different machines and times. The plots over the "
                     "size show the ratios of the collectives.");
    if (page->across.difference_count == 0)
        ddp_page_element(page, "p", "Machines, ranks, backends and builds are the same.");
    else
        ddp_page_open_table(page, "Differences between the documents", columns,
                            DDP_COUNT_OF(columns));
    for (size_t i = 0; i < page->across.difference_count; i++) {
        const struct ddp_across_difference *d = &page->across.differences[i];
        ddp_page_open_row(page, "");
        ddp_page_words(page, page->names[d->document]);
        ddp_page_words(page, d->key);
        ddp_page_words(page, d->base);
        ddp_page_words(page, d->next);
        ddp_page_close_row(page);
    }
    if (page->across.difference_count > 0)
        ddp_page_close_table(page);
    int rc = plot_steps(page, &plot);
    if (rc == 0)
        rc = ddp_page_figure(page, &plot);
    else
        ddp_plot_release(&plot);
    ddp_strbuf_add(page->out, "</section>\n");
    return rc;
}
