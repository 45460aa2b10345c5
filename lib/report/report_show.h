/* Shows stored documents in the output formats of the commands (report.h). */
#ifndef DDP_REPORT_REPORT_SHOW_H
#define DDP_REPORT_REPORT_SHOW_H

#include "record/stored.h"
#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_show_request {
    const char *const *paths; /* [count], count >= 1 */
    size_t count;
    struct ddp_result_rules rules; /* How the documents are read. */
    const struct ddp_reporter *reporter;
    const char *output; /* The file to write. "-": stdout. */
    struct ddp_table_options table;
};

/* Reads the documents and writes them in the reporter's format, one after the other. Returns 0,
 * DDP_ENOMEM or the errors of ddp_result_read. Returns DDP_EUSAGE if the format cannot show one of
 * the documents or cannot show several documents, if a document has nothing to plot, if the output
 * would overwrite a document, or if the name of the output is empty. Returns DDP_ECREATE, DDP_EIO
 * or DDP_ECLOSED if the output cannot be written. */
int ddp_show(const struct ddp_show_request *request, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
