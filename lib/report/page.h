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
    /* The file to which the page is written, or "-" for stdout. NULL: no page. */
    const char *page;
    bool markdown; /* True: the page is Markdown, without plots. False: HTML. */
    /* The folder of the SVG files. It is created if necessary. NULL: no SVG files. */
    const char *svg_dir;
};

/* Builds a page about documents in memory. docs[i] was read from the file paths[i]. Returns 0,
 * DDP_ENOMEM, or DDP_EUSAGE if there are too many ratios between documents (ddp_across_build). */
int ddp_page_build(const struct ddp_stored *docs, const char *const *paths, size_t count,
                   bool markdown, struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads the documents, and writes the page and the SVG files. Each file is replaced as a whole.
 * Returns 0 or the errors of ddp_result_read and ddp_page_build. Returns DDP_EUSAGE if a written
 * file would overwrite a document, or if request->page is empty. Returns DDP_ECREATE, DDP_EIO or
 * DDP_ECLOSED if a file cannot be written. */
int ddp_page_write(const struct ddp_page_request *request, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
