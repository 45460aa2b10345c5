/* Cells of the tables for people. */
#include "report/table_cells.h"

#include <math.h>
#include <stdarg.h>
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

void ddp_table_text(struct ddp_strbuf *out, const char *text)
{
    char clean[2400];
    ddp_printable(text, clean, sizeof clean);
    ddp_strbuf_add(out, clean);
}

void ddp_table_cell(struct ddp_strbuf *out, int width, double value)
{
    if (!isfinite(value)) {
        ddp_strbuf_addf(out, " %*s", width, "-");
        return;
    }
    double size = fabs(value);
    if (size > 0 && size < 0.001) {
        ddp_strbuf_addf(out, " %*.2e", width, value);
        return;
    }
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

void ddp_table_spec(const struct ddp_point *p, struct ddp_strbuf *out)
{
    const struct ddp_point_spec *s = &p->spec;
    char ranks[24];
    ddp_table_ranks(s, ranks);
    ddp_strbuf_addf(out, "%12llu %12llu %-5s %-4s %-9s %5s %-5s %-10s",
                    (unsigned long long)s->size_bytes, (unsigned long long)s->count,
                    s->coll == DDP_BARRIER ? "-" : ddp_dtype_name(s->dtype),
                    ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : "-", p->algorithm_used, ranks,
                    ddp_placement_name(s->placement), ddp_memory_name(s->memory));
}

/* Adds one note, separated from the previous ones by a comma. */
static void note(struct ddp_strbuf *out, bool *any, const char *fmt, ...) DDP_PRINTF(3, 4);
static void note(struct ddp_strbuf *out, bool *any, const char *fmt, ...)
{
    char text[48];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ddp_strbuf_addf(out, "%s%s", *any ? "," : " ", text);
    *any = true;
}

static void notes(const struct ddp_point *p, struct ddp_strbuf *out)
{
    bool any = false;
    if (!isnan(p->injected_percent))
        note(out, &any, "injected:%g%%", p->injected_percent);
    if (p->block > 1)
        note(out, &any, "block:%lld", (long long)p->block);
    if (p->invalid > 0)
        note(out, &any, "invalid:%lld", (long long)p->invalid);
    if (p->series.drifting)
        note(out, &any, "drifting");
    if (p->series.autocorrelated)
        note(out, &any, "autocorrelated");
    ddp_strbuf_add(out, any ? "\n" : " -\n");
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
        ddp_strbuf_addf(out, " %8s", "-");
    else
        ddp_strbuf_addf(out, " %8.0f", p->pingpong_ns[1]);
    notes(p, out);
}
