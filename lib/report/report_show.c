#include "report/report_show.h"

#include <stdlib.h>

#include "base/mem.h"
#include "report/plot_terminal.h"

/* Returns the kinds of figures of a record. Returns all kinds for an empty record, because every
 * format can show that the record is empty. */
static unsigned kinds_of(const struct ddp_record *r)
{
    const unsigned kinds =
        (r->point_count > 0 ? DDP_RECORD_POINTS : 0u) |
        (r->train_count > 0 ? DDP_RECORD_TRAINING : 0u) | (r->verdict ? DDP_RECORD_VERDICT : 0u) |
        (r->matrix.ends > 0 || r->health.verdict != DDP_HEALTH_NONE ? DDP_RECORD_MATRIX : 0u) |
        (r->pays.link_count > 0 ? DDP_RECORD_PAYS : 0u);
    return kinds ? kinds : DDP_RECORD_ALL;
}

/* Refuses a document if the format shows none of its figures. */
static int check_document(const struct ddp_show_request *request, const char *path,
                          const struct ddp_record *r, struct ddp_err *err)
{
    const unsigned kinds = kinds_of(r);
    if (kinds & request->reporter->shows)
        return 0;
    ddp_fail(err, DDP_EUSAGE, "the format '%s' cannot show %s, which is all that '%s' has",
             request->reporter->name,
             kinds & DDP_RECORD_VERDICT    ? "a verdict"
             : kinds & DDP_RECORD_TRAINING ? "training runs"
             : kinds & DDP_RECORD_MATRIX   ? "a matrix or a verdict about the health"
             : kinds & DDP_RECORD_PAYS     ? "an answer of pays"
                                           : "points",
             path);
    return ddp_hint(err, "--format table shows every document");
}

/* Refuses a document that has nothing to plot, if a plot was requested. */
static int check_plot(const struct ddp_show_request *request, const struct ddp_plot_source *source,
                      struct ddp_err *err)
{
    const int plot = request->table.plot;
    const struct ddp_plot_look look = {.columns = DDP_PLOT_COLUMNS, .rows = DDP_PLOT_ROWS};
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    int rc = 0;
    if (plot == 0)
        return 0;
    rc = ddp_plot_text_over_size(source, 1, (enum ddp_plot_metric)(plot - 1), &look, &text, err);
    if (rc == 0 && text.length == 0)
        rc = ddp_fail(err, DDP_EUSAGE,
                      "'%s' has nothing to plot: '%s' was not measured for several sizes of one "
                      "collective",
                      source->name, ddp_plot_choices[plot]);
    ddp_strbuf_release(&text);
    return rc;
}

/* Checks the documents that were read, and writes them to the output. */
static int write_documents(const struct ddp_show_request *request, const struct ddp_stored *docs,
                           struct ddp_err *err)
{
    struct ddp_plot_source *sources;
    struct ddp_report_set *set = NULL;
    int rc = 0;
    DDP_TRY(DDP_NEW(&sources, request->count, err));
    for (size_t i = 0; i < request->count && rc == 0; i++) {
        sources[i] = (struct ddp_plot_source){.name = request->paths[i],
                                              .record = &docs[i].record,
                                              .result = &docs[i].result,
                                              .merged = docs[i].merged};
        rc = check_document(request, request->paths[i], &docs[i].record, err);
        if (rc == 0)
            rc = check_plot(request, &sources[i], err);
    }
    if (rc == 0)
        rc = ddp_report_open(&set, err);
    if (rc == 0) {
        ddp_report_set_table(set, &request->table);
        rc = ddp_report_add(set, request->reporter, request->output, err);
    }
    for (size_t i = 0; i < request->count && rc == 0; i++)
        rc = ddp_report_protect(set, request->paths[i], err);
    if (rc == 0)
        rc = ddp_report_show(set, sources, (int)request->count, err);
    ddp_report_close(set);
    free(sources);
    return rc;
}

int ddp_show(const struct ddp_show_request *request, struct ddp_err *err)
{
    const struct ddp_reporter *reporter = request->reporter;
    struct ddp_stored *docs;
    if (request->count > 1 && reporter->document && !reporter->joins)
        return ddp_fail(err, DDP_EUSAGE,
                        "the format '%s' is for one document, but '%s' is the second one",
                        reporter->name, request->paths[1]);
    DDP_TRY(ddp_stored_read_all(request->paths, request->count, &request->rules, &docs, err));
    const int rc = write_documents(request, docs, err);
    ddp_stored_free(docs, request->count);
    return rc;
}
