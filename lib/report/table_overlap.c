/* Rows of operations that run while the rank computes. */
#include "report/table_overlap.h"

#include "report/table_cells.h"

void ddp_table_overlap_head(const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    ddp_table_dim(style, out);
    ddp_strbuf_add(
        out,
        "# pure: time of one operation alone on the slowest rank, as a median with its 95 % "
        "interval. compute: arithmetic alone, about as\n"
        "# long. total: both at once, the operation in a progress thread. overlap: hidden part of "
        "the "
        "shorter one,\n"
        "# (pure + compute - total) / min(pure, compute).\n"
        "#       size        count type  op   algorithm ranks place memory         pure   ci95   "
        "compute     total  overlap    busbw  wrong pingpong notes\n"
        "#        (B)   (elements)                                                (us)   +-%      "
        "(us)      (us)        %   (GB/s)           (ns)\n");
    ddp_table_plain(style, out);
}

void ddp_table_overlap_row(const struct ddp_point *p, const struct ddp_report_style *style,
                           struct ddp_strbuf *out)
{
    ddp_table_spec(p, out);
    ddp_table_cell(out, 8, p->time_ns.median / 1e3);
    ddp_table_interval(out, &p->time_ns);
    ddp_table_cell(out, 9, p->overlap.compute_ns / 1e3);
    ddp_table_cell(out, 9, p->overlap.total_ns / 1e3);
    ddp_table_bold(style, out);
    ddp_table_cell(out, 8, p->overlap.percent);
    ddp_table_plain(style, out);
    ddp_table_cell(out, 8, ddp_point_busbw_GBps(p, p->time_ns.median));
    ddp_table_tail(p, style, out);
}
