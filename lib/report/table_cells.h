/* Cells of the tables for people: numbers in columns, and colour if allowed. */
#ifndef DDP_REPORT_TABLE_CELLS_H
#define DDP_REPORT_TABLE_CELLS_H

#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Switch the style of the text that follows, until ddp_table_plain. These functions do nothing
 * without colour. */
void ddp_table_dim(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_bold(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_red(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_plain(const struct ddp_report_style *style, struct ddp_strbuf *out);
/* Adds untrusted text in printable form. */
void ddp_table_text(struct ddp_strbuf *out, const char *text);
/* Adds a blank and a number in `width` columns, or '-' if the number is missing. The number has at
 * least 3 significant digits. */
void ddp_table_cell(struct ddp_strbuf *out, int width, double value);
/* Adds a blank and a count in `width` columns, or '-' if the count is negative. */
void ddp_table_count(struct ddp_strbuf *out, int width, int64_t value);
/* Adds the longer side of the median's 95 % interval, in percent of the median. */
void ddp_table_interval(struct ddp_strbuf *out, const struct ddp_summary *t);
/* Writes the number of ranks, for example "4x2" for 4 groups of 2. `out` has at least 24 bytes. */
void ddp_table_ranks(const struct ddp_point_spec *spec, char *out);
/* Adds the first columns of a row, from size to memory. */
void ddp_table_spec(const struct ddp_point *p, struct ddp_strbuf *out);
/* Adds the last columns of a row. These are the number of wrong elements (red if there are any),
 * the ping-pong time after the point, and notes on the iterations ("-" if there are none). */
void ddp_table_tail(const struct ddp_point *p, const struct ddp_report_style *style,
                    struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
