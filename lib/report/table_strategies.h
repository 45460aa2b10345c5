/* The comparison of strategies (record/strategy_table.h) as text: for the table for people and in
 * Markdown. Private to lib/report. */
#ifndef DDP_REPORT_TABLE_STRATEGIES_H
#define DDP_REPORT_TABLE_STRATEGIES_H

#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Nothing when there is nothing to compare. Running out of memory marks *out as failed. */
void ddp_table_strategies(const struct ddp_record *r, const struct ddp_report_style *style,
                          struct ddp_strbuf *out);
void ddp_markdown_strategies(const struct ddp_record *r, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
