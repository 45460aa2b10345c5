/* What the tables for people are made of: numbers in columns, and colour where it is allowed.
 * Private to report_table.c and table_*.c. */
#ifndef DDP_REPORT_TABLE_CELLS_H
#define DDP_REPORT_TABLE_CELLS_H

#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What follows is so, until _plain; nothing without colour. */
void ddp_table_dim(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_bold(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_red(const struct ddp_report_style *style, struct ddp_strbuf *out);
void ddp_table_plain(const struct ddp_report_style *style, struct ddp_strbuf *out);
/* Text from outside, made printable. */
void ddp_table_text(struct ddp_strbuf *out, const char *text);
/* A blank, then a number in `width` columns with about 4 significant digits, small ones with 3, '-'
 * when it does not exist. */
void ddp_table_cell(struct ddp_strbuf *out, int width, double value);
/* The same of a count, '-' below 0. */
void ddp_table_count(struct ddp_strbuf *out, int width, int64_t value);
/* Half an interval of the median, the larger side, in percent of it. */
void ddp_table_interval(struct ddp_strbuf *out, const struct ddp_summary *t);
/* How many ranks, "4x2" for 4 groups of 2; out >= 24 bytes. */
void ddp_table_ranks(const struct ddp_point_spec *spec, char *out);
/* Size to memory: the begin of a row of a collective. */
void ddp_table_what(const struct ddp_point *p, struct ddp_strbuf *out);
/* Elements that were wrong, red when there are any, the ping-pong, and in words what to mind about
 * the iterations, "-" nothing: the end of a row. */
void ddp_table_tail(const struct ddp_point *p, const struct ddp_report_style *style,
                    struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
