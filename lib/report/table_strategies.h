/* The comparison of strategies (record/strategy_table.h), as a text table and in Markdown. */
#ifndef DDP_REPORT_TABLE_STRATEGIES_H
#define DDP_REPORT_TABLE_STRATEGIES_H

#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Add the comparison, or nothing if there is nothing to compare. If memory runs out, these
 * functions mark *out as failed. */
void ddp_table_strategies(const struct ddp_record *r, const struct ddp_report_style *style,
                          struct ddp_strbuf *out);
void ddp_markdown_strategies(const struct ddp_record *r, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
