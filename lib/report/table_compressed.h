/* The table of compressed exchanges and of partial ones, which exchange one chunk only. After the
 * table, a sentence per method says whether the method is faster than a dense exchange here. */
#ifndef DDP_REPORT_TABLE_COMPRESSED_H
#define DDP_REPORT_TABLE_COMPRESSED_H

#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

void ddp_table_compressed_head(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_compressed_row(const struct ddp_point *p, const struct ddp_report_style *style,
                              struct ddp_strbuf *out);
/* Adds a sentence and the break-even densities for the largest size of each combination of
 * compressor, algorithm, operation and number of ranks. Skips points without a dense exchange. */
void ddp_table_compressed_verdicts(const struct ddp_record *r, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
