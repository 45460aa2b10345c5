/* The part of the table that is about compressed and partial exchanges: other columns, and a
 * sentence for each method that says whether it pays here. */
#ifndef DDP_REPORT_TABLE_COMPRESSED_H
#define DDP_REPORT_TABLE_COMPRESSED_H

#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

void ddp_table_compressed_head(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_compressed_row(const struct ddp_point *p, const struct ddp_report_style *style,
                              struct ddp_strbuf *out);
/* For each method (and algorithm, and number of ranks), by its largest size. */
void ddp_table_compressed_verdicts(const struct ddp_record *r, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
