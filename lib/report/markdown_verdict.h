/* What Markdown reporters share: foreign text, and a verdict. Private to report_*.c. */
#ifndef DDP_REPORT_MARKDOWN_VERDICT_H
#define DDP_REPORT_MARKDOWN_VERDICT_H

#include "base/strbuf.h"
#include "record/verdict_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Text from outside as a code span, in which nothing is markup: no link, image, mention or HTML.
 * '-' when it is empty. Fits in a cell of a table. */
void ddp_markdown_code(struct ddp_strbuf *out, const char *text);
/* The outcome, what was compared, the cells as a table, the slower ones first. */
void ddp_markdown_verdict(const struct ddp_verdict_record *v, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
