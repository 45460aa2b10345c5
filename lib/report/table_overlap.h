/* The table of operations that run in a progress thread while the rank computes. */
#ifndef DDP_REPORT_TABLE_OVERLAP_H
#define DDP_REPORT_TABLE_OVERLAP_H

#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

void ddp_table_overlap_head(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_overlap_row(const struct ddp_point *p, const struct ddp_report_style *style,
                           struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
