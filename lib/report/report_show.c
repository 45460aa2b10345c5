#include "report/report_show.h"

#include <stdlib.h>

#include "base/mem.h"

/* Returns the kinds of figures of a record. An empty record has all, because every format can show
 * that it is empty. */
static unsigned kinds_of(const struct ddp_record *r)
{
    const unsigned kinds = (r->point_count > 0 ? DDP_RECORD_POINTS : 0u) |
                           (r->train_count > 0 ? DDP_RECORD_TRAINING : 0u) |
                           (r->verdict ? DDP_RECORD_VERDICT : 0u);
    return kinds ? kinds : DDP_RECORD_ALL;
}

/* Refuses a document that has nothing that the format shows. */
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
                                           : "points",
             path);
    return ddp_hint(err, "--format table shows every document");
}

/* Writes documents that were read. */
static int write_documents(const struct ddp_show_request *request, const struct ddp_stored *docs,
                           struct ddp_err *err)
{
    const struct ddp_record **records;
    struct ddp_report_set *set = NULL;
    int rc = 0;
    DDP_TRY(DDP_NEW(&records, request->count, err));
    for (size_t i = 0; i < request->count && rc == 0; i++) {
        records[i] = &docs[i].record;
        rc = check_document(request, request->paths[i], records[i], err);
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
        rc = ddp_report_show(set, records, request->paths, (int)request->count, err);
    ddp_report_close(set);
    free(records);
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
