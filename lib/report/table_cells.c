/* Cells of the tables for people. */
#include "report/table_cells.h"

#include <math.h>
#include <stdio.h>

static void code(const struct ddp_report_style *style, struct ddp_strbuf *out, const char *text)
{
    if (style->color)
        ddp_strbuf_add(out, text);
}

void ddp_table_dim(const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    code(style, out, "\033[2m");
}

void ddp_table_bold(const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    code(style, out, "\033[1m");
}

void ddp_table_red(const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    code(style, out, "\033[31m");
}

void ddp_table_plain(const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    code(style, out, "\033[0m");
}

void ddp_table_cell(struct ddp_strbuf *out, int width, double value)
{
    if (!isfinite(value)) {
        ddp_strbuf_addf(out, " %*s", width, "-");
        return;
    }
    double size = fabs(value);
    int digits = size >= 1000               ? 0
                 : size >= 100              ? 1
                 : size >= 10               ? 2
                 : size >= 0.1 || size == 0 ? 3
                                            : 5;
    ddp_strbuf_addf(out, " %*.*f", width, digits, value);
}

void ddp_table_count(struct ddp_strbuf *out, int width, int64_t value)
{
    if (value < 0)
        ddp_strbuf_addf(out, " %*s", width, "-");
    else
        ddp_strbuf_addf(out, " %*lld", width, (long long)value);
}

void ddp_table_interval(struct ddp_strbuf *out, const struct ddp_summary *t)
{
    if (isnan(t->ci95_lo))
        ddp_strbuf_addf(out, " %6s", "-");
    else
        ddp_strbuf_addf(out, " %6.1f",
                        fmax(t->ci95_hi - t->median, t->median - t->ci95_lo) / t->median * 100);
}

void ddp_table_ranks(const struct ddp_point_spec *spec, char *out)
{
    if (spec->groups > 1)
        snprintf(out, 24, "%dx%d", spec->groups, spec->ranks);
    else
        snprintf(out, 24, "%d", spec->ranks);
}

void ddp_table_tail(const struct ddp_point *p, const struct ddp_report_style *style,
                    struct ddp_strbuf *out)
{
    if (p->check_wrong > 0)
        ddp_table_red(style, out);
    ddp_table_count(out, 6, p->check_wrong);
    if (p->check_wrong > 0)
        ddp_table_plain(style, out);
    if (isnan(p->pingpong_ns[1]))
        ddp_strbuf_addf(out, " %8s\n", "-");
    else
        ddp_strbuf_addf(out, " %8.0f\n", p->pingpong_ns[1]);
}
