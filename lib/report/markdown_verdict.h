/* Untrusted text and verdicts in Markdown. */
#ifndef DDP_REPORT_MARKDOWN_VERDICT_H
#define DDP_REPORT_MARKDOWN_VERDICT_H

#include "base/strbuf.h"
#include "record/verdict_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds untrusted text as a code span, or '-' if the text is empty. Links, images, mentions and HTML
 * have no effect in a code span. The result may stand in a table cell. */
void ddp_markdown_code(struct ddp_strbuf *out, const char *text);
/* Adds the outcome, a table of the cells (slower ones first) and the compared commands. For a
 * self-test, the table has the results of its gates instead. */
void ddp_markdown_verdict(const struct ddp_verdict_record *v, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
