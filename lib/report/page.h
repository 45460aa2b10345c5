/* Pages about stored documents, as `ddpbench report` writes them: HTML, Markdown, and the plots as
 * SVG files. */
#ifndef DDP_REPORT_PAGE_H
#define DDP_REPORT_PAGE_H

#include "base/strbuf.h"
#include "record/stored.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_PAGE_DOCUMENTS_MAX 64

struct ddp_page_request {
    const char *const *paths; /* [count], 1 <= count <= DDP_PAGE_DOCUMENTS_MAX */
    size_t count;
    struct ddp_result_rules rules; /* How the documents are read. */
    const char *page;              /* The file of the page. "-": stdout. NULL: no page. */
    bool markdown;                 /* The page is Markdown, without plots. */
    const char *svg_dir;           /* The folder of the SVG files, which is made. NULL: none. */
};

/* Builds a page about documents that were read. paths [count]: their paths. Returns DDP_EUSAGE if
 * there are too many ratios, or DDP_ENOMEM. */
int ddp_page_build(const struct ddp_stored *docs, const char *const *paths, size_t count,
                   bool markdown, struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads the documents and writes the files. A file is replaced as a whole. Returns the errors of
 * ddp_result_read, DDP_EUSAGE if the page would overwrite a document, DDP_ECREATE, or DDP_EIO. */
int ddp_page_write(const struct ddp_page_request *request, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
