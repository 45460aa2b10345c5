/* Annotations for GitHub Actions, written as workflow commands. GitHub shows only ten annotations
 * per kind. All cells of one state therefore share one annotation, which names up to eight of them.
 */
#include <stdio.h>
#include <string.h>

#include "record/accuracy.h"
#include "record/quality.h"
#include "report/report_parts.h"

#define NAMED 8

/* Adds the text of a workflow command. '%' is escaped, because GitHub decodes %25, %0D and %0A. CR
 * and LF become '?'. */
static void data(struct ddp_strbuf *out, const char *text)
{
    static const char *const by[] = {"%25"};
    ddp_escaped_text(out, text, "%", by);
}

/* Adds the beginning of an annotation, with the label of the record. GitHub also decodes %3A and
 * %2C in a title, so ':' and ',' are escaped, too. */
static void title(const struct ddp_record *r, const char *level, struct ddp_strbuf *out)
{
    static const char *const by[] = {"%25", "%3A", "%2C"};
    ddp_strbuf_addf(out, "::%s title=ddpbench %s", level,
                    r->verdict ? ddp_verdict_kind_names[r->verdict->kind] : r->command);
    ddp_strbuf_add(out, r->label[0] ? " " : "");
    ddp_escaped_text(out, r->label, "%:,", by);
    ddp_strbuf_add(out, "::");
}

/* Adds one annotation, for example "::error title=...::3 of 9 cells slower: a 1.10 (...); b ..." */
static void cells_of(const struct ddp_record *r, enum ddp_cell_state state, const char *level,
                     const char *what, struct ddp_strbuf *out)
{
    const struct ddp_verdict_record *v = r->verdict;
    size_t count = 0;
    for (size_t i = 0; i < v->count; i++)
        count += v->cells[i].cell.state == state;
    if (count == 0)
        return;
    title(r, level, out);
    ddp_strbuf_addf(out, "%zu of %zu cells %s:", count, v->count, what);
    size_t named = 0;
    for (size_t i = 0; i < v->count && named < NAMED; i++) {
        char ratio[96];
        if (v->cells[i].cell.state != state)
            continue;
        ddp_verdict_ratio_text(&v->cells[i].cell, ratio, sizeof ratio);
        ddp_strbuf_add(out, named++ ? "; " : " ");
        data(out, v->cells[i].id);
        ddp_strbuf_addf(out, " %s", ratio);
    }
    if (count > named)
        ddp_strbuf_addf(out, "; and %zu more", count - named);
    ddp_strbuf_add(out, "\n");
}

/* Adds an annotation with the cells and training runs of base that were not judged. Items that
 * only the new result has are left out: the reason of the verdict names them, and end() adds this
 * reason as a notice. */
static void unjudged(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_verdict_record *v = r->verdict;
    size_t count = 0, named = 0;
    for (size_t i = 0; i < v->unjudged.count; i++)
        count += v->unjudged.items[i].base;
    if (count == 0)
        return;
    title(r, "warning", out);
    ddp_strbuf_addf(out, "%zu of base not judged:", count);
    for (size_t i = 0; i < v->unjudged.count && named < NAMED; i++) {
        const struct ddp_unjudged *item = &v->unjudged.items[i];
        if (!item->base)
            continue;
        ddp_strbuf_add(out, named++ ? "; " : " ");
        data(out, item->name);
        ddp_strbuf_addf(out, " (%s)", item->train ? "training run" : "cell");
    }
    if (count > named)
        ddp_strbuf_addf(out, "; and %zu more", count - named);
    ddp_strbuf_add(out, "\n");
}

/* Adds an annotation with the accuracies of one state. */
static void accuracies_of(const struct ddp_record *r, enum ddp_noninferior_state state,
                          const char *level, struct ddp_strbuf *out)
{
    const struct ddp_verdict_record *v = r->verdict;
    size_t count = 0, named = 0;
    for (size_t i = 0; i < v->accuracy_count; i++)
        count += v->accuracy[i].test.state == state;
    if (count == 0)
        return;
    title(r, level, out);
    ddp_strbuf_addf(out, "%zu of %zu accuracies %s:", count, v->accuracy_count,
                    ddp_noninferior_names[state]);
    for (size_t i = 0; i < v->accuracy_count && named < NAMED; i++) {
        char text[160];
        if (v->accuracy[i].test.state != state)
            continue;
        ddp_accuracy_text(&v->accuracy[i], text, sizeof text);
        ddp_strbuf_add(out, named++ ? "; " : " ");
        data(out, v->accuracy[i].name);
        ddp_strbuf_addf(out, " %s", text);
    }
    if (count > named)
        ddp_strbuf_addf(out, "; and %zu more", count - named);
    ddp_strbuf_add(out, "\n");
}

/* Adds an annotation with the doubtful points. */
static void doubtful(const struct ddp_record *r, struct ddp_strbuf *out)
{
    char summary[320], id[192];
    int count = 0;
    ddp_quality_summary(r, summary, sizeof summary);
    if (!summary[0])
        return;
    title(r, "warning", out);
    ddp_strbuf_addf(out, "%s;", summary);
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        if (p->quality == 0 || count++ >= NAMED)
            continue;
        ddp_point_id(&p->spec, id, sizeof id);
        ddp_strbuf_add(out, count > 1 ? "; " : " ");
        data(out, id);
    }
    if (count > NAMED)
        ddp_strbuf_addf(out, "; and %d more", count - NAMED);
    ddp_strbuf_add(out, "\n");
}

static void end(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_verdict_record *v = r->verdict;
    if (v) {
        cells_of(r, DDP_CELL_SLOWER, "error", "slower", out);
        cells_of(r, DDP_CELL_UNCERTAIN, "warning", "uncertain", out);
        cells_of(r, DDP_CELL_MISSING, "warning", "missing in new", out);
        unjudged(r, out);
        accuracies_of(r, DDP_WORSE, "error", out);
        accuracies_of(r, DDP_ACCURACY_UNCERTAIN, "warning", out);
        title(r, "notice", out);
        ddp_strbuf_addf(out, "%s: ", ddp_verdict_names[v->outcome]);
        data(out, v->reason);
        ddp_strbuf_add(out, "\n");
    }
    doubtful(r, out);
    if (r->status != DDP_STATUS_COMPLETE) {
        title(r, "error", out);
        data(out, r->reason);
        ddp_strbuf_add(out, "\n");
    }
}

const struct ddp_reporter ddp_reporter_github = {
    .name = "github",
    .summary = "annotations for GitHub Actions",
    .shows = DDP_RECORD_POINTS | DDP_RECORD_VERDICT,
    .end = end,
};
